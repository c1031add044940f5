"""Sign a model file or an evaluation, and verify a signature: what is checked before, and what is said afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.privacy.ledger.statement import receipt_problems
from discreet.privacy.signatures import Signature, make_signature, public_key, signature_of

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee, LedgerReceipt
    from discreet.privacy.ledger import Ledger


def sign_file(
    path: str | Path,
    key: str | Path,
    *,
    ledger: Ledger | str | None = None,
    passphrase: str | None = None,
    overwrite: bool = False,
) -> Signature:
    """Sign a model file or an evaluation, after its guarantee was proved again and the ledger confirmed it.

    Guarantee: no row is read; the signature holds a digest of the file and the head of the ledger.

    Parameters
    ----------
    path : str or Path
        A file that `save_model`, `save_evaluation` or the command line wrote.
    key : str or Path
        The private key, a PEM file as `discreet key` or OpenSSL makes it.
    ledger : Ledger or str, optional
        The ledger in which the release was booked. It must be intact and have granted what the file says, for this very
        file; its head is signed, too. Required if the file names an entry of a ledger.
    passphrase : str, optional
        Of the private key, if it is encrypted.
    overwrite : bool, default=False
        Whether an earlier signature of the file may be replaced.

    Returns
    -------
    Signature
        What lies beside the file now, under its name with `.sig` added.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge, save_model
    >>> from discreet.privacy.signatures import new_key
    >>> from discreet.report import sign_file, verify_file
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> save_model(Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)).fit(X, X[:, 0]), "signed.json")
    >>> public = new_key("steward.key")
    >>> _ = sign_file("signed.json", "steward.key")
    >>> verify_file("signed.json", [public]).head is None  # no ledger was asked
    True
    """
    promise, book = _guarantee_in(path), existing_ledger(ledger)
    receipt = None if promise.release is None else promise.release.ledger
    if receipt is not None and book is None:
        raise ValueError(
            f"{path} was booked for data set {receipt.dataset!r}: pass the ledger, so that it can confirm this."
        )
    if receipt is None and book is not None:
        raise ValueError(f"{path} names no entry of a ledger, so that no ledger can confirm it; leave the ledger out.")
    if book is None or receipt is None:
        return make_signature(path, key, None, passphrase, overwrite)
    problems = receipt_problems(book, [(promise, receipt)]) or _other_file(path, book, receipt)
    if problems:
        raise ValueError(f"{path} is not signed: {problems[0]}.")
    return make_signature(path, key, book.head(), passphrase, overwrite)


def verify_file(path: str | Path, keys: Sequence[str | Path], *, ledger: Ledger | str | None = None) -> Signature:
    """Return the signature of a file; a ValueError if it has none, or one that does not fit.

    Guarantee: no row is read.

    Parameters
    ----------
    path : str or Path
        The signed file.
    keys : sequence of str or Path
        The public keys that are trusted, PEM files.
    ledger : Ledger or str, optional
        A ledger that must still hold the head that was signed.

    Returns
    -------
    Signature
        With the date, the key and the head of the ledger that were signed.

    Examples
    --------
    See `sign_file`.
    """
    signed = signature_of(path)
    if signed is None:
        raise ValueError(f"{path} is not signed: there is no {path}.sig.")
    if signed.key not in [public_key(key) for key in keys]:
        raise ValueError(f"{path} was signed with another key, {signed.fingerprint}.")
    _guarantee_in(path)
    book = existing_ledger(ledger)
    if book is not None:
        if signed.head is None:
            raise ValueError(f"no ledger was asked when {path} was signed; leave the ledger out.")
        problems = book.verify(signed.head)
        if problems:
            raise ValueError(f"the ledger does not fit the signature of {path}: {problems[0]}.")
    return signed


def _guarantee_in(path: str | Path) -> Guarantee:
    """The guarantee of a model file or of an evaluation, proved again from what was done to the rows."""
    from discreet.estimators.model_file import read_model
    from discreet.metrics import load_evaluation

    try:
        return read_model(path).estimator.guarantee_
    except ValueError as no_model:
        try:
            return load_evaluation(path).guarantee
        except ValueError:
            raise no_model from None


def existing_ledger(ledger: Ledger | str | None) -> Ledger | None:
    """The ledger; one that is not there is refused, since it would look like one without entries."""
    from discreet.privacy.ledger import Ledger as Book

    return None if ledger is None else Book.of(ledger).existing()


def _other_file(path: str | Path, ledger: Ledger, receipt: LedgerReceipt) -> list[str]:
    """Whether the ledger knows another file as the one that belongs to the entries."""
    known = {entry.model for entry in ledger.entries(receipt.dataset) if entry.id in receipt.entries}
    known -= {"", hashlib.sha256(Path(path).read_bytes()).hexdigest()}
    return ["the ledger has the digest of another file for these entries"] if known else []
