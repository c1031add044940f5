"""The words that all draws are made of, AES-256 in counter mode, and the lock around each draw of them."""

from __future__ import annotations

import os
import threading

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


class DrawLock:
    """A context manager around each draw: threads take turns, and a draw inside a draw is refused.

    Every process has a lock of its own. After a fork that Python's hooks do not see (one made by C code), the child
    therefore does not wait for a thread that exists in its parent alone, and `process` differs from before, which
    tells the generator that its words are the parent's.

    Attributes
    ----------
    process : int
        The process of the latest draw.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._turns: dict[int, _Turn] = {}

    def __enter__(self) -> None:
        process = os.getpid()
        # `setdefault` is atomic: of two threads that come first in a new process, both get the same lock.
        turn = self._turns.get(process) or self._turns.setdefault(process, _Turn())
        # A thread may acquire it twice, so that a signal handler is refused below and does not wait for itself.
        turn.lock.acquire()
        if turn.taken:
            turn.lock.release()
            raise RuntimeError(
                "a RandomGenerator was asked for a draw in the middle of another draw, by a signal handler or a "
                "finaliser: give that code a generator of its own, secure_generator()"
            )
        turn.taken = True
        self.process, self._turn = process, turn

    def __exit__(self, *_: object) -> None:
        turn = self._turn
        turn.taken = False
        turn.lock.release()


class _Turn:
    """The lock of one process, and whether a draw is going on."""

    __slots__ = ("lock", "taken")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.taken = False
