"""Validated rows, the one interface by which whatever needs only sums over rows gets at them, and sums of moments.

A table is read in blocks of consecutive rows. Where the blocks begin depends on the number of columns alone, and sums
are added in the order of the blocks; an array, a file larger than memory and any other store of the same rows therefore
give the same sums to the last bit. Where a sum is released, the contribution of each row is rounded to multiples of a
power of two first: additions are then exact, and their order does not matter either. Nothing here adds noise.

What computes the term of a block, a *part*, may run on another machine, and more than once. It is therefore a function
of a module, or a small object, that holds public and released numbers only: no generator, no ledger, no rows
(docs/guarantees/distributed.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from discreet._common.threads import ordered_map
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.kernels.small_rows import is_small

BLOCK_ENTRIES = 1 << 20  # of a block: long enough that calls cost nothing beside it, small beside any memory

PIECE_ENTRIES = 1 << 15  # of a piece of a block, where several temporaries of its size are needed

TERM_STEP = 2.0**-26  # numbers in [-1, 1] are rounded to multiples of it; up to 2^27 of them have an exact sum

Block = TypeVar("Block")
Part = TypeVar("Part", bound=Callable[..., Any])
OnGrid = Callable[[FloatArray], FloatArray]  # rounds terms before they are added


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
    return list(map(slice, range(0, rows, size), [*range(size, rows, size), rows]))


def _combined(
    combine: np.ufunc, blocks: Iterable[Block], part: Callable[[Block], FloatArray], jobs: int = 1
) -> FloatArray:
    """One array per block, computed by so many threads and combined in the order of the blocks."""
    total: FloatArray | None = None
    for term in ordered_map(part, blocks, jobs):
        total = np.array(term, dtype=np.float64) if total is None else combine(total, term, out=total)
    if total is None:
        raise ValueError("a table without rows has no sums.")
    return total


sum_over_blocks = partial(_combined, np.add)
max_over_blocks = partial(_combined, np.maximum)  # not private


def on_term_grid(values: FloatArray) -> FloatArray:
    """Numbers in [-1, 1] rounded to multiples of TERM_STEP: no further away from 0 than 1, and with exact sums."""
    return np.rint(values / TERM_STEP) * TERM_STEP


def exact_weights(weight: FloatArray | None) -> FloatArray | None:
    """Weights whose sums are exact."""
    return None if weight is None else on_term_grid(weight)


def takes_tensors(part: Part) -> Part:
    """Mark a function of a block that can be told blocks whose X is a tensor."""
    part.takes_tensors = True  # type: ignore[attr-defined]
    return part


def can_take_tensors(part: Any) -> bool:
    """Whether a part, or the function of which it is a partial call, is marked so."""
    return bool(getattr(getattr(part, "func", part), "takes_tensors", False))


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor; imports nothing for those who have none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def on_host(values: Any) -> Any:
    """A tensor as an array in the memory of the host; anything else as it is."""
    return values.detach().cpu().numpy() if is_tensor(values) else values


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
    gives_blocks : bool
        Whether blocks can be had here; if not, only sums over them, as the rows lie on other machines.
    """

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def sparse(self) -> bool: ...

    @property
    def in_memory(self) -> bool: ...

    @property
    def gives_blocks(self) -> bool: ...

    def blocks(self) -> Iterator[Data]:
        """The rows in their order; every block but the last has `block_rows(columns)` of them."""
        ...

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        """The sum of one array per block, added in the order of the blocks.

        All that solvers for stored rows and the learning of scales ask for; rows that lie on other machines may
        compute the parts there.
        """
        ...

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        """The largest entries of one array per block. Not private: for infinite budgets and declared leaks only."""
        ...


def columns_of(rows: Rows, which: IntArray) -> Rows:
    """Some of the columns of a table."""
    return replace(rows, X=rows.X[:, which]) if isinstance(rows, Data) else ChosenColumns(rows, which)


