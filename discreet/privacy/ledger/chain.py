"""Append-only records in a database, chained by SHA-256; the ledger's memory.

Nothing here knows about privacy. Beside the records a running total of each data set is kept, as a text: the latest
record of the data set holds the total's hash, so a total cannot be edited unnoticed either.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.privacy.ledger.records import GENESIS, ChainError, Record, Tip, add_totals, has_totals, problems, tables
from discreet.privacy.ledger.store import absolute_url, store_at

if TYPE_CHECKING:
    from sqlalchemy import Connection

# How many of the latest records are checked at every use. All of them are checked by `read`; checking them always
# would make each use dearer than the last.
LATEST = 64


class View:
    """What a ledger holds at one moment."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection

    def check_latest(self) -> None:
        """Raise an error if the latest records are not the end of an intact chain."""
        tip = self.tip()
        first = 1 if tip is None else max(1, tip.number - LATEST + 1)
        self._require_chain(first, tip)

    def tip(self) -> Tip | None:
        """Return number and hash of the latest record; None if the row is missing."""
        if self._connection is None:
            return Tip(0, GENESIS)
        tip = tables().tip
        rows = self._rows(tip.select().with_only_columns(tip.c.number, tip.c.hash))
        known = len(rows) == 1 and isinstance(rows[0][0], int) and isinstance(rows[0][1], str)
        return Tip(*rows[0]) if known else None

    def records(self, first: int = 1, last: int | None = None, dataset: str | None = None) -> list[Record]:
        """Return the records between two numbers, oldest first, of all data sets or of one."""
        table = tables().records
        query = table.select().order_by(table.c.number)
        if first > 1:
            query = query.where(table.c.number >= first)
        if last is not None:
            query = query.where(table.c.number <= last)
        if dataset is not None:
            query = query.where(table.c.dataset == dataset)
        return [_record(row) for row in self._rows(query)]

    def opened(self) -> list[str]:
        """Return the names of all data sets, in the order in which they were opened."""
        table = tables().records
        query = table.select().where(table.c.kind == "open").order_by(table.c.number)
        return [name for (name,) in self._rows(query.with_only_columns(table.c.dataset))]

    def latest(self, dataset: str, *kinds: str) -> Record | None:
        """Return the newest record of a data set that is of one of some kinds."""
        table = tables().records
        found: list[Any] = []
        for kind in kinds:  # one search of the index for each
            query = table.select().where(table.c.dataset == dataset, table.c.kind == kind)
            found += self._rows(query.order_by(table.c.number.desc()).limit(1))
        return max((_record(row) for row in found), key=lambda record: record.number, default=None)

    def total(self, dataset: str) -> str | None:
        """Return the running total of a data set; None where its latest record has none.

        Raises
        ------
        ChainError
            If the total is not the one that the latest record speaks of.
        """
        latest = self.latest(dataset, "open", "reserve")
        if latest is None or (latest.misfit is None and "total" not in latest.content):
            return None
        self._has_totals = True  # since a record speaks of one
        self._require_chain(latest.number, None, latest.number + 1)
        stored = self.totals(dataset).get(dataset)
        if stored is None or stored[0] != latest.number or digest_of(stored[1]) != latest.content["total"]:
            raise _damaged(f"the running total of data set {dataset!r} was altered")
        return stored[1]

    def _require_chain(self, first: int, tip: Tip | None, last: int | None = None) -> None:
        """Raise an error unless the records from one number to another, or to the tip, follow each other."""
        found = self.records(max(1, first - 1), last)
        before = found.pop(0) if first > 1 and found and found[0].number == first - 1 else None
        if first > 1 and before is None:
            raise _damaged(f"record {first - 1} is missing")
        end = found[-1] if last is not None and found else None
        wrong = problems(found, tip if end is None else Tip(end.number, end.hash), before)
        if wrong:
            raise _damaged(wrong[0])

    def commits(self, entry: Record) -> list[Record]:
        """Return the records that commit a reservation: one, or none."""
        table = tables().records
        later = (table.c.dataset == entry.dataset, table.c.kind == "commit", table.c.number > entry.number)
        found = (_record(row) for row in self._rows(table.select().where(*later)))
        return [record for record in found if record.content["entry"] == entry.number]

    @cached_property
    def _has_totals(self) -> bool:
        return self._connection is not None and has_totals(self._connection)

    def totals(self, dataset: str | None = None) -> dict[str, tuple[int, str]]:
        """Return the stored totals as they are, each with the number of the record that it belongs to."""
        if not self._has_totals:
            return {}
        table = tables().totals
        query = table.select() if dataset is None else table.select().where(table.c.dataset == dataset)
        return {name: (number, str(total)) for name, number, total in self._rows(query)}

    def _rows(self, query: Any) -> Sequence[Any]:
        """What the database answers; nothing where there is no ledger."""
        return [] if self._connection is None else self._connection.execute(query).all()


