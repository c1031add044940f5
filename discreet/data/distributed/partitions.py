"""Pieces of a table that any worker can load, as often as needed, and runs of consecutive rows of several of them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from discreet.data.arrow_columns import _COLUMN_HINT, Faults
from discreet.data.arrow_dataset import open_parquet, without_values
from discreet.data.invalid_rows import text_of

CHANGED = "{source} changed while it was read; train again on a table that stays."


class Partition(Protocol):
    """Consecutive rows of a table; small, as it travels to the worker that loads them."""

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        """The wanted columns as Arrow batches of at most so many rows, in the same order at every call."""
        ...


@dataclass(frozen=True)
class ParquetGroup:
    """A row group of a Parquet file that all workers can open."""

    path: str
    group: int

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        with without_values(self.path):
            yield from open_parquet(self.path).iter_batches(batch_size=rows, row_groups=[self.group], columns=wanted)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A pandas frame, an array, or a pair of one with its target, that `load` makes; `names` are those of all columns.

    The target of a pair is the last of the names. `neutral` makes texts of objects, one by one, of whatever types.
    """

    load: Any
    names: tuple[str, ...]
    source: str
    neutral: bool = False

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        import pyarrow as pa

        columns = self._columns(self.load())
        if len({len(values) for values in columns.values()}) > 1:
            raise ValueError("the partitions of X and of y have different numbers of rows; pass y cut like X.")
        faults, found = Faults(), []
        for name in wanted:
            try:
                values = columns[name]
                if self.neutral and str(values.dtype) in ("object", "category"):
                    values = list(map(text_of, values))
                found.append(pa.array(values, from_pandas=True))
            except (pa.ArrowException, TypeError, ValueError, OverflowError):  # of mixed types; the message has values
                faults.add("text", name)
        faults.refuse(self.source, _COLUMN_HINT)
        whole = pa.Table.from_arrays([pa.chunked_array([column]) for column in found], names=wanted)
        yield from whole.to_batches(max_chunksize=rows)

    def _columns(self, found: Any) -> dict[str, Any]:
        """The columns by name, as series or arrays."""
        table, *target = found if isinstance(found, (tuple, list)) else (found,)
        arrays = [table.iloc[:, j] if hasattr(table, "iloc") else table[:, j] for j in range(table.shape[1])]
        own = [str(name) for name in getattr(table, "columns", self.names[: len(arrays)])]
        if len(arrays) + len(target) != len(self.names) or own != list(self.names[: len(arrays)]):
            raise ValueError(CHANGED.format(source=self.source))
        return dict(zip(self.names, [*arrays, *target], strict=True))


@dataclass(frozen=True, eq=False)
class RowRange:
    """Rows `first` to `last` of a partition that has `rows` of them."""

    partition: Partition
    rows: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class PartitionedSource:
    """Consecutive rows of a table that lies in partitions, as a source of Arrow batches."""

    runs: tuple[RowRange, ...]
    kinds: dict[str, str]
    name: str = "the table"
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", sum(run.last - run.first for run in self.runs))

    @classmethod
    def of(
        cls, partitions: Sequence[Partition], rows: Sequence[int], kinds: dict[str, str], name: str
    ) -> PartitionedSource:
        """All rows of partitions that have so many of them each."""
        runs = (RowRange(each, count, 0, count) for each, count in zip(partitions, rows, strict=True) if count)
        return cls(tuple(runs), kinds, name)

    def __str__(self) -> str:
        return self.name

    def part(self, first: int, last: int) -> PartitionedSource:
        """The rows from `first` on, up to `last`."""
        runs, start = [], 0
        for run in self.runs:
            stop = start + run.last - run.first
            low, high = max(first, start), min(last, stop)
            if low < high:
                runs.append(RowRange(run.partition, run.rows, run.first + low - start, run.first + high - start))
            start = stop
        return PartitionedSource(tuple(runs), self.kinds, self.name)

    def batches(self, wanted: list[str], rows: int) -> Generator[Any, None, None]:
        for run in self.runs:
            yield from self._rows_of(run, wanted, rows)

    def _rows_of(self, run: RowRange, wanted: list[str], rows: int) -> Iterator[Any]:
        seen = 0
        for batch in run.partition.batches(wanted, rows):
            low, high = max(run.first - seen, 0), min(run.last - seen, batch.num_rows)
            if low < high:
                yield batch.slice(low, high - low)
            seen += batch.num_rows
            if seen >= run.last and isinstance(run.partition, ParquetGroup):
                return  # the footer of the file says how many rows there are
        if seen != run.rows:
            raise ValueError(CHANGED.format(source=self))
