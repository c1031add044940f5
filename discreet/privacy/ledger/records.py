"""Records that follow each other in a chain of SHA-256 hashes, what can be wrong with them, and their tables.

A record is never changed: what happens later is a later record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet._common.text import LONGEST, one_line

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

GENESIS = "0" * 64
# What the record of each kind must say, and what it may say besides. A kind or a word that is not listed here was
# written by hand or by a later version, so nobody here knows what it means for the budget.
KINDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "open": (frozenset({"epsilon", "delta", "relation"}), frozenset({"total", "who", "unit"})),
    "reserve": (frozenset({"event", "note"}), frozenset({"total", "who", "target", "unit", "key"})),
    "commit": (frozenset({"entry"}), frozenset()),
    "model": (frozenset({"entry", "sha256"}), frozenset()),
}


class ChainError(RuntimeError):
    """The stored records are not the chain that was written, or cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, LONGEST))  # it may quote what a damaged file holds


@dataclass(frozen=True)
class Record:
    """One link; `hash` covers every other field and the hash of the record before."""

    number: int
    kind: str
    dataset: str
    body: str
    created: str
    hash: str

    def digest(self, previous: str) -> str:
        """Return the hash that this record must carry when it follows `previous`."""
        fields = [previous, self.number, self.kind, self.dataset, self.body, self.created]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()

    @property
    def content(self) -> dict[str, Any]:
        """The body, parsed."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def misfit(self) -> str | None:
        """What this version of the ledger does not understand about the record; None if all is well."""
        if self.kind not in KINDS:
            return f"has the unknown kind {self.kind!r}; it was written by hand or by a later version"
        try:
            said = set(self.content)
        except (ValueError, TypeError, RecursionError):
            return "cannot be read"
        needed, allowed = KINDS[self.kind]
        if needed - said:
            return f"does not say its {sorted(needed - said)[0]}"
        if said - needed - allowed:
            return f"says {sorted(said - needed - allowed)[0]!r}, which this version does not know"
        return None


@dataclass(frozen=True)
class Tip:
    """Number and hash of the latest record, kept in a row of its own that is also the write lock."""

    number: int
    hash: str


def problems(records: Sequence[Record], tip: Tip | None, before: Record | None = None) -> list[str]:
    """Walk the chain and say, record by record, where it does not hold.

    `records` begin with the first record of all, or with the one after `before`, and end with the latest.
    """
    found: list[str] = []
    previous, expected = (GENESIS, 1) if before is None else (before.hash, before.number + 1)
    for record in records:
        if record.number != expected:
            found.append(f"{_numbers(expected, record.number - 1)} missing")
        elif record.digest(previous) != record.hash:
            found.append(f"record {record.number} ({record.kind} {record.dataset!r}) was altered")
        elif record.misfit is not None:
            found.append(f"record {record.number} {record.misfit}")
        previous, expected = record.hash, record.number + 1
    if tip is None:
        found.append("the row that remembers the latest record is missing")
    elif tip.number >= expected:
        found.append(f"{_numbers(expected, tip.number)} missing")
    elif tip != Tip(expected - 1, previous):
        found.append("the row that remembers the latest record was altered")
    return found


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"


class Tables(NamedTuple):
    """What a ledger consists of."""

    records: Table
    tip: Table
    totals: Table


@cache
def tables() -> Tables:
    """Return the tables as SQLAlchemy describes them."""
    from sqlalchemy import Column, Index, Integer, MetaData, String, Table, Text

    metadata = MetaData()
    records = Table(
        "discreet_records",
        metadata,
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("kind", String(16), nullable=False),
        Column("dataset", Text, nullable=False),
        Column("body", Text, nullable=False),
        Column("created", String(40), nullable=False),
        Column("hash", String(64), nullable=False),
    )
    # The latest record of a data set is found without reading the others.
    Index("discreet_records_of", records.c.dataset, records.c.kind, records.c.number)
    tip = Table(
        "discreet_tip",
        metadata,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("number", Integer, nullable=False),
        Column("hash", String(64), nullable=False),
    )
    totals = Table(
        "discreet_totals",
        metadata,
        Column("dataset", Text, primary_key=True),
        Column("number", Integer, nullable=False),
        Column("total", Text, nullable=False),
    )
    return Tables(records, tip, totals)


def has_tables(connection: Connection) -> bool:
    """Whether the database holds a ledger, of this version or an earlier one."""
    from sqlalchemy import inspect

    return inspect(connection).has_table(tables().tip.name)


def create_tables(connection: Connection) -> None:
    """Make an empty ledger."""
    tables().tip.metadata.create_all(connection)
    connection.execute(tables().tip.insert().values(id=1, number=0, hash=GENESIS))


def has_totals(connection: Connection) -> bool:
    """Whether the ledger has running totals, which earlier versions did not keep."""
    from sqlalchemy import inspect

    return inspect(connection).has_table(tables().totals.name)


def add_totals(connection: Connection) -> None:
    """Make the table and the index that earlier versions did not have."""
    known = tables()
    known.totals.create(connection)
    for index in known.records.indexes:
        index.create(connection, checkfirst=True)
