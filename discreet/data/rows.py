"""Validated rows, and the one interface by which whatever needs only sums over rows gets at them.

A table is read in blocks of consecutive rows. Where the blocks begin depends on the number of columns alone, and sums
are added in the order of the blocks; an array, a file larger than memory and any other store of the same rows therefore
give the same sums to the last bit. Where a sum is released, the contribution of each row is rounded to multiples of a
power of two first: additions are then exact, and their order does not matter either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray

BLOCK_ENTRIES = 1 << 18  # of a block: what is computed of it stays in a second-level cache

PIECE_ENTRIES = 1 << 15  # of a piece of a block, where several temporaries of its size are needed

TERM_STEP = 2.0**-26  # numbers in [-1, 1] are rounded to multiples of it; up to 2^27 of them have an exact sum

Block = TypeVar("Block")


def block_rows(columns: int) -> int:
    """The number of rows of every block but the last, from the number of columns alone."""
    return max(1, BLOCK_ENTRIES // max(1, columns))


def block_slices(rows: int, columns: int) -> list[slice]:
    """Which rows each block of a table in memory holds."""
    return _slices(rows, block_rows(columns))


def piece_slices(rows: int, columns: int) -> list[slice]:
    """A block cut further, to bound the memory of what is computed of it."""
    return _slices(rows, max(1, PIECE_ENTRIES // max(1, columns)))


def _slices(rows: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def sum_over_blocks(blocks: Iterable[Block], part: Callable[[Block], FloatArray]) -> FloatArray:
    """The sum of one array per block, added in the order of the blocks."""
    total: FloatArray | None = None
    for block in blocks:
        term = part(block)
        total = np.array(term, dtype=np.float64) if total is None else np.add(total, term, out=total)
    if total is None:
        raise ValueError("a table without rows has no sums.")
    return total


def on_term_grid(values: FloatArray) -> FloatArray:
    """Numbers in [-1, 1] rounded to multiples of TERM_STEP: no further away from 0 than 1, and with exact sums."""
    return np.rint(values / TERM_STEP) * TERM_STEP


def exact_weights(weight: FloatArray | None) -> FloatArray | None:
    """Weights whose sums are exact."""
    return None if weight is None else on_term_grid(weight)


class Rows(Protocol):
    """A table of validated rows that may be read as often as needed, one block after the other.

    Attributes
    ----------
    rows, columns : int
        The size of the table, the target not counted.
    sparse : bool
        Whether the blocks are SciPy sparse matrices.
    in_memory : bool
        Whether all rows are at hand at once, as `Data`.
    """

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def sparse(self) -> bool: ...

    @property
    def in_memory(self) -> bool: ...

    def blocks(self) -> Iterator[Data]:
        """The rows in their order; every block but the last has `block_rows(columns)` of them."""
        ...

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        """The sum of one array per block, added in the order of the blocks.

        All that solvers for stored rows and the learning of scales ask for; rows that lie on other machines may
        compute the parts there.
        """
        ...


@dataclass(frozen=True, eq=False)
class Data:
    """Validated rows in memory: a dense array in either order, or a SciPy sparse matrix; y; optional weights.

    `owned` says that X is a copy of our own, which may be overwritten to save memory: such Data serves one run.
    `persons` holds the number of each row's person, 0, 1, ..., where a person may have several rows.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None = None
    owned: bool = False
    persons: IntArray | None = None

    @property
    def units(self) -> int:
        """How many persons there are, or rows where each is a person of its own: what the promise is for."""
        return self.rows if self.persons is None else int(self.persons.max()) + 1

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def in_memory(self) -> bool:
        return True

    def blocks(self) -> Iterator[Data]:
        """Views of consecutive rows; a sparse table is one block."""
        if self.sparse or self.rows <= block_rows(self.columns):
            yield self
            return
        for part in block_slices(self.rows, self.columns):
            yield Data(self.X[part], self.y[part], None if self.weight is None else self.weight[part])

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self.blocks(), part)
