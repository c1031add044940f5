"""Append-only records in SQLite or PostgreSQL, chained by SHA-256; the ledger's memory.

Nothing here knows about privacy. A record is never changed: what happens later is a later record.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Table

GENESIS = "0" * 64
MEMORY = "sqlite://"
WAIT_SECONDS = 60.0


class ChainError(RuntimeError):
    """The stored records do not form the chain that was written."""


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


@dataclass(frozen=True)
class Tip:
    """Number and hash of the latest record, kept in a row of its own that is also the write lock."""

    number: int
    hash: str


class Writer:
    """The right to append, held for one transaction; `records` cannot change meanwhile."""

    def __init__(self, connection: Connection, records: list[Record], tip: Tip) -> None:
        self.records = records
        self._connection = connection
        self._tip = tip

    @property
    def head(self) -> str:
        """Hash of the record that was appended last."""
        return self._tip.hash

    def append(self, kind: str, dataset: str, content: dict[str, Any]) -> int:
        """Add a record and return its number; it exists once the transaction ends well."""
        from sqlalchemy import insert, update

        table, tip_table = _tables()
        body = json.dumps(content, sort_keys=True)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        draft = Record(self._tip.number + 1, kind, dataset, body, now, "")
        self._tip = Tip(draft.number, draft.digest(self._tip.hash))
        self._connection.execute(insert(table).values({**vars(draft), "hash": self._tip.hash}))
        self._connection.execute(update(tip_table).values(vars(self._tip)))
        return draft.number


class Chain:
    """The records at one address; threads and processes may share it, nothing exists before first use."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = absolute_url(url)
        self._made: Engine | None = None
        self._making = threading.Lock()
        self._process = os.getpid()

    def read(self) -> tuple[list[Record], list[str]]:
        """Return all records, oldest first, and what is wrong with them."""
        with self._engine().connect() as connection:
            records, tip = _snapshot(connection)
        return records, problems(records, tip)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the write lock from the first statement on, so that what is read here is final."""
        from sqlalchemy import update
        from sqlalchemy.exc import OperationalError

        _, tip_table = _tables()
        with self._engine().begin() as connection:
            try:
                connection.execute(update(tip_table).values(number=tip_table.c.number))
            except OperationalError as error:
                reason = str(error.orig).partition("\n")[0]
                raise TimeoutError(f"the ledger did not answer ({reason}); nothing was written") from error
            records, tip = _snapshot(connection)
            found = problems(records, tip)
            if found or tip is None:
                raise ChainError(f"the ledger was damaged, it grants nothing more: {found[0]}")
            yield Writer(connection, records, tip)

    def _engine(self) -> Engine:
        if self.url == MEMORY and os.getpid() != self._process:
            raise RuntimeError("an in-memory ledger cannot be shared between processes; use a file")
        with self._making:
            if self._made is None:
                self._made = _make_engine(self.url)
                weakref.finalize(self, self._made.dispose)
            return self._made


def problems(records: Sequence[Record], tip: Tip | None) -> list[str]:
    """Walk the chain and say, record by record, where it does not hold."""
    found: list[str] = []
    previous, expected = GENESIS, 1
    for record in records:
        if record.number != expected:
            found.append(f"{_numbers(expected, record.number - 1)} missing")
        elif record.digest(previous) != record.hash:
            found.append(f"record {record.number} ({record.kind} {record.dataset!r}) was altered")
        previous, expected = record.hash, record.number + 1
    if tip is None:
        found.append("the row that remembers the latest record is missing")
    elif tip.number >= expected:
        found.append(f"{_numbers(expected, tip.number)} missing")
    elif tip != Tip(expected - 1, previous):
        found.append("the row that remembers the latest record was altered")
    return found


def absolute_url(url: str | os.PathLike[str]) -> str:
    """Return a database URL that means the same from every working directory.

    Raises
    ------
    ValueError
        For a database other than SQLite and PostgreSQL, whose locking was not checked.
    """
    from sqlalchemy import URL, make_url

    text = os.fspath(url)
    if not text:
        raise ValueError("the ledger needs a path or a URL, got an empty string")
    parsed = make_url(text) if "://" in text else URL.create("sqlite", database=text)
    if parsed.get_backend_name() == "postgresql":
        driver = "postgresql+psycopg" if parsed.drivername == "postgresql" else parsed.drivername
        return parsed.set(drivername=driver).render_as_string(hide_password=False)
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(f"a ledger lives in SQLite or PostgreSQL, not in {parsed.get_backend_name()!r}")
    return _absolute_file(parsed)


def _absolute_file(parsed: URL) -> str:
    from sqlalchemy import make_url

    if parsed.database in (None, "", ":memory:"):
        return MEMORY
    path = str(Path(str(parsed.database)).expanduser().resolve())
    text = parsed.set(database=path).render_as_string()
    if parsed.query or str(parsed.database).startswith("file:") or make_url(text).database != path:
        raise ValueError(f"the ledger needs a plain file path, without '?', got {parsed.database!r}")
    return text


def _numbers(first: int, last: int) -> str:
    return f"record {first} is" if first == last else f"records {first} to {last} are"


@cache
def _tables() -> tuple[Table, Table]:
    from sqlalchemy import Column, Integer, MetaData, String, Table, Text

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
    tip = Table(
        "discreet_tip",
        metadata,
        Column("id", Integer, primary_key=True, autoincrement=False),
        Column("number", Integer, nullable=False),
        Column("hash", String(64), nullable=False),
    )
    return records, tip


def _snapshot(connection: Connection) -> tuple[list[Record], Tip | None]:
    """Read records and tip in one statement: two would not see the same moment."""
    from sqlalchemy import select, true

    table, tip_table = _tables()
    columns = (tip_table.c.number, tip_table.c.hash, *table.c)
    joined = tip_table.outerjoin(table, true())
    rows = connection.execute(select(*columns).select_from(joined).order_by(table.c.number)).all()
    tip = Tip(rows[0][0], rows[0][1]) if rows else None
    return [Record(*row[2:]) for row in rows if row[2] is not None], tip


def _make_engine(url: str) -> Engine:
    """Connect and create the tables; several processes may do so at the same moment."""
    if url == MEMORY:
        engine = _memory_engine()
    else:
        engine = _file_engine(url) if url.startswith("sqlite") else _server_engine(url)
    _create_tables(engine)
    return engine


def _memory_engine() -> Engine:
    """One connection, lent to one thread at a time: a second would be a second, empty database."""
    from sqlalchemy import QueuePool, create_engine

    settings = {"pool_size": 1, "max_overflow": 0, "pool_timeout": WAIT_SECONDS}
    anywhere = {"check_same_thread": False}
    return create_engine(MEMORY, poolclass=QueuePool, connect_args=anywhere, **settings)


def _file_engine(url: str) -> Engine:
    from sqlalchemy import NullPool, create_engine, make_url

    folder = Path(str(make_url(url).database)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the ledger's folder does not exist: {folder}")
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": WAIT_SECONDS})
    # Some builds of SQLite lower this under a write-ahead log; a power cut would then forget spending.
    _first_say(engine, "PRAGMA synchronous = FULL")
    return engine


def _server_engine(url: str) -> Engine:
    from sqlalchemy import NullPool, create_engine

    try:
        engine = create_engine(url, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; a ledger in PostgreSQL needs discreet[postgres]") from error
    _first_say(engine, f"SET lock_timeout = {1000 * WAIT_SECONDS:.0f}")
    return engine


def _first_say(engine: Engine, statement: str) -> None:
    """Execute a setting on every new connection."""
    from sqlalchemy import event

    def say(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()
        connection.commit()

    event.listen(engine, "connect", say)


def _create_tables(engine: Engine) -> None:
    """Create everything in one transaction, so that a half-made ledger is never seen."""
    from sqlalchemy import insert, inspect
    from sqlalchemy.exc import OperationalError
    from sqlalchemy.schema import CreateTable

    records, tip = _tables()
    if inspect(engine).has_table(tip.name):
        return
    sqlite = engine.dialect.name == "sqlite"
    if sqlite and engine.url.database:
        # Refused when another process switches it at this moment, which serves as well.
        with engine.connect() as connection, suppress(OperationalError):
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    with engine.begin() as connection:
        # Neither database locks by itself before it creates a table.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "SELECT pg_advisory_xact_lock(8212023)")
        if not inspect(connection).has_table(tip.name):
            connection.execute(CreateTable(records))
            connection.execute(CreateTable(tip))
            connection.execute(insert(tip).values(id=1, number=0, hash=GENESIS))
