"""Who computes sums over shards: an engine, of which there is one for this process and one for Dask."""

from __future__ import annotations

from typing import Protocol

from discreet._common.types import FloatArray, Progress
from discreet.data.distributed.parts import How, Part, combined, pack
from discreet.data.distributed.shard import Recipe, Shard, check_cuts
from discreet.data.stored_table import machine_memory

HELD_SHARE = 0.4  # of a worker's memory, which its rows may fill; beyond it they are read anew in every pass


class Engine(Protocol):
    """Shards somewhere, asked all at once. Another cluster needs another class with these three."""

    @property
    def n_rows(self) -> int: ...

    def reduce(self, part: Part, how: How) -> FloatArray:
        """The sum, or the maximum, over all shards: each is asked until it has answered once."""
        ...

    def rebuild(self, lost: list[int]) -> None:
        """Make shards again whose workers have died."""
        ...


def fits(recipe: Recipe, memory: int | None) -> bool:
    """Whether the rows of a shard may be held in so much memory; None or 0: it is not known, and they may."""
    return not memory or recipe.bytes_held <= HELD_SHARE * memory


class LocalEngine:
    """All shards in this process: for Dask tables without a cluster, and for tests."""

    def __init__(self, recipes: list[Recipe], progress: Progress | None = None) -> None:
        self.recipes, self._progress = recipes, progress
        self.n_rows = sum(recipe.rows for recipe in recipes)
        self._shards: list[Shard | None] = [None] * len(recipes)
        self._checksums: dict[int, list[float]] = {}
        self.rebuild(list(range(len(recipes))))

    def reduce(self, part: Part, how: How) -> FloatArray:
        packed = pack(part)
        return combined([self._shard(j).reduce(packed, how).unwrap() for j in range(len(self.recipes))], how)

    def rebuild(self, lost: list[int]) -> None:
        memory, done = machine_memory(), 0
        for j in lost:
            share = None if memory is None else memory // len(self.recipes)
            shard = Shard(*self.recipes[j].packed(), fits(self.recipes[j], share))
            self._checksums[j] = shard.load().unwrap().tolist()
            self._shards[j], done = shard, done + self.recipes[j].rows
            if self._progress is not None:
                self._progress(done, self.n_rows)
        check_cuts(self._checksums, self.recipes[0].table.source)

    def _shard(self, j: int) -> Shard:
        shard = self._shards[j]
        assert shard is not None
        return shard
