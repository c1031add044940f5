"""Rows in scaled columns: what a solver may ask of a block of them, whether it lies scaled in memory or not.

What is computed of a row depends on that row alone: blocks of any size, and any number of threads, give the same bits.
Nothing here adds noise.

The gradient of a person with several rows is the mean of theirs, clipped as a whole: docs/guarantees/people.md, Theorem
3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.digest import digest_of
from discreet._common.types import FloatArray, IndexArray, IntArray
from discreet.data.people import person_bounds
from discreet.data.rows import can_take_tensors, takes_tensors
from discreet.kernels import small_rows
from discreet.kernels.gradient import (
    SMALLEST_NORM,
    clipped_gradient_sum,
    clipped_slopes,
    mapped_row_norms,
    margins_of,
    row_norms,
)

if TYPE_CHECKING:
    from discreet.data.rows import Data
    from discreet.kernels.tensors import TensorRows
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.losses import Loss


def passes_for(X: Any) -> Any:
    """The kernels for a table of the size of X: with NumPy or compiled, in either case with the same bits."""
    if small_rows.is_small(*X.shape):
        return small_rows
    from discreet.kernels import row_passes

    return row_passes


class ScaledRows:
    """Dense rows and the map of their columns: what is asked of the scaled rows is computed in one pass.

    `columns` are the rows low, high, shift and gain of the parameters of the columns; `intercept` says whether a last
    column of ones belongs to them.
    """

    def __init__(self, X: Any, columns: FloatArray, intercept: bool) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float64).view()
        self.X.flags.writeable = False  # whatever it was: kernels are compiled once for each kind of array
        self.columns, self.intercept = np.ascontiguousarray(columns), intercept
        self.passes = passes_for(self.X)

    def matrix(self) -> FloatArray:
        """The scaled rows as an array of their own."""
        n, p = self.X.shape
        scaled = np.empty((n, p + self.intercept))
        scaled[:, p:] = 1.0
        self.passes.fill_scaled(self.X, self.columns, scaled)
        return scaled

    def margins(self, w: FloatArray) -> FloatArray:
        margins = np.empty(self.X.shape[0])
        self.passes.fill_margins(self.X, self.columns, self._with_intercept(w), margins)
        return margins

    def gradient_sum(
        self, w: FloatArray, y: FloatArray, loss: tuple[int, float], norms: FloatArray, clip: float,
        weight: FloatArray | None, step: float,
    ) -> FloatArray:  # fmt: skip
        """Sum over the rows of weight_i * clip(slope_i x_i, norm <= clip), each row rounded to multiples of the step.

        Guarantee: every row contributes a vector of norm at most weight_i * clip before it is rounded.
        """
        sums, none = np.zeros(self.X.shape[1] + 1), np.empty(0)
        weights = none if weight is None else weight
        code, parameter = loss
        self.passes.add_clipped_gradients(
            self.X, y, norms, weights, self.columns, self._with_intercept(w), code, parameter, clip, step, sums
        )
        if step > 0.0:
            sums *= step
        return sums if self.intercept else sums[:-1]

    def norms(self, maps: FloatArray | None = None) -> FloatArray:
        """Euclidean norms of the rows, or of the rows times a matrix; never understated: see `row_norms`."""
        squares, last = np.empty(self.X.shape[0]), float(self.intercept)
        if maps is None:
            self.passes.fill_square_lengths(self.X, self.columns, last, squares)
        else:
            self.passes.fill_mapped_squares(self.X, self.columns, last, self._maps(maps), squares)
        np.sqrt(squares, out=squares)
        return np.maximum(squares, SMALLEST_NORM, out=squares)

    def outer_products(self, factors: FloatArray, unit: float, maps: FloatArray | None = None) -> FloatArray:
        """The sum of a a', a being the rows, times the matrix, times their factors, cut to multiples of the unit."""
        size, last = self.X.shape[1] + self.intercept, float(self.intercept)
        total = np.zeros((size, size))
        used = np.empty((0, size)) if maps is None else self._maps(maps)
        self.passes.add_outer_products(self.X, self.columns, last, used, factors, unit, total)
        return np.triu(total) + np.triu(total, 1).T

    def _maps(self, matrix: FloatArray) -> FloatArray:
        """The columns of a matrix as rows; the last entry of a row is its intercept, which there may not be."""
        columns = np.ascontiguousarray(matrix.T)
        return columns if self.intercept else np.column_stack([columns, np.zeros(columns.shape[0])])

    def _with_intercept(self, w: FloatArray) -> FloatArray:
        return np.ascontiguousarray(w) if self.intercept else np.append(w, 0.0)


