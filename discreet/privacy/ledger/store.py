"""What a ledger asks of the database that keeps it: one connection at a time, inside a transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from discreet.privacy.ledger.address import MEMORY

if TYPE_CHECKING:
    from sqlalchemy import Connection


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
    from discreet.privacy.ledger.server_store import ServerStore
    from discreet.privacy.ledger.sqlite_store import FileStore, MemoryStore

    if url == MEMORY:
        return MemoryStore()
    return FileStore(url) if url.startswith("sqlite") else ServerStore(url)