class Writer(View):
    """The right to append, held for one transaction; nothing else changes meanwhile."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._open = connection
        self.check_latest()

    @property
    def head(self) -> str:
        """Hash of the record that was appended last."""
        tip = self.tip()
        return GENESIS if tip is None else tip.hash

    def append(self, kind: str, dataset: str, content: dict[str, Any], total: str | None = None) -> int:
        """Add a record, with the new running total if it changes; it exists once the transaction ends well."""
        tip = self.tip()
        assert tip is not None  # checked when the lock was taken
        if total is not None:
            content = content | {"total": digest_of(total)}
        body = json.dumps(content, sort_keys=True)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        draft = Record(tip.number + 1, kind, dataset, body, now, "")
        found = Tip(draft.number, draft.digest(tip.hash))
        self._open.execute(tables().records.insert().values({**vars(draft), "hash": found.hash}))
        self._open.execute(tables().tip.update().values(vars(found)))
        if total is not None:
            self._keep_total(dataset, draft.number, total)
        return draft.number

    def _keep_total(self, dataset: str, number: int, total: str) -> None:
        if not self._has_totals:
            add_totals(self._open)
            self._has_totals = True
        table = tables().totals
        self._open.execute(table.delete().where(table.c.dataset == dataset))
        self._open.execute(table.insert().values(dataset=dataset, number=number, total=total))


class Chain:
    """The records at one address; threads and processes may share it, nothing exists before `writing(create=True)`."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = absolute_url(url)
        self.store = store_at(self.url)
        self._seen = Tip(0, GENESIS)  # the latest record that this object has seen; there may only be more of them

    def read(self) -> tuple[list[Record], list[str]]:
        """Return all records, oldest first, and what is wrong with them."""
        records, _, wrong = self.everything()
        return records, wrong

    def everything(self) -> tuple[list[Record], dict[str, tuple[int, str]], list[str]]:
        """Return all records, all running totals, and what is wrong with the records."""
        seen = self._seen
        if not self.store.exists():
            return [], {}, _older(View(None), seen)
        with self.store.reading() as connection:
            view = View(connection)
            records = view.records()
            return records, view.totals(), problems(records, view.tip()) or _older(view, seen)

    @contextmanager
    def viewing(self) -> Iterator[View]:
        """See one moment of the records, whose latest are intact; where there is no ledger, see none."""
        seen = self._seen  # asked first: what is read from now on holds at least this
        if not self.store.exists():
            _require_newer(View(None), seen)
            yield View(None)
            return
        with self.store.reading() as connection:
            view = View(connection)
            view.check_latest()
            _require_newer(view, seen)
            self._seen = view.tip() or seen
            yield view

    @contextmanager
    def writing(self, create: bool = False) -> Iterator[Writer]:
        """Hold the write lock from the first statement on, so that what is read here is final."""
        seen = self._seen
        if create and not self.store.exists():
            _require_newer(View(None), seen)
            self.store.create()
        with self.store.writing() as connection:
            writer = Writer(connection)
            _require_newer(writer, seen)
            yield writer
            written = writer.tip()
        self._seen = written or seen


def _older(view: View, seen: Tip) -> list[str]:
    """What is wrong if the view lacks a record that was seen before, as in an older copy that was put back."""
    if seen.number == 0 or [record.hash for record in view.records(seen.number, seen.number)] == [seen.hash]:
        return []
    return [f"record {seen.number} is gone, which was there before: an older copy was put back, or a ledger rewritten"]


def _require_newer(view: View, seen: Tip) -> None:
    for problem in _older(view, seen):
        raise _damaged(problem)


def _record(row: Sequence[Any]) -> Record:
    """Return a row as a record; SQLite lets any column hold anything."""
    if not isinstance(row[0], int) or not all(isinstance(field, str) for field in row[1:]):
        raise ChainError(f"the ledger was damaged: record {row[0]!r} cannot be read")
    return Record(*row)


def digest_of(total: str) -> str:
    """Return the hash by which a record speaks of a running total."""
    return hashlib.sha256(total.encode()).hexdigest()


def _damaged(problem: str) -> ChainError:
    return ChainError(f"the ledger was damaged, it grants nothing more: {problem}")