class ScaledBlock:
    """Consecutive rows in scaled columns, with their targets and weights."""

    X: Any  # the rows, dense or sparse
    y: FloatArray
    weight: FloatArray | None
    loss: Loss
    persons: IntArray | None  # whose rows these are, where a person may have several
    kept: dict[Hashable, FloatArray]
    start: int  # the place of the first row in the table

    def some(self, chosen: IndexArray) -> MatrixBlock:
        """Copies of the rows at these places of the block, scaled; their own places are forgotten."""
        weight = None if self.weight is None else self.weight[chosen]
        return MatrixBlock(self._some_rows(chosen), self.y[chosen], weight, self.loss)

    def _some_rows(self, chosen: IndexArray) -> Any:
        return self.X[chosen]

    @cached_property
    def norms(self) -> FloatArray:
        """Euclidean norms of the rows, never understated."""
        return row_norms(self.X)

    def mapped_norms(self, matrix: FloatArray) -> FloatArray:
        """Euclidean norms of the rows times a matrix, never understated."""
        return mapped_row_norms(self.X, matrix)

    def outer_products(self, factors: FloatArray, unit: float, matrix: FloatArray | None = None) -> FloatArray:
        """The sum of a a', a being the rows, times the matrix, times their factors, cut to multiples of the unit."""
        from discreet.kernels.grid_sums import outer_product_sum

        return outer_product_sum(self.X, factors, unit, matrix)

    def keep(self, key: Hashable, compute: Callable[[], FloatArray]) -> FloatArray:
        """One number per row, computed once for each key as long as the block itself is kept in memory."""
        if key not in self.kept:
            self.kept[key] = compute()
        return self.kept[key]

    def margins(self, w: FloatArray) -> FloatArray:
        return margins_of(self.X, w)

    def slopes(self, w: FloatArray) -> FloatArray:
        return self.slopes_at(self.margins(w))

    def slopes_at(self, margins: FloatArray) -> FloatArray:
        """The slopes of the losses at these margins of the rows."""
        return self.loss.slope(margins, self.y)

    def curvatures_at(self, margins: FloatArray) -> FloatArray:
        """The second derivatives of the losses at these margins of the rows."""
        return self.loss.curvature(margins, self.y)

    @takes_tensors
    def loss_sum(self, w: FloatArray) -> FloatArray:
        """The weighted sum of the losses, as an array of one number."""
        losses = self.loss.value(self.margins(w), self.y)
        return np.array([losses.sum() if self.weight is None else losses @ self.weight])

    def gradient_sum(self, w: FloatArray, norms: FloatArray, clip: float, step: float = 0.0) -> FloatArray:
        """The weighted sum of the rows' gradients, each clipped to `clip` and rounded to multiples of the step.

        `norms` are the norms of the rows. Not for persons with several rows: `person_gradient_sum` clips theirs.
        """
        return clipped_gradient_sum(self.X, self.slopes(w), norms, clip, self.weight, step)


@dataclass(frozen=True, eq=False)
class MatrixBlock(ScaledBlock):
    """A block whose scaled rows are at hand as a matrix."""

    X: Any
    y: FloatArray
    weight: FloatArray | None
    loss: Loss
    persons: IntArray | None = None
    kept: dict[Hashable, FloatArray] = field(default_factory=dict)
    start: int = 0


