"""Tables that do not lie in this process, for what needs only sums over their rows: Dask tables and stored ones."""

from __future__ import annotations

from typing import Any

from discreet.data.arrow_dataset import DatasetSource, is_dataset
from discreet.data.schema import Column, Schema, Target
from discreet.data.stored_table import StoredTable, as_stored_table, is_stored
from discreet.distributed.dask_tables import is_dask, table_of_dask


def is_elsewhere(X: Any) -> bool:
    """Whether X is a Dask table, a `pyarrow.dataset`, or a table that stays in its files."""
    return is_dask(X) or is_stored(X)


def table_elsewhere(X: Any, y: Any = None, classes: Any = None) -> StoredTable:
    """The table with its target, which y names; without y all columns are features."""
    if is_dask(X):
        return table_of_dask(X, y, classes)
    if y is None and is_dataset(X):
        source = DatasetSource(X)
        return StoredTable(source, Schema(tuple(map(Column, source.kinds)), Target(None)))
    return as_stored_table(X, y, classes)
