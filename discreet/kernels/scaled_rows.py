"""Dense rows and the map of their columns: what solvers ask of the scaled rows, without a scaled copy of the table.

What is computed of a row depends on that row alone: blocks of any size, and any number of threads, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels import small_rows
from discreet.kernels.gradient import SMALLEST_NORM


class ScaledRows:
    """Dense rows and the map of their columns: what is asked of the scaled rows is computed in one pass.

    `columns` are the rows low, high, shift and gain of the parameters of the columns; `intercept` says whether a last
    column of ones belongs to them.
    """

    def __init__(self, X: Any, columns: FloatArray, intercept: bool) -> None:
        self.X = np.ascontiguousarray(X, dtype=np.float64).view()
        self.X.flags.writeable = False  # whatever it was: kernels are compiled once for each kind of array
        self.columns, self.intercept = np.ascontiguousarray(columns), intercept

    @property
    def passes(self) -> Any:
        """The kernels for a table of this size: with NumPy or compiled, in either case with the same bits."""
        if small_rows.is_small(*self.X.shape):
            return small_rows
        from discreet.kernels import row_passes

        return row_passes

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