@dataclass(frozen=True, eq=False)
class UnscaledBlock(ScaledBlock):
    """Dense rows as they are, scaled whenever they are read: no copy of them is held.

    `keeps_matrix` says that the scaled rows are few enough to be held beside them, `forms` which kernels know the loss,
    by its code and parameter.
    """

    data: Data
    scaling: ColumnScaling
    y: FloatArray
    loss: Loss
    intercept: bool
    keeps_matrix: bool
    forms: frozenset[str]
    code: tuple[Any, float]
    persons: IntArray | None = None
    kept: dict[Hashable, FloatArray] = field(default_factory=dict)

    @property
    def weight(self) -> FloatArray | None:  # type: ignore[override]
        return self.data.weight

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.data.start

    def _some_rows(self, chosen: IndexArray) -> Any:

        return ScaledRows(self.data.X[chosen], self._columns, self.intercept).matrix()

    @property
    def X(self) -> Any:  # noqa: N802 - the name of the field in the other blocks
        return self._matrix if self.keeps_matrix else self._rows.matrix()

    @cached_property
    def _matrix(self) -> FloatArray:
        return self._rows.matrix()

    @property
    def _rows(self) -> ScaledRows:

        return ScaledRows(self.data.X, self._columns, self.intercept)

    @cached_property
    def _columns(self) -> FloatArray:
        scaling = self.scaling
        return np.stack([scaling.low, scaling.high, scaling.shift, scaling.gain])

    @cached_property
    def norms(self) -> FloatArray:
        return self._rows.norms()

    def mapped_norms(self, matrix: FloatArray) -> FloatArray:
        return self._rows.norms(matrix)

    def outer_products(self, factors: FloatArray, unit: float, matrix: FloatArray | None = None) -> FloatArray:
        return self._rows.outer_products(factors, unit, matrix)

    def margins(self, w: FloatArray) -> FloatArray:
        return self._rows.margins(w) if w.ndim == 1 else super().margins(w)

    def slopes_at(self, margins: FloatArray) -> FloatArray:
        if "slope" not in self.forms:
            return super().slopes_at(margins)
        slopes = np.empty(self.y.size)
        passes_for(self.data.X).fill_slopes(*self.code, np.asarray(margins), self.y, slopes)
        return slopes

    def curvatures_at(self, margins: FloatArray) -> FloatArray:
        if "curvature" not in self.forms:
            return super().curvatures_at(margins)
        curvatures = np.empty(self.y.size)
        passes_for(self.data.X).fill_curvatures(*self.code, np.asarray(margins), self.y, curvatures)
        return curvatures

    def gradient_sum(self, w: FloatArray, norms: FloatArray, clip: float, step: float = 0.0) -> FloatArray:
        if "slope" not in self.forms:
            return super().gradient_sum(w, norms, clip, step)
        return self._rows.gradient_sum(w, self.y, self.code, norms, clip, self.weight, step)


@dataclass(frozen=True, eq=False)
class BlockScaling:
    """Blocks of rows in scaled columns; `key` is equal for equal scalings, copies in other processes included."""

    scaling: ColumnScaling
    loss: Loss
    fit_intercept: bool
    keeps_matrix: bool  # whether the scaled rows may be held beside the rows, as there are few

    def __call__(self, block: Data) -> ScaledBlock:
        y = block.y if self.loss.classification else self.scaling.target(block.y)
        if block.sparse:
            X = self.scaling.matrix(block, "C", self.fit_intercept)
            return MatrixBlock(X, y, block.weight, self.loss, start=block.start)
        if block.on_device:
            return GpuBlock(block, self.scaling, y, self.loss, self.fit_intercept, False, *self._compiled)
        return UnscaledBlock(block, self.scaling, y, self.loss, self.fit_intercept, self.keeps_matrix, *self._compiled)

    @cached_property
    def _compiled(self) -> tuple[frozenset[str], tuple[Any, float]]:
        """Which kernels know the loss, and by what."""
        forms = self.loss.forms if self.loss.outputs == 1 else frozenset()
        return forms, (self.loss.code, float(self.loss.parameter)) if forms else (None, 0.0)

    @cached_property
    def key(self) -> bytes:
        return digest_of("scaled block", self.scaling, self.loss, self.fit_intercept, self.keeps_matrix)


@dataclass(frozen=True, eq=False)
class PartOfScaled:
    """A part that is written for scaled blocks, as one of the rows as they are: it may be computed where they lie."""

    part: Callable[[ScaledBlock], FloatArray]
    scaled: BlockScaling

    @property
    def takes_tensors(self) -> bool:
        """Whether the part asks a block for what it computes itself, so that it may lie on a GPU."""
        return can_take_tensors(self.part)

    def __call__(self, block: Data) -> FloatArray:
        return self.part(block.keep(self.scaled.key, self.scaled))


class RowVector(np.ndarray[Any, Any]):
    """One number per row, on the host and, as `tensor`, on the device: what is asked for at every step stays there.

    It cannot be written to, as the other copy would not follow; what NumPy computes of it has no tensor.
    """

    tensor: Any = None

    @classmethod
    def of(cls, tensor: Any) -> RowVector:
        """The vector of a tensor."""
        vector: RowVector = np.asarray(tensor.cpu().numpy(), dtype=np.float64).view(cls)
        vector.tensor = tensor
        vector.flags.writeable = False
        return vector


