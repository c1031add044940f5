"""Uniformly random 64-bit words from a key: AES-256 in counter mode. All draws are made of these words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK = 16_384  # the most words asked for at once: words, zeros and draws of a block fit in a second-level cache
BYTES_PER_KEY = 1 << 26
_ZEROS = memoryview(bytes(8 * BLOCK))


class Keystream:
    """The output of AES-256 in counter mode over zeros; every 64 MiB it supplies its own next key.

    Changing the key bounds how far the words can be told from random ones, and means that a key found
    in memory does not give away the noise drawn before it.
    """

    def __init__(self, key: bytes) -> None:
        self._set_key(key)

    def _set_key(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        self._encrypt = Cipher(AES(key), CTR(bytes(16))).encryptor()
        self._bytes_left = BYTES_PER_KEY

    def fill(self, words: NDArray[np.uint64], count: int) -> None:
        """Overwrite the first `count` words, at most BLOCK; the array must be 2 words longer than that."""
        size = 8 * count
        if size > self._bytes_left:
            self._set_key(self._encrypt.update(bytes(32)))
        self._bytes_left -= size
        # Older versions of cryptography want room for 15 bytes more than they write.
        self._encrypt.update_into(_ZEROS[:size], words[: count + 2].view(np.uint8).data)
