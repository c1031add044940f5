"""Tables of any size for the measurements of scale: in memory, or generated block by block in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from discreet._common.threads import thread_count
from discreet.data.rows import Data, block_rows, max_over_blocks, sum_over_blocks

CHUNK = 100_000  # rows that are drawn at once


def make_table(rows: int, columns: int, signal: float, seed: int = 0) -> tuple[Any, Any]:
    """Normal columns in memory, and labels 0 and 1 whose scores have this standard deviation; 0: random labels."""
    rng = np.random.default_rng(seed)
    weights = signal * rng.standard_normal(columns) / np.sqrt(columns)
    X, y = np.empty((rows, columns)), np.empty(rows, dtype=np.int64)
    for start in range(0, rows, CHUNK):
        part = slice(start, min(start + CHUNK, rows))
        X[part] = rng.standard_normal((part.stop - start, columns))
        y[part] = rng.random(part.stop - start) < 1.0 / (1.0 + np.exp(-(X[part] @ weights)))
    return X, y


class GeneratedRows:
    """Rows that are never stored: each block is one block of normal numbers, turned by a rotation of its columns.

    The labels belong to the rows before they are turned, so that every pass sees the same table. A block costs one
    copy: the measurement is of what is computed from it.
    """

    sparse, in_memory, gives_blocks = False, False, True

    def __init__(self, rows: int, columns: int, seed: int = 0) -> None:
        self.rows, self.columns, self.jobs = rows, columns, thread_count(None)
        size = min(rows, block_rows(columns))
        self.X, labels = make_table(size, columns, 1.0, seed)
        self.y = 2.0 * labels - 1.0

    def blocks(self) -> Iterator[Data]:
        for number, start in enumerate(range(0, self.rows, self.X.shape[0])):
            size = min(self.X.shape[0], self.rows - start)
            yield Data(np.roll(self.X[:size], number % 7, axis=1), self.y[:size])

    def sum(self, part: Callable[[Data], Any]) -> Any:
        return sum_over_blocks(self.blocks(), part, self.jobs)

    def max(self, part: Callable[[Data], Any]) -> Any:
        return max_over_blocks(self.blocks(), part, self.jobs)