@dataclass(frozen=True, eq=False)
class GpuBlock(UnscaledBlock):
    """Rows in a tensor, `data.X`, scaled on its device whenever they are read, in double precision.

    Numbers per row are arrays on the host, as in every block; targets, weights and norms have a copy on the device.
    """

    @cached_property
    def _on_device(self) -> TensorRows:
        from discreet.kernels.tensors import TensorRows

        return TensorRows(self.data.X, self._columns, self.intercept)

    @cached_property
    def _targets(self) -> Any:
        return self._on_device.tensor(self.y)

    @cached_property
    def _weights(self) -> Any:
        return None if self.weight is None else self._on_device.tensor(self.weight)

    @property
    def X(self) -> Any:  # noqa: N802 - the name of the field in the other blocks
        return self._on_device.matrix()

    @cached_property
    def norms(self) -> FloatArray:
        return RowVector.of(self._on_device.norms())

    def mapped_norms(self, matrix: FloatArray) -> FloatArray:
        return RowVector.of(self._on_device.norms(matrix))

    def outer_products(self, factors: FloatArray, unit: float, matrix: FloatArray | None = None) -> FloatArray:
        return self._on_device.outer_products(self._tensor(factors), unit, matrix)

    def margins(self, w: FloatArray) -> FloatArray:
        return RowVector.of(self._on_device.margins(w))

    def slopes(self, w: FloatArray) -> FloatArray:
        if "tensor_slope" not in self.forms:
            return self.loss.slope(np.asarray(self.margins(w)), self.y)
        return RowVector.of(self._on_device.slopes(w, self._targets, self.code))

    def gradient_sum(self, w: FloatArray, norms: FloatArray, clip: float, step: float = 0.0) -> FloatArray:
        rows = self._on_device
        if "tensor_slope" in self.forms:
            return rows.gradient_sum(w, self._targets, self.code, self._tensor(norms), clip, self._weights, step)
        factors = clipped_slopes(self.slopes(w), np.asarray(norms), clip, self.weight)
        sums = rows.factor_sum(self._tensor(factors.reshape(self.y.size, -1)), step)
        return sums if w.ndim > 1 else sums[0]

    def _tensor(self, values: FloatArray) -> Any:
        """One number per row on the device: the copy that lies there, if there is one."""
        kept = getattr(values, "tensor", None)
        return self._on_device.tensor(np.asarray(values)) if kept is None else kept


NormsOf = Callable[[Any], FloatArray]  # of the rows of a matrix
LARGEST_ROW = 1e150  # above it the square of a row's gradient could overflow, and the row counts as 0


def person_gradients(block: ScaledBlock, w: FloatArray) -> list[Any]:
    """For each output, the weighted sums of the rows' gradients, person by person: (persons, columns), sparse if X is.

    A row whose gradient is not finite, or beyond all use, adds nothing.
    """
    if block.persons is None or block.weight is None:
        raise ValueError("this block has no persons with several rows.")
    slopes = np.atleast_2d(block.slopes(w).T)
    ends = person_bounds(block.persons)
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(slopes).all(axis=0) & (np.abs(slopes).max(axis=0) * block.norms < LARGEST_ROW)
    factors = np.where(usable, np.nan_to_num(slopes), 0.0) * block.weight
    return [_sums(each, ends) @ block.X for each in factors]


def person_gradient_norms(gradients: list[Any], norms: NormsOf) -> FloatArray:
    """The norm of each person's gradient, over all outputs."""
    if len(gradients) == 1:
        return norms(gradients[0])
    return np.asarray(np.sqrt(sum(norms(each) ** 2 for each in gradients)))


def person_gradient_sum(block: ScaledBlock, w: FloatArray, norms: NormsOf, clip: float, step: float) -> FloatArray:
    """The sum over persons of their gradients, each clipped to `clip` and then rounded to multiples of the step.

    Guarantee: every person, with however many rows, contributes a vector of norm at most clip, before it is rounded
    once.
    """
    gradients = person_gradients(block, w)
    size = person_gradient_norms(gradients, norms)
    factor = np.where(np.isfinite(size), 1.0, 0.0)
    if np.isfinite(clip):
        factor *= clip / np.fmax(size, clip) if clip > 0.0 else 0.0
    # The persons' gradients are rows of slope 1 that are clipped already.
    sums = [clipped_gradient_sum(each, factor, np.ones(factor.size), np.inf, None, step) for each in gradients]
    return sums[0] if w.ndim == 1 else np.stack(sums)


def summed_weights(block: ScaledBlock) -> FloatArray | None:
    """The weight of each person: that of all rows together, at most 1."""
    if block.persons is None or block.weight is None:
        return block.weight
    return np.add.reduceat(block.weight, person_bounds(block.persons)[:-1])


def of_each_row(values: Any, block: ScaledBlock) -> Any:
    """Values of persons, one after the other, for each of their rows."""
    if block.persons is None:
        return values
    return np.repeat(values, np.diff(person_bounds(block.persons)))


def _sums(factors: FloatArray, ends: IntArray) -> Any:
    """The matrix that adds up the rows of each person, each times its factor."""
    shape = (ends.size - 1, factors.size)
    return sp.csr_array((factors, np.arange(factors.size), ends), shape=shape)
