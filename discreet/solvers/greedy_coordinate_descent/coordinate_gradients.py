"""The clipped gradient sums of every coordinate of a scaled problem, kept while single coordinates move."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.units import units_of
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers._shared.coordinate_parts import CoordinateSums, Moves


class CoordinateGradients:
    """Weights, margins and all clipped coordinate sums; one output.

    Terms of coordinate j are rounded to multiples of unit[j] = grid_step * clip[j], so that `counts`, the sums in
    these units, are exact whatever the order of the rows and of the moves.

    Dense rows: a full pass per refresh. Sparse rows: a move touches the rows of its column only, so that an
    iteration costs their non-zeros instead of a pass over the table.
    """

    def __init__(self, scaled: ScaledProblem, clip: FloatArray, grid_step: float) -> None:
        self.scaled, self.clip, self.unit = scaled, clip, units_of(clip, grid_step)
        self.weight = scaled.kernel_weight
        self.rows = sp.csr_array(scaled.X) if sp.issparse(scaled.X) else None
        self.w = np.array(scaled.start(), dtype=np.float64)
        self.margins = self._first_margins()
        self.slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins, scaled.y))
        self.counts = np.empty(scaled.columns)
        self._refresh()

    @property
    def sums(self) -> FloatArray:
        """The clipped gradient sums."""
        return self.counts * self.unit

    def move(self, j: int, value: float) -> None:
        """Set coordinate j and bring everything else up to date."""
        from discreet.kernels import greedy

        change = value - self.w[j]
        self.w[j] = value
        X, loss, rows = self.scaled.X, self.scaled.problem.loss, self.rows
        if rows is None:
            self.margins += change * X[:, j]
            self.slopes = np.ascontiguousarray(loss.slope(self.margins, self.scaled.y))
            self._refresh()
            return
        greedy.move_sparse(
            X.indptr, X.indices, X.data, rows.indptr, rows.indices, rows.data, j, change, self.scaled.y, self.weight,
            loss.code, float(loss.parameter), self.clip, self.unit, self.margins, self.slopes, self.counts,
        )  # fmt: skip

    def _first_margins(self) -> FloatArray:
        """Column by column, as stored rows get theirs: the same bits."""
        if self.rows is not None:
            return np.ascontiguousarray(self.scaled.margins(self.w))
        return moves_to(self.w).margins(self.scaled.X.T)

    def _refresh(self) -> None:
        from discreet.kernels import greedy

        X = self.scaled.X
        if self.rows is None:
            greedy.sums_dense(X.T, self.slopes, self.weight, self.clip, self.unit, self.counts)
        else:
            greedy.sums_sparse(X.indptr, X.indices, X.data, self.slopes, self.weight, self.clip, self.unit, self.counts)


class StoredGradients:
    """The same for rows that are read block by block, a pass for each move; nothing is kept of a row."""

    def __init__(self, scaled: BlockwiseProblem, clip: FloatArray, grid_step: float) -> None:
        self.scaled, self.clip, self.unit = scaled, clip, units_of(clip, grid_step)
        self.w = np.array(scaled.start(), dtype=np.float64)
        self.moves = moves_to(self.w)
        self.counts = self._sums()

    @property
    def sums(self) -> FloatArray:
        """The clipped gradient sums."""
        return self.counts * self.unit

    def move(self, j: int, value: float) -> None:
        """Set coordinate j and sum up anew."""
        self.moves.add(j, value - self.w[j])
        self.w[j] = value
        self.counts = self._sums()

    def _sums(self) -> FloatArray:
        return self.scaled.sum(CoordinateSums(self.moves, self.clip, self.unit))


def moves_to(w: FloatArray) -> Moves:
    """From zero to these weights, column by column."""
    moves = Moves(final=0.0)
    for j in np.flatnonzero(w):
        moves.add(int(j), float(w[j]))
    return moves


Gradients = CoordinateGradients | StoredGradients


def gradients_of(scaled: BlockwiseProblem, clip: FloatArray, grid_step: float) -> Gradients:
    """The sums at the start, of rows in memory or of stored ones."""
    if isinstance(scaled, ScaledProblem):
        return CoordinateGradients(scaled, clip, grid_step)
    return StoredGradients(scaled, clip, grid_step)
