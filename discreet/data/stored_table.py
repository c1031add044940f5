"""Tables that stay where they are stored and are read block by block, as often as a solver asks.

`StoredTable` is to a file what `Table` is to an array: columns with names, not yet encoded for a loss. `StoredRows`
implements `Rows`: it gives the same blocks of numbers as the same rows in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discreet._common.types import BoolArray, FloatArray, Progress
from discreet.data.arrow_columns import read_features, read_target, wanted_columns
from discreet.data.arrow_dataset import DatasetSource
from discreet.data.invalid_rows import null_rows
from discreet.data.read_ahead import read_ahead
from discreet.data.rows import Data, DenseElsewhere, Rows, block_rows, max_over_blocks, sum_over_blocks
from discreet.data.schema import Column, Schema, Target

Encoder = Callable[[Any], FloatArray]


class BatchSource(Protocol):
    """Where the columns of a stored table come from; `ParquetTableFile` and `DatasetSource` are such sources."""

    @property
    def kinds(self) -> dict[str, str]: ...

    @property
    def rows(self) -> int | None: ...

    def batches(self, wanted: list[str], rows: int) -> Generator[Any, None, None]:
        """The wanted columns as Arrow batches of at most so many rows, in the same order at every call."""
        ...


@dataclass(frozen=True, eq=False)
class StoredTable:
    """A table that stays in its files, read through a schema; estimators take it as X.

    `convert` is applied to each block of the target as it is read; None leaves it as it is. `named` says whether the
    names of the columns are the user's own, `booleans` which columns are declared to be 0 or 1 by their type. `null` is
    the encoded target of rows that cannot be read, which then count as null rows; None refuses the table for them.
    """

    source: BatchSource
    schema: Schema
    convert: Callable[[Any], Any] | None = None
    named: bool = True
    booleans: BoolArray | None = None
    null: float | None = None

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

    def sum_of_targets(self, part: Callable[[Any], FloatArray]) -> FloatArray:
        """The sum of what the part gives for blocks of the target alone."""
        target = self.schema.target
        batches = self.source.batches([str(target.name)], block_rows(1))
        return sum_over_blocks((self._converted(read_target(self.source, batch, target)) for batch in batches), part)

    def check(self, progress: Progress | None = None) -> None:
        """Read all rows once and refuse what could not be learned from; to be called before anything is released."""
        self.encoded(_no_labels, progress)

    def encoded(self, encode: Encoder, progress: Progress | None = None) -> Rows:
        """The rows with the target encoded as a loss expects it, after one pass that checks all of them.

        Raises
        ------
        ValueError
            A column is missing or is not what the schema says, a number is missing or infinite, or a label is unknown.
        """
        wanted_columns(self.source, self.source.kinds, self.schema, target=True)
        count = 0
        for block in StoredRows(self, encode, self.rows)._read():
            count += block.rows
            if progress is not None:
                progress(count, self.rows)
        if not count:
            raise ValueError(f"{self.source} has a header but no rows.")
        return StoredRows(self, encode, count)

    def _converted(self, values: Any) -> Any:
        return values if self.convert is None else self.convert(values)


@dataclass(frozen=True, eq=False)
class StoredRows(DenseElsewhere):
    """Checked rows of a stored table with an encoded target.

    The blocks that come next are read and decoded while the present one is used, so that three of them lie in memory.
    """

    table: StoredTable
    encode: Encoder
    rows: int
    first: int = 0  # the place of its first row, where it is a part of a larger table

    @property
    def columns(self) -> int:
        return len(self.table.names)

    def blocks(self) -> Iterator[Data]:
        """The rows in their order; every block but the last has `block_rows(columns)` of them."""
        count = 0
        for block in read_ahead(self._read()):
            count += block.rows
            yield block
            del block
        if count != self.rows:
            raise ValueError(f"{self.table.source} changed while it was read; train again on a file that stays.")

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self.blocks(), forgetting(part))

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return max_over_blocks(self.blocks(), forgetting(part))

    def _target(self, part: Any) -> FloatArray:
        """The encoded target; zeros where the schema has none."""
        source, target = self.table.source, self.table.schema.target
        if target.name is None:
            return np.zeros(part.num_rows)
        return self.encode(
            self.table._converted(read_target(source, part, target, neutral=self.table.null is not None))
        )

    def _read(self) -> Generator[Data, None, None]:
        """The blocks, each read when it is asked for; what the pass has used is given back at its end."""
        try:
            yield from self._cut()
        finally:
            _release_memory()

    def _cut(self) -> Iterator[Data]:
        """Batches come in whatever sizes the files have; blocks do not."""
        size, source, schema = block_rows(self.columns), self.table.source, self.table.schema
        columns, y, start, filled = np.empty((self.columns, size)), np.empty(size), self.first, 0
        wanted, null = wanted_columns(source, source.kinds, schema, target=True), self.table.null
        with closing(read_ahead(source.batches(wanted, size), 1)) as batches:
            for batch in batches:
                used = 0
                while used < batch.num_rows:
                    part = batch.slice(used, size - filled)
                    new = slice(filled, filled + part.num_rows)
                    read_features(source, part, schema, columns[:, new].T, neutral=null is not None)
                    y[new] = self._target(part)
                    used, filled = used + part.num_rows, new.stop
                    if filled == size:
                        yield _block(columns, y, start, null)
                        start, filled = start + size, 0
        if filled:
            yield _block(columns[:, :filled], y[:filled], start, null)


def _block(columns: FloatArray, y: FloatArray, start: int, null: float | None) -> Data:
    """A copy, row by row, of what is held column by column.

    Also of one column, which lies row by row already: the next block overwrites what is held.
    """
    block = Data(np.array(columns.T, order="C"), y.copy(), start=start)
    return block if null is None else null_rows(block, null)


def forgetting(part: Callable[[Data], FloatArray]) -> Callable[[Data], FloatArray]:
    """The part, after which a block keeps nothing of what was computed of it.

    That refers back to the block, whose memory would then wait for the garbage collector.
    """

    def once(block: Data) -> FloatArray:
        try:
            return part(block)
        finally:
            block.kept.clear()

    return once


def _no_labels(values: Any) -> FloatArray:
    """An encoder for a pass that only checks: any label will do."""
    return np.zeros(len(values))


def table_of_dataset(dataset: Any, target: Any, classes: Any = None) -> StoredTable:
    """A data set in which every column but the target is a number.

    `classes` are the declared labels; labels that are texts let the target be read as text.
    """
    if not isinstance(target, str):
        raise ValueError("with a data set y is the name of the target's column; pass fit(dataset, 'name').")
    source = DatasetSource(dataset)
    labels = None if classes is None else tuple(np.unique(np.asarray(classes)).tolist())
    columns = tuple(Column(name) for name in source.kinds if name != target)
    return StoredTable(source, Schema(columns, Target(target, labels)))


def features_of_dataset(dataset: Any) -> StoredTable:
    """A data set without a target, in which every column is a number."""
    source = DatasetSource(dataset)
    return StoredTable(source, Schema(tuple(map(Column, source.kinds)), Target(None)))


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
