"""Ledgers in PostgreSQL, in a SQLite file, and in memory."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.privacy.ledger import locks
from discreet.privacy.ledger.locks import FORKS
from discreet.privacy.ledger.records import ChainError, create_tables, has_tables
from discreet.privacy.ledger.store import (
    EXPLICIT_TRANSACTIONS,
    MEMORY,
    connected,
    file_of,
    plain_errors,
    say_first,
    transaction,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class ServerStore:
    """Tables in a PostgreSQL database; the row of the latest record is the lock."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._seen = False

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import NullPool, create_engine

        try:
            engine = create_engine(self._url, poolclass=NullPool, **EXPLICIT_TRANSACTIONS)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{error}; a ledger in PostgreSQL needs discreet[postgres]") from error
        # A server may be told to answer before a grant is on its disk; not to us.
        waiting = f"SET lock_timeout = {1000 * locks.WAIT_SECONDS:.0f}"
        say_first(engine, waiting, "SET synchronous_commit = on")
        return engine

    def exists(self) -> bool:
        if not self._seen:
            with self._session() as connection:
                self._seen = has_tables(connection)
        return self._seen

    def create(self) -> None:
        with self._session() as connection, transaction(connection, "BEGIN"):
            # Creating a table takes no lock that another process would wait for.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8212023)")
            if not has_tables(connection):
                create_tables(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._session() as connection, transaction(connection, begin):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        with self._session() as connection, transaction(connection, begin):
            # Each statement after this one sees all that earlier holders of the lock wrote.
            connection.exec_driver_sql("SELECT number FROM discreet_tip FOR UPDATE")
            yield connection

    def faults(self) -> list[str]:
        try:
            if not self.exists():
                return ["there is no ledger in this database"]
            with self._session() as connection:
                writable = "SELECT has_table_privilege('discreet_records', 'INSERT') AND NOT pg_is_in_recovery()"
                read_only = connection.exec_driver_sql("SHOW default_transaction_read_only").scalar() == "on"
                if read_only or not connection.exec_driver_sql(writable).scalar():
                    return ["the database is read-only for this user: nothing can be reserved"]
        except (ChainError, OSError) as error:
            return [str(error)]
        return []

    def backup(self, path: Path) -> None:
        raise ValueError("a ledger in PostgreSQL is copied by the tools of its server, such as pg_dump")

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        with FORKS.using(), plain_errors(), connected(self._engine) as connection:
            yield connection


class FileStore:
    """A SQLite file with a rollback journal, which needs no second file between writes."""

    def __init__(self, url: str) -> None:
        self.path = file_of(url)
        self._engine = _sqlite_engine(url)

    def exists(self) -> bool:
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"the ledger's folder does not exist: {self.path.parent}")
        return self.path.exists()

    def create(self) -> None:
        with FORKS.using(), plain_errors():
            locks.create(self.path, _make_file)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._session(exclusive=False) as connection, transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._session(exclusive=True) as connection:
            # Files of earlier versions keep a write-ahead log, which is found by the file's name only.
            mode = connection.exec_driver_sql("PRAGMA journal_mode = DELETE").scalar()
            if mode != "delete":
                raise TimeoutError(f"the ledger did not answer (its journal mode is {mode!r}); nothing was written")
            with transaction(connection, "BEGIN IMMEDIATE"):
                yield connection

    def faults(self) -> list[str]:
        try:
            if not self.exists():
                return [f"there is no ledger at {self.path}"]
            with self._session(exclusive=False) as connection:
                found = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check(3)")]
                damage = [f"the file is damaged: {' '.join(text.split())}" for text in found if text != "ok"]
        except (ChainError, OSError) as error:
            return [str(error)]
        for place in (self.path, self.path.parent):
            if not os.access(place, os.W_OK):
                damage.append(f"{place} is read-only: nothing can be reserved")
        return damage

    def backup(self, path: Path) -> None:
        with self._session(exclusive=False) as connection:
            _copy(connection, path)

    @contextmanager
    def _session(self, exclusive: bool) -> Iterator[Connection]:
        with FORKS.using(), plain_errors():
            if not self.path.is_file():
                raise FileNotFoundError(f"there is no ledger at {self.path}")
            with self._held(exclusive), connected(self._engine) as connection:
                if not has_tables(connection):
                    raise ChainError(f"{self.path} is a database without a ledger")
                yield connection

    @contextmanager
    def _held(self, exclusive: bool) -> Iterator[None]:
        """Hold the file, alone if asked to or if a write was interrupted.

        A journal that is there while nobody writes is that of a writer that was killed. Whoever opens the file first
        undoes its write: two readers that did so at the same time would take the journal away from each other.
        """
        if not exclusive:
            with locks.locked(self.path, exclusive=False):
                if not self.path.with_name(self.path.name + "-journal").exists():
                    yield
                    return
        with locks.locked(self.path, exclusive=True):
            yield


class MemoryStore:
    """A database that ends with the process."""

    def __init__(self) -> None:
        from sqlalchemy import QueuePool, create_engine

        # One connection, lent to one thread at a time: a second would be a second, empty database.
        settings = {"pool_size": 1, "max_overflow": 0, "pool_timeout": locks.WAIT_SECONDS}
        anywhere = {"check_same_thread": False}
        self._process = os.getpid()
        self._engine = create_engine(
            MEMORY, poolclass=QueuePool, connect_args=anywhere, **EXPLICIT_TRANSACTIONS, **settings
        )
        weakref.finalize(self, self._engine.dispose)
        with FORKS.using(), connected(self._engine) as connection:
            create_tables(connection)

    def exists(self) -> bool:
        return True

    def create(self) -> None:
        pass

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.writing() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if os.getpid() != self._process:
            raise RuntimeError("an in-memory ledger cannot be shared between processes; use a file")
        with (
            FORKS.using(),
            plain_errors(),
            connected(self._engine) as connection,
            transaction(connection, "BEGIN IMMEDIATE"),
        ):
            yield connection

    def faults(self) -> list[str]:
        return []

    def backup(self, path: Path) -> None:
        with FORKS.using(), plain_errors(), connected(self._engine) as connection:
            _copy(connection, path)


def _sqlite_engine(url: str) -> Engine:
    from sqlalchemy import NullPool, create_engine

    timeout = {"timeout": locks.WAIT_SECONDS}
    engine = create_engine(url, poolclass=NullPool, connect_args=timeout, **EXPLICIT_TRANSACTIONS)
    # The journal's removal ends a write. Only EXTRA waits until the disk knows of it: after a power cut, the journal
    # of a granted reservation would be found again, and undo it.
    say_first(engine, "PRAGMA synchronous = EXTRA")
    return engine


def _make_file(path: Path) -> None:
    from sqlalchemy import URL

    engine = _sqlite_engine(URL.create("sqlite", database=str(path)).render_as_string())
    with connected(engine) as connection, transaction(connection, "BEGIN IMMEDIATE"):
        create_tables(connection)


def _copy(connection: Connection, path: Path) -> None:
    """Copy a SQLite database by SQLite's own means, which never see half a write."""

    def fill(draft: Path) -> None:
        import sqlite3

        source: Any = connection.connection.dbapi_connection
        try:
            with closing(sqlite3.connect(draft)) as target:
                source.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            raise OSError(f"the ledger was not copied to {path}: {error}") from error

    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder of the copy does not exist: {path.parent}")
    if not locks.create(path, fill):
        raise FileExistsError(f"{path} exists; a backup needs the path of a new file")