@dataclass(frozen=True, eq=False)
class ChosenColumns:
    """Some of the columns of rows that lie elsewhere."""

    table: Rows
    which: IntArray
    sparse: bool = False
    in_memory: bool = False

    @property
    def gives_blocks(self) -> bool:
        return self.table.gives_blocks

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def columns(self) -> int:
        return self.which.size

    def blocks(self) -> Iterator[Data]:
        return (replace(block, X=block.X[:, self.which]) for block in self.table.blocks())

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return self.table.sum(partial(_of_columns, part=part, which=self.which))

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return self.table.max(partial(_of_columns, part=part, which=self.which))


def _of_columns(block: Data, part: Callable[[Data], FloatArray], which: IntArray) -> FloatArray:
    return part(replace(block, X=block.X[:, which]))


class DenseElsewhere:
    """What tables have in common whose dense rows lie in files, on a device or on other machines."""

    @property
    def sparse(self) -> bool:
        return False

    @property
    def in_memory(self) -> bool:
        return False

    @property
    def gives_blocks(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Data:
    """Validated rows in memory: a dense array in either order, or a SciPy sparse matrix; y; optional weights.

    `owned` says that X is a copy of our own, which may be overwritten to save memory: such Data serves one run.
    `persons` holds the number of each row's person, 0, 1, ..., where a person may have several rows. `kept` is what has
    been computed of these rows for other passes over them; a copy with other rows begins without it. `memory` is what a
    solver remembers of them, up to a few numbers for each: whoever reads blocks anew hands it on. `jobs` is the number
    of threads that compute sums: it changes no bit of them. `start` is the place of the first row in the table of which
    this is a block.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None = None
    owned: bool = False
    persons: IntArray | None = None
    jobs: int = 1
    start: int = 0
    memory: dict[str, Any] = field(default_factory=dict, repr=False)
    kept: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def units(self) -> int:
        """How many persons there are, or rows where each is a person of its own: what the guarantee is for."""
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
    def on_device(self) -> bool:
        """Whether X is a tensor, of a block that lies on a GPU."""
        return is_tensor(self.X)

    @property
    def in_memory(self) -> bool:
        return True

    @property
    def gives_blocks(self) -> bool:
        return True

    def blocks(self) -> Iterator[Data]:
        """Views of consecutive rows, the same at every call; a sparse table is one block."""
        return iter(self._blocks)

    @property
    def _blocks(self) -> list[Data]:
        # Not kept where it is the table itself: what refers to itself waits for the garbage collector.
        return [self] if self.sparse or self.rows <= block_rows(self.columns) else self._views

    @cached_property
    def _views(self) -> list[Data]:
        weight = self.weight
        return [
            Data(self.X[part], self.y[part], None if weight is None else weight[part], start=self.start + part.start)
            for part in block_slices(self.rows, self.columns)
        ]

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return sum_over_blocks(self._blocks, part, self.jobs)

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return max_over_blocks(self._blocks, part, self.jobs)

    def keep(self, key: Hashable, compute: Callable[[Data], Any]) -> Any:
        """What was computed of these rows under the same key last time; that of another key is forgotten."""
        if key not in self.kept:
            self.kept.clear()
            self.kept[key] = compute(self)
        return self.kept[key]


@dataclass(frozen=True, eq=False)
class Limits:
    """Where each column is clipped, and the centre and radius of that range (radius 0: nothing known)."""

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    radius: FloatArray

    @property
    def size(self) -> int:
        return self.radius.size

    @property
    def known(self) -> BoolArray:
        return self.radius > 0.0


def limits_between(low: FloatArray, high: FloatArray, sparse: bool = False) -> Limits:
    """Ranges with the middle as centre, so that the radius is small; zeros of sparse tables stay zeros."""
    centre = np.zeros_like(low) if sparse else low + 0.5 * (high - low)
    return Limits(low, high, centre, np.maximum(high - centre, centre - low))


def moment_sums(rows: Rows, limits: Limits, measured: slice, *, rounded: bool = True) -> FloatArray:
    """Weighted sums of u and u^2, u = (clip(x) - centre) / radius in [-1, 1], for the measured columns.

    The target counts as one more column, after the last one. Every weighted term is rounded to multiples of
    `TERM_STEP`, so the sums are exact; without noise nothing need be rounded.
    """
    on_grid = on_term_grid if rounded else np.asarray
    return rows.sum(partial(_block_sums, limits=limits, measured=measured, on_grid=on_grid))


@takes_tensors
def _block_sums(data: Data, limits: Limits, measured: slice, on_grid: OnGrid) -> FloatArray:
    columns = range(*measured.indices(limits.size))
    sums = np.zeros((2, len(columns)))
    weight = np.ones(data.rows) if data.weight is None else data.weight
    inside = [j for j in columns if j < data.columns]
    if inside and data.on_device:
        sums[:, : len(inside)] = _tensor_sums(data, limits, TERM_STEP if on_grid is on_term_grid else 0.0)
    elif inside and data.sparse:
        sums[:, : len(inside)] = _sparse_sums(data.X, limits, weight, on_grid)
    elif inside and data.weight is None and on_grid is on_term_grid and not is_small(*data.X.shape):
        sums[:, : len(inside)] = _rounded_sums(data.X, limits)
    elif inside:
        for part in piece_slices(data.rows, data.columns):
            u = _unit(data.X[part], limits, slice(0, data.columns))
            terms = np.stack([u, u**2]) * weight[part, None]
            sums[:, : len(inside)] += on_grid(terms).sum(axis=1)
    if data.columns in columns:
        u = _unit(data.y, limits, data.columns)
        sums[:, -1] = on_grid(weight * u).sum(), on_grid(weight * u**2).sum()
    return sums


def _rounded_sums(X: Any, limits: Limits) -> FloatArray:
    """The sums over dense rows that all count the same, compiled."""
    from discreet.kernels.histograms import add_moments, tiled_columns

    p = X.shape[1]
    tiled = tiled_columns(limits.low[:p], limits.high[:p], limits.centre[:p], limits.radius[:p])
    sums = np.zeros((2, tiled.shape[1]))
    add_moments(np.ravel(X), tiled, TERM_STEP, sums)
    return np.asarray(sums.reshape(2, -1, p).sum(axis=1) * TERM_STEP)


def _tensor_sums(data: Data, limits: Limits, step: float) -> FloatArray:
    """The sums over rows on a GPU, computed there."""
    from discreet.kernels.tensors import moment_sums as tensor_moments

    p = data.columns
    low, high, centre, radius = limits.low[:p], limits.high[:p], limits.centre[:p], limits.radius[:p]
    return np.asarray(tensor_moments(data.X, low, high, centre, radius, data.weight, step))


def _sparse_sums(X: Any, limits: Limits, weight: FloatArray, on_grid: OnGrid) -> FloatArray:
    # Sparse columns are never centred, so a zero stays a zero and contributes nothing.
    entries = sp.coo_array(X)
    u = np.clip(entries.data, limits.low[entries.col], limits.high[entries.col])
    u = np.where(limits.known[entries.col], u / np.where(limits.known, limits.radius, 1.0)[entries.col], 0.0)
    w = weight[entries.row]
    p = X.shape[1]
    terms = (on_grid(w * u), on_grid(w * u**2))
    return np.stack([np.bincount(entries.col, term, minlength=p) for term in terms])


def _unit(values: Any, limits: Limits, which: Any) -> FloatArray:
    """(clip(x) - centre) / radius in [-1, 1]; 0 for a column of which nothing is known."""
    bounded = limits.known[which]
    # A copy in column order: the inner loops of NumPy then run along the rows, which are many.
    u = np.array(values, dtype=np.float64, order="F")
    np.maximum(u, limits.low[which], out=u)
    np.minimum(u, limits.high[which], out=u)
    u -= limits.centre[which]
    u /= np.where(bounded, limits.radius[which], 1.0)
    np.clip(u, -1.0, 1.0, out=u)
    u *= bounded
    return u


def column(X: Any, j: int) -> FloatArray:
    """One column as a dense array; X is dense or in compressed columns."""
    if not sp.issparse(X):
        return np.asarray(X[:, j], dtype=np.float64)
    values = np.zeros(X.shape[0])
    stored = slice(X.indptr[j], X.indptr[j + 1])
    values[X.indices[stored]] = X.data[stored]
    return values
