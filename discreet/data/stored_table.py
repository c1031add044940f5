"""Tables that stay where they are stored and are read block by block, as often as a solver asks.

`StoredTable` is to a file what `Table` is to an array: columns with names, not yet encoded for a loss. `StoredRows`
implements `Rows`: it gives the same blocks of numbers as the same rows in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discreet._common.types import FloatArray, Progress
from discreet.data.arrow_columns import read_features, read_target, wanted_columns
from discreet.data.arrow_dataset import DatasetSource, is_dataset
from discreet.data.rows import Data, block_rows, sum_over_blocks
from discreet.data.schema import Column, Schema, Target

Encoder = Callable[[Any], FloatArray]


class BatchSource(Protocol):
    """Where the columns of a stored table come from; `ParquetTableFile` and `DatasetSource` are such sources."""

    @property
    def kinds(self) -> dict[str, str]: ...

    @property
    def rows(self) -> int | None: ...

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        """The wanted columns as Arrow batches of at most so many rows, in the same order at every call."""
        ...


@dataclass(frozen=True, eq=False)
class StoredTable:
    """A table that stays in its files, read through a schema; estimators take it as X.

    `convert` is applied to each block of the target as it is read; None leaves it as it is.
    """

    source: BatchSource
    schema: Schema
    convert: Callable[[Any], Any] | None = None

    @property
    def names(self) -> list[str]:
        return self.schema.feature_names

    @property
    def rows(self) -> int:
        """The number of rows that the source states."""
        rows = self.source.rows
        assert rows is not None, "only files that state their number of rows are read out of core"
        return rows

    def map_target(self, convert: Callable[[Any], Any]) -> StoredTable:
        """The same table with another target, value by value."""
        return replace(self, convert=convert)

    def targets(self) -> Iterator[Any]:
        """The target alone, block by block."""
        target = self.schema.target
        for batch in self.source.batches([str(target.name)], block_rows(1)):
            yield self._converted(read_target(self.source, batch, target))

    def check(self, progress: Progress | None = None) -> None:
        """Read all rows once and refuse what could not be learned from; to be called before anything is released."""
        self.encoded(_no_labels, progress)

    def encoded(self, encode: Encoder, progress: Progress | None = None) -> StoredRows:
        """The rows with the target encoded as a loss expects it, after one pass that checks all of them.

        Raises
        ------
        ValueError
            A column is missing or is not what the schema says, a number is missing or infinite, or a label is unknown.
        """
        wanted_columns(self.source, self.source.kinds, self.schema, target=True)
        found = 0
        for block in StoredRows(self, encode, self.rows)._read():
            found += block.rows
            if progress is not None:
                progress(found, self.rows)
        if not found:
            raise ValueError(f"{self.source} has a header but no rows.")
        return StoredRows(self, encode, found)

    def _converted(self, values: Any) -> Any:
        return values if self.convert is None else self.convert(values)


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Checked rows of a stored table with an encoded target; one block of them lies in memory at a time."""

    table: StoredTable
    encode: Encoder
    rows: int

    @property
    def columns(self) -> int:
        return len(self.table.names)

    @property
    def sparse(self) -> bool:
        return False

    @property
    def in_memory(self) -> bool:
        return False

    def blocks(self) -> Iterator[Data]:
        """The rows in their order; every block but the last has `block_rows(columns)` of them."""
        found = 0
        for block in self._read():
            found += block.rows
            yield block
        if found != self.rows:
            raise ValueError(f"{self.table.source} changed while it was read; train again on a file that stays.")

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self.blocks(), part)

    def _read(self) -> Iterator[Data]:
        """Batches come in whatever sizes the files have; blocks do not."""
        size, source, schema = block_rows(self.columns), self.table.source, self.table.schema
        X, y, filled = np.empty((size, self.columns)), np.empty(size), 0
        for batch in source.batches(wanted_columns(source, source.kinds, schema, target=True), size):
            start = 0
            while start < batch.num_rows:
                part = batch.slice(start, size - filled)
                new = slice(filled, filled + part.num_rows)
                read_features(source, part, schema, X[new])
                y[new] = self.encode(self.table._converted(read_target(source, part, schema.target)))
                start, filled = start + part.num_rows, new.stop
                if filled == size:
                    yield Data(X, y)
                    X, y, filled = np.empty((size, self.columns)), np.empty(size), 0
        if filled:
            yield Data(X[:filled], y[:filled])
        _release_memory()


def _no_labels(values: Any) -> FloatArray:
    """An encoder for a pass that only checks: any label will do."""
    return np.zeros(len(values))


def is_stored(X: Any) -> bool:
    """Whether X is a table that stays where it is stored."""
    return isinstance(X, StoredTable) or is_dataset(X)


def as_stored_table(X: Any, target: Any, classes: Any = None) -> StoredTable:
    """A stored table as it is, or a data set in which every column but the target is a number.

    `classes` are the declared labels; labels that are texts let the target be read as text.
    """
    if isinstance(X, StoredTable):
        if target is not None and target != X.schema.target.name:
            raise ValueError(f"y names the column {target!r}, but the schema's target is {X.schema.target.name!r}.")
        return X
    if not isinstance(target, str):
        raise ValueError("with a data set y is the name of the target's column; pass fit(dataset, 'name').")
    source = DatasetSource(X)
    labels = None if classes is None else tuple(np.asarray(classes).tolist())
    columns = tuple(Column(name) for name in source.kinds if name != target)
    return StoredTable(source, Schema(columns, Target(target, labels)))


def machine_memory() -> int | None:
    """Bytes of memory that the machine has; None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _release_memory() -> None:
    """Give what a pass over the files has used back, so that passes do not add up."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
