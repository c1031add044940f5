"""What a worker holds: consecutive rows of the table, cut into the same blocks as in memory, and no noise."""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.distributed.partitions import CHANGED, ParquetGroup, PartitionedSource, RowRange
from discreet.data.distributed.parts import Answer, How, reduce_blocks, unpack
from discreet.data.rows import Data, DenseElsewhere, block_rows, max_over_blocks, sum_over_blocks
from discreet.data.stored_table import Encoder, StoredRows, StoredTable, forgetting

BYTES_OF_A_NUMBER = 8
NOT_SHARED = -1.0  # in the place of a checksum
UNSTABLE = "{source} has partitions that are not the same, or not in the same order, when computed twice; persist it."
NUMBERS_BESIDE = 5  # kept for each row beside its columns: target, norms, and what solvers remember


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a shard is made, on any worker and as often as workers die."""

    table: StoredTable
    encode: Encoder
    rows: int
    first: int  # the place of its first row in the whole table

    def packed(self) -> tuple[bytes, list[Any]]:
        """The recipe as bytes, and the partitions that other workers hold: Dask brings these to the shard."""
        import cloudpickle

        held: list[Any] = []

        class Packer(cloudpickle.Pickler):
            def persistent_id(self, found: Any) -> int | None:
                if type(found).__name__ != "Future":
                    return None
                held.append(found)
                return len(held) - 1

        buffer = io.BytesIO()
        Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(self)
        return buffer.getvalue(), held

    @classmethod
    def unpacked(cls, packed: bytes, held: Sequence[Any]) -> Recipe:
        """The recipe, with the partitions in the places of those that were held elsewhere."""

        class Unpacker(pickle.Unpickler):
            def persistent_load(self, number: int) -> Any:
                return held[number]

        recipe: Recipe = Unpacker(io.BytesIO(packed)).load()
        return recipe

    @property
    def bytes_held(self) -> int:
        """The memory of the shard if its rows are held."""
        return BYTES_OF_A_NUMBER * self.rows * (len(self.table.names) + NUMBERS_BESIDE)


def recipes_for(table: StoredTable, encode: Encoder, shards: int) -> list[Recipe]:
    """The table cut into at most so many shards of about the same size, between blocks: sums are those of one table."""
    source = table.source
    assert isinstance(source, PartitionedSource)
    size = block_rows(len(table.names))
    blocks = -(-source.rows // size)
    ends = np.linspace(0, blocks, min(shards, max(blocks, 1)) + 1).round().astype(int) * size
    ends[-1] = source.rows
    parts = ((int(first), source.part(int(first), int(last))) for first, last in pairwise(ends))
    return [Recipe(replace(table, source=part), encode, part.rows, first) for first, part in parts]


def check_cuts(loaded: Mapping[int, Sequence[float]], source: Any) -> None:
    """Refuse a table of which two shards see the same partition differently, by what `Shard.load` told of them.

    Each of them computes the partition for itself. In another order a row could lie in both parts, and count twice.
    """
    for j, (*_, after) in loaded.items():
        if j + 1 in loaded and loaded[j + 1][-2] != after:
            raise ValueError(UNSTABLE.format(source=source))


def _checksum(block: Data, before: int) -> int:
    return zlib.crc32(block.y.data, zlib.crc32(block.X.data, before))


def _digest(block: Data) -> int:
    """A number of the bits of a block in which every entry counts; far quicker to compute than a checksum."""
    return sum(int(np.add.reduce(part.view(np.uint64), axis=None)) for part in (block.X, block.y))


class Shard(DenseElsewhere):
    """Some rows of the table, in memory (`held`) or read anew in every pass. Dask runs it as an actor."""

    def __init__(self, packed: bytes, partitions: Sequence[Any], held: bool, jobs: int = 1) -> None:
        recipe = Recipe.unpacked(packed, partitions)
        self._rows, self._held = StoredRows(recipe.table, recipe.encode, recipe.rows, recipe.first), held
        self._blocks: list[Data] = []
        self._memories: dict[int, dict[str, Any]] = {}
        self._jobs = jobs  # threads that compute the parts of its blocks
        self._loaded = 0  # the digests of all blocks as they were loaded

    def load(self) -> Answer:
        """Read and check all rows once; tells their number and a checksum, by which a copy is known to be one.

        Two more are of the whole partitions that it shares with the shards before and after it: see `check_cuts`.
        """
        return self._answer(self._load)

    def reduce(self, packed: bytes, how: How) -> Answer:
        """The sum, or the maximum, of what the part gives for the blocks."""
        return self._answer(lambda: reduce_blocks(self, unpack(packed), how))

    def _answer(self, compute: Callable[[], Any]) -> Answer:
        try:
            return Answer(np.asarray(compute(), dtype=np.float64))
        except Exception as error:  # of the rows or of the part, and no fault of the worker: it would come again
            return Answer(error=error.with_traceback(None))

    def _load(self) -> FloatArray:
        blocks, checksum, self._loaded = [], 0, 0
        for block in self._rows.blocks():
            checksum = _checksum(block, checksum)
            self._loaded += _digest(block)
            if self._held:
                blocks.append(block)
        self._blocks = blocks
        first, last = self._source.runs[0], self._source.runs[-1]
        before = self._whole(first) if first.first > 0 else NOT_SHARED
        after = self._whole(last) if last.last < last.rows else NOT_SHARED
        return np.array([float(self._rows.rows), float(checksum), before, after])

    def _whole(self, run: RowRange) -> float:
        """A checksum of all rows of a partition; files are the same whoever reads them."""
        if isinstance(run.partition, ParquetGroup):
            return NOT_SHARED
        source = PartitionedSource.of([run.partition], [run.rows], self._source.kinds, self._source.name)
        checksum = 0
        for block in replace(self._rows, table=replace(self._rows.table, source=source), rows=run.rows).blocks():
            checksum = _checksum(block, checksum)
        return float(checksum)

    @property
    def _source(self) -> PartitionedSource:
        source = self._rows.table.source
        assert isinstance(source, PartitionedSource)
        return source

    @property
    def rows(self) -> int:
        return self._rows.rows

    @property
    def columns(self) -> int:
        return self._rows.columns

    def blocks(self) -> Iterator[Data]:
        """Rows that are read anew must be those that were loaded: else one could lie in two shards, and count twice."""
        if self._held:
            yield from self._blocks
            return
        digest = 0
        for number, block in enumerate(self._rows.blocks()):
            digest += _digest(block)
            yield replace(block, memory=self._memories.setdefault(number, {}))
        if digest != self._loaded:
            raise ValueError(CHANGED.format(source=self._source))

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self.blocks(), part if self._held else forgetting(part), self._jobs)

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return max_over_blocks(self.blocks(), part if self._held else forgetting(part), self._jobs)
