"""One reservation: as it is held by the caller, and as an entry of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from discreet.privacy.ledger.allowance import Event

if TYPE_CHECKING:
    from discreet.privacy.ledger.ledger import Ledger


@dataclass(frozen=True)
class Entry:
    """One reservation in a ledger.

    Attributes
    ----------
    id : int
        Number of the record.
    dataset : str
        Name of the data set.
    event : DpEvent
        What was reserved, in the vocabulary of dp-accounting.
    note : str
        What the caller wrote beside it.
    status : {"reserved", "committed"}
        Both count in full.
    created, committed : datetime
        When; `committed` is None for a reservation that was not committed.
    """

    id: int
    dataset: str
    event: Event
    note: str
    status: str
    created: datetime
    committed: datetime | None


class Reservation:
    """A part of a budget, already counted; `commit` records that its result was released.

    As a context manager it commits when the block ends well. After an exception it stays reserved, hence
    counted: the rows may have been read. `hash` is that of the record, so that no other ledger can stand in.
    """

    def __init__(self, ledger: Ledger, id: int, dataset: str, hash: str) -> None:
        self.ledger = ledger
        self.id = id
        self.dataset = dataset
        self.hash = hash
        self._committed = False

    def commit(self) -> None:
        """Mark the reservation as used; a second time is a RuntimeError, from whichever process.

        A ledger that did not grant this reservation raises a ValueError.
        """
        self.ledger._commit(self)
        self._committed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._committed:
            self.commit()

    def __repr__(self) -> str:
        return f"Reservation(id={self.id}, dataset={self.dataset!r})"
