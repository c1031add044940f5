"""Which tables are cut to which numbers of rows, and the rows, ranges and seed of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from generality.tables import Table

ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
MOST_TABLES = 150  # for each number of rows, in the order of the tables
TRAINED = 0.7  # of a table's rows at most; the others are held out
MOST_HELD_OUT = 5_000


@dataclass(frozen=True)
class Extent:
    """How much of the benchmark is run."""

    tables: int = MOST_TABLES  # for each number of rows
    tuned_tables: int = 6  # the same, for tuned settings
    tuned_rows: int = 3_000  # the most rows for tuned settings
    largest: int = ROWS[-1]  # the most rows
    epsilons: tuple[float, ...] = EPSILONS


QUICK = Extent(tables=2, tuned_tables=1, tuned_rows=100, largest=300, epsilons=(1.0,))


@dataclass(frozen=True)
class Cell:
    """Rows to train on, held-out rows, and public facts."""

    name: str
    classes: int
    X: np.ndarray
    y: np.ndarray
    held_out: np.ndarray
    held_out_y: np.ndarray
    seed: int

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def delta(self) -> float:
        return 1.0 / self.rows**2

    @property
    def unit(self) -> float:
        """What squared errors are divided by; 1 for labels."""
        return 1.0 if self.classes else max(float(np.var(self.held_out_y)), 1e-300)

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest entry of each column: read from the rows, so not private."""
        return self.X.min(axis=0), self.X.max(axis=0)

    def target_range(self) -> tuple[float, float]:
        return float(self.y.min()), float(self.y.max())


def sizes_of(tables: Sequence[Table], most: int, largest: int = ROWS[-1]) -> dict[str, list[int]]:
    """For each table the numbers of rows to which it is cut: each number takes the first `most` tables that can be."""
    found: dict[str, list[int]] = {}
    for rows in [rows for rows in ROWS if rows <= largest]:
        able = [table for table in tables if rows <= TRAINED * table.rows]
        for table in able[:most]:
            found.setdefault(table.name, []).append(rows)
    return found


def cells_of(table: Table, sizes: Sequence[int]) -> Iterator[Cell]:
    """The cells of a table, without those whose training rows hold one value of the target only."""
    for rows in sizes:
        seed = int.from_bytes(table.name.encode(), "little") % 2**31 + rows
        order = np.random.default_rng(seed).permutation(table.rows)
        train, held_out = order[:rows], order[rows : rows + MOST_HELD_OUT]
        if len(np.unique(table.y[train])) > 1:
            yield Cell(
                table.name, table.classes, table.X[train], table.y[train], table.X[held_out], table.y[held_out], seed
            )
