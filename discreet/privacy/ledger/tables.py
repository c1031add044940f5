"""The tables of a ledger: records, the latest of them, and the running total of each data set."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from discreet.privacy.ledger.records import GENESIS

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


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
    from sqlalchemy import insert

    tables().tip.metadata.create_all(connection)
    connection.execute(insert(tables().tip).values(id=1, number=0, hash=GENESIS))


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
