"""What a statement says beside the promise: which result, from which table, when, by which software, at whose cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from discreet._common.codec import Amount, Count, written

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.reservation import Reservation

RowsAre = Literal["exact", "estimate", "maximum"]


@dataclass(frozen=True)
class LedgerReceipt:
    """What a ledger says about a release at the moment at which it was committed.

    Attributes
    ----------
    dataset : str
        The name under which the data set's budget was opened.
    entries : tuple of int
        Numbers of the ledger's records for this release.
    hash : str
        Hash of the last of them; `Ledger.verify(hash)` says whether it is still there.
    spent : float
        Epsilon of all releases of the data set so far, this one included, at the budget's delta.
    epsilon, delta : float
        The budget of the data set.
    """

    dataset: str
    entries: tuple[Count, ...]
    hash: str
    spent: Amount
    epsilon: Amount
    delta: Amount

    @classmethod
    def of(cls, reservation: Reservation) -> LedgerReceipt:
        """The receipt of a reservation that has been committed."""
        book: Ledger = reservation.ledger
        allowance = book.allowance(reservation.dataset)
        return cls(
            dataset=reservation.dataset,
            entries=(reservation.id,),
            hash=reservation.hash,
            spent=book.spent(reservation.dataset),
            epsilon=allowance.epsilon,
            delta=allowance.delta,
        )


@dataclass(frozen=True)
class ReleaseRecord:
    """The circumstances of a release, all of them public.

    Attributes
    ----------
    result : str
        What was released, such as "LogisticRegression".
    rows : int, optional
        Number of rows; None for a stream without a declared end.
    rows_are : {"exact", "estimate", "maximum"}
        Whether that is the number itself, a public estimate of it (relation "add_remove", which protects the number),
        or the most that a stream may have.
    columns : int
        Number of columns, the target not counted.
    date : str
        When, in UTC, as ISO 8601.
    version : str
        The version of discreet.
    table : str, optional
        The name of the table: that of its file, or the `dataset` of the ledger.
    ledger : LedgerReceipt, optional
        Where the cost was booked.
    """

    result: str
    rows: Count | None
    rows_are: RowsAre
    columns: Count
    date: str
    version: str
    table: str | None = None
    ledger: LedgerReceipt | None = None

    in_every_file: ClassVar[tuple[str, ...]] = ("table", "ledger")

    def of_table(self, name: str, entries: tuple[int, ...] = ()) -> ReleaseRecord:
        """Return the same record with the name of the table, and with earlier entries of the ledger for it."""
        receipt = self.ledger
        if receipt is not None:
            receipt = replace(receipt, entries=(*entries, *receipt.entries))
        return replace(self, table=name, ledger=receipt)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return written(self)


def record_of_parts(parts: Sequence[ReleaseRecord | None]) -> ReleaseRecord | None:
    """The record of several releases from the same rows, such as the steps of a pipeline, in their order.

    None if the circumstances of a part are not known, or if the parts do not agree on the table or on the ledger.
    """
    known = [part for part in parts if part is not None]
    tables = {(part.table, part.rows, part.rows_are, part.ledger and part.ledger.dataset) for part in known}
    if not known or len(known) < len(parts) or len(tables) > 1:
        return None
    last, receipts = known[-1], [part.ledger for part in known if part.ledger is not None]
    entries = tuple(entry for receipt in receipts for entry in receipt.entries)
    return replace(
        last,
        result=", ".join(part.result for part in known),
        columns=known[0].columns,
        ledger=None if last.ledger is None else replace(last.ledger, entries=entries),
    )
