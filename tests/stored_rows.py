"""A table that is not in memory as far as solvers can tell: it hands out copies of its blocks, and counts passes."""

from __future__ import annotations

from discreet.data.rows import Data, max_over_blocks, sum_over_blocks


class StoredTable:
    """Wraps rows in memory; every block is a fresh copy, as one read from a file would be."""

    in_memory = False
    gives_blocks = True
    sparse = False

    def __init__(self, data: Data) -> None:
        self.data, self.passes = data, 0

    @property
    def rows(self) -> int:
        return self.data.rows

    @property
    def columns(self) -> int:
        return self.data.columns

    def blocks(self):
        self.passes += 1
        for block in self.data.blocks():
            weight = None if block.weight is None else block.weight.copy()
            yield Data(block.X.copy(), block.y.copy(), weight, start=block.start)

    def sum(self, part):
        return sum_over_blocks(self.blocks(), part)

    def max(self, part):
        return max_over_blocks(self.blocks(), part)
