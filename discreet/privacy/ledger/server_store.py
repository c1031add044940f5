"""A ledger in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.privacy.ledger import file_lock
from discreet.privacy.ledger.forks import FORKS
from discreet.privacy.ledger.records import ChainError
from discreet.privacy.ledger.tables import create_tables, has_tables
from discreet.privacy.ledger.transaction import EXPLICIT_TRANSACTIONS, connected, plain_errors, say_first, transaction

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
        waiting = f"SET lock_timeout = {1000 * file_lock.WAIT_SECONDS:.0f}"
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
