"""Where a ledger lives: addresses that mean the same from every working directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import URL

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
