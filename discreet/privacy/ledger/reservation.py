"""One reservation: as it is held by the caller, and as an entry of the ledger."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from discreet.privacy.ledger.records import Record
from discreet.privacy.ledger.total import Event
from discreet.privacy.relation import Unit, unit_from

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
        Why: what the caller wrote beside it.
    status : {"reserved", "committed"}
        Both count in full.
    created, committed : datetime
        When; `committed` is None for a reservation that was not committed.
    who : str
        User and machine that asked; empty in ledgers of earlier versions.
    target : str
        The column that is predicted, if the caller named it.
    model : str
        SHA-256 of the model's file, if one was recorded.
    unit : {"row", "person"}
        What the release protects.
    """

    id: int
    dataset: str
    event: Event
    note: str
    status: str
    created: datetime
    committed: datetime | None
    who: str = ""
    target: str = ""
    model: str = ""
    unit: Unit = "row"


def entries_of(records: Sequence[Record]) -> list[Entry]:
    """Return the reservations among records as people read them, without those that cannot be read."""
    readable = [record for record in records if record.misfit is None]
    commits = {str(record.content["entry"]): record for record in readable if record.kind == "commit"}
    models = {str(record.content["entry"]): record for record in readable if record.kind == "model"}
    found = []
    for record in readable:
        if record.kind == "reserve":
            number = str(record.number)
            with suppress(ValueError, TypeError):
                found.append(_entry(record, commits.get(number), models.get(number)))
    return found


def _entry(record: Record, commit: Record | None, model: Record | None) -> Entry:
    from discreet.privacy.accounting import event_from_dict

    content = record.content
    return Entry(
        id=record.number,
        dataset=record.dataset,
        event=event_from_dict(content["event"]),
        note=content["note"],
        status="reserved" if commit is None else "committed",
        created=datetime.fromisoformat(record.created),
        committed=None if commit is None else datetime.fromisoformat(commit.created),
        who=content.get("who", ""),
        target=content.get("target", ""),
        model="" if model is None else model.content["sha256"],
        unit=unit_from(content.get("unit", "row")),
    )


def current_user() -> str:
    """Return who is working on which machine, as far as the operating system knows."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without a list of users
        name = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return f"{name}@{socket.gethostname()}"


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

    @property
    def key(self) -> str:
        """What the ledger keeps for whoever holds the reservation."""
        return self.ledger._key(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._committed:
            self.commit()

    def __repr__(self) -> str:
        return f"Reservation(id={self.id}, dataset={self.dataset!r})"
