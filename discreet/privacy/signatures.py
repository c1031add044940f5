"""Signatures of released files: who answers for a file, and that nobody has changed it since.

A model file proves its guarantee from the record of its run, but the record is a text like any other: who edits the
noise in it makes another record, which proves another guarantee. A signature (Ed25519) ties the bytes of a file, the
date and the head of the ledger to the key of a person; it lies beside the file, under the same name with `.sig` added.

Keys are PEM files, as OpenSSL writes and reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet._common.codec import Format, built, read_json_file, write_json_file, written
from discreet._common.text import paragraph

FORMAT = Format("discreet signature", 1)
ENDING = ".sig"
NOT_SIGNED = (
    "NOT SIGNED: nobody answers for this file, and whoever could write to it may have changed its numbers "
    "(discreet sign)."
)


def _hexadecimal(size: int) -> Callable[[str, str], str]:
    """A check that a text has as many bytes as two digits each tell."""

    def check(what: str, text: str) -> str:
        if len(text) != 2 * size or set(text) - set("0123456789abcdef"):
            raise ValueError(f"{what} must be {2 * size} hexadecimal digits.")
        return text

    return check


Bytes32: TypeAlias = Annotated[str, _hexadecimal(32)]
Bytes64: TypeAlias = Annotated[str, _hexadecimal(64)]


@dataclass(frozen=True)
class Signature:
    """What was signed, by which key.

    Attributes
    ----------
    sha256 : str
        Digest of the signed file.
    date : str
        When it was signed, in UTC, ISO 8601, as the signer's clock said.
    key : str
        The public key, 32 bytes in hexadecimal digits.
    head : str or None
        Hash of the ledger's latest record at that time; None if no ledger was asked.
    signature : str
        The signature of all of this, 64 bytes in hexadecimal digits.
    """

    sha256: Bytes32
    date: str
    key: Bytes32
    head: str | None = None
    signature: Bytes64 = ""

    in_every_file: ClassVar[tuple[str, ...]] = ("head", "signature")

    @property
    def fingerprint(self) -> str:
        """The first digits of the key's SHA-256, to compare by eye or on the phone."""
        digits = hashlib.sha256(bytes.fromhex(self.key)).hexdigest()[:20]
        return " ".join(digits[i : i + 4] for i in range(0, 20, 4))

    def message(self) -> bytes:
        """The bytes that are signed: all fields but the signature, after the name and version of the format."""
        content = FORMAT.head | written(replace(self, signature=""))
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    def __str__(self) -> str:
        ledger = "no ledger was asked" if self.head is None else f"ledger head {self.head[:16]}"
        return f"Signed {self.date} with the key {self.fingerprint} ({ledger}); whose key it is, this file cannot say."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the signature file."""
        return FORMAT.head | written(self)


def signature_path(path: str | Path) -> Path:
    """Where the signature of a file lies."""
    return Path(f"{path}{ENDING}")


def new_key(path: str | Path, passphrase: str | None = None) -> Path:
    """Write a new private key, which only its owner may read, and beside it the public one, whose path is returned.

    Parameters
    ----------
    path : str or Path
        A new file for the private key; the public key gets the ending `.pub`.
    passphrase : str, optional
        Encrypts the private key.
    """
    key, public = Ed25519PrivateKey.generate(), Path(path).with_suffix(".pub")
    if public == Path(path) or public.exists():
        raise ValueError(f"{public} is the place of the public key; choose another name for the private one.")
    locked = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    pem, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    write_private(path, key.private_bytes(pem, kind, locked))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return public


def write_private(path: str | Path, content: bytes) -> None:
    """Write a new file that only its owner may read, from its first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def make_signature(
    path: str | Path, key: str | Path, head: str | None = None, passphrase: str | None = None, overwrite: bool = False
) -> Signature:
    """Sign the bytes of a file with the private key of a PEM file, and write the signature beside it."""
    private = _private_key(key, passphrase)
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    date = datetime.now(UTC).isoformat(timespec="seconds")
    unsigned = Signature(_sha256(path), date, private.public_key().public_bytes(*raw).hex(), head)
    signed = replace(unsigned, signature=private.sign(unsigned.message()).hex())
    write_json_file(signature_path(path), signed.to_dict(), overwrite)
    return signed


def read_signature(place: str | Path) -> Signature:
    """The signature of a file that `sign_file` wrote; one that the key in it did not make is a ValueError."""
    signed: Signature = read_json_file(place, lambda content: built(Signature, FORMAT.body(content)), f"{place}")
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed.key)).verify(
            bytes.fromhex(signed.signature), signed.message()
        )
    except InvalidSignature:
        raise ValueError(f"{place} is not a signature by the key that it names.") from None
    return signed


def signature_of(path: str | Path) -> Signature | None:
    """The signature that lies beside a file, None if there is none; one that does not fit the file is a ValueError."""
    place = signature_path(path)
    if not place.exists():
        return None
    signed = read_signature(place)
    if signed.sha256 != _sha256(path):
        raise ValueError(f"{path} was changed after it was signed, or {place.name} belongs to another file.")
    return signed


def signature_line(signed: Signature | None) -> str:
    """The first line of whatever is said of a file: who answers for it."""
    return paragraph(NOT_SIGNED if signed is None else str(signed))


def signature_values(signed: Signature | None) -> dict[str, Any]:
    """The same for machines."""
    return {"signature": None if signed is None else signed.to_dict()}


def public_key(path: str | Path) -> str:
    """The public key of a PEM file in hexadecimal digits, as signatures name it."""
    try:
        key = serialization.load_pem_public_key(Path(path).read_bytes())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{path} is not the public key of an Ed25519 pair; it ends in .pub where discreet made it.")
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def _private_key(path: str | Path, passphrase: str | None) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(Path(path).read_bytes(), passphrase.encode() if passphrase else None)
    except TypeError:
        state = "is not encrypted; leave the passphrase out" if passphrase else "is encrypted and needs its passphrase"
        raise ValueError(f"{path} {state}.") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is not a private Ed25519 key, or the passphrase is not its own.")
    return key


def _sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
