"""A database for the ledger: its address, its connections and transactions, and what it must be able to do."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.privacy.ledger.records import ChainError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

MEMORY = "sqlite://"


def absolute_url(url: str | os.PathLike[str]) -> str:
    """Return a database URL that means the same from every working directory; symbolic links are followed.

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


def without_password(url: str) -> str:
    """Return the address as it may be shown."""
    from sqlalchemy import make_url

    return make_url(url).set(query={}).render_as_string()


def file_of(url: str) -> Path:
    """Return the file behind the address of a ledger in SQLite."""
    from sqlalchemy import make_url

    return Path(str(make_url(url).database))


def _absolute_file(parsed: URL) -> str:
    from sqlalchemy import make_url

    if parsed.database in (None, "", ":memory:"):
        return MEMORY
    path = str(Path(str(parsed.database)).expanduser().resolve())
    text = parsed.set(database=path).render_as_string()
    if parsed.query or str(parsed.database).startswith("file:") or make_url(text).database != path:
        raise ValueError(f"the ledger needs a plain file path, without '?', got {parsed.database!r}")
    return text


# For `create_engine`: transactions are begun and ended here, in the words of each database.
EXPLICIT_TRANSACTIONS = {"isolation_level": "AUTOCOMMIT"}
PAUSES = (0.01, 0.05, 0.2)  # seconds between attempts to open a file


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the errors of a database into those of the ledger, one line each."""
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeout

    try:
        yield
    except PoolTimeout as error:
        raise TimeoutError("the ledger did not answer (other threads are using it); nothing was written") from error
    except UnicodeDecodeError as error:
        raise ChainError("the ledger's file is damaged: it holds text that cannot be read") from error
    except DBAPIError as error:
        raise _translated(error.orig) from error


def _translated(error: BaseException | None) -> Exception:
    reason = str(error).partition("\n")[0]
    if type(error).__module__ == "sqlite3":
        return _error_of_file(getattr(error, "sqlite_errorname", ""), reason)
    return _error_of_server(getattr(error, "sqlstate", None), reason)


def _error_of_file(name: str, reason: str) -> Exception:
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return TimeoutError(f"the ledger did not answer ({reason}); nothing was written")
    if name == "SQLITE_FULL":
        return OSError("the disk of the ledger is full; nothing was written")
    if name.startswith("SQLITE_READONLY"):
        return OSError(f"the ledger's file is read-only for this user ({reason}); nothing was written")
    if name.startswith("SQLITE_CANTOPEN"):
        return OSError(f"the ledger's file cannot be opened, or its folder cannot be written ({reason})")
    if name.startswith(("SQLITE_IOERR", "SQLITE_PERM")):
        return OSError(f"the ledger's file cannot be used: {reason}")
    return ChainError(f"the ledger's file is damaged, or is no ledger: {reason}")


def _error_of_server(code: str | None, reason: str) -> Exception:
    if code is None:  # no answer: a write may have arrived, and would then be counted
        return TimeoutError(f"the ledger's database did not answer ({reason}); nothing was granted")
    if code == "55P03":  # a lock was not given in time
        return TimeoutError(f"the ledger did not answer ({reason}); nothing was written")
    if code == "42P01":  # a table is missing
        return ChainError(f"the ledger's database is damaged, or holds no ledger: {reason}")
    return OSError(f"the ledger's database refused: {reason}")


def patiently_opened(engine: Engine) -> Connection:
    """A new connection; nothing has been read or written yet, so that opening it may be tried again.

    While another process undoes an interrupted write, SQLite may take the vanishing journal for an error of the disk.
    """
    from sqlalchemy.exc import OperationalError

    for pause in PAUSES:
        try:
            return engine.connect()
        except OperationalError as error:
            if "disk I/O error" not in str(error.orig):
                raise
            time.sleep(pause)
    return engine.connect()


@contextmanager
def connected(engine: Engine) -> Iterator[Connection]:
    """A connection, closed afterwards by the process that opened it and by no other."""
    process, connection = os.getpid(), patiently_opened(engine)
    try:
        yield connection
    finally:
        if os.getpid() == process:
            connection.close()
        else:  # closing, also when Python exits, would undo what the parent is writing
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection.connection.dbapi_connection))


@contextmanager
def transaction(connection: Connection, begin: str) -> Iterator[None]:
    process = os.getpid()
    connection.exec_driver_sql(begin)
    try:
        yield
        if os.getpid() != process:
            raise RuntimeError("the process was forked inside a transaction of the ledger; only the parent writes it")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        if os.getpid() == process:
            # Some failures have ended the transaction already.
            with suppress(Exception):
                connection.exec_driver_sql("ROLLBACK")
        raise


def say_first(engine: Engine, *statements: str) -> None:
    """Execute settings on every new connection."""
    from sqlalchemy import event

    def say(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    event.listen(engine, "connect", say)


class Store(Protocol):
    """A place where the tables of a ledger are."""

    def exists(self) -> bool:
        """Whether there is a ledger."""

    def create(self) -> None:
        """Make an empty ledger if there is none; several processes may do so at the same moment."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that sees one moment of the database."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection that sees what all earlier writers wrote, and keeps later ones waiting."""

    def faults(self) -> list[str]:
        """What keeps the database itself from being used, in plain words."""

    def backup(self, path: Path) -> None:
        """Copy everything to a new SQLite file; refuse a file that exists."""


def store_at(url: str) -> Store:
    """Return the database at an absolute address."""
    from discreet.privacy.ledger.databases import FileStore, MemoryStore, ServerStore

    if url == MEMORY:
        return MemoryStore()
    return FileStore(url) if url.startswith("sqlite") else ServerStore(url)
