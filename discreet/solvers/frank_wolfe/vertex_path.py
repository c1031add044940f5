"""The state of Frank-Wolfe: weights, margins and clipped gradient sums after moves towards vertices.

The sums are counted in units of the grid's step, every term rounded to an integer, so that they are exact.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.units import UNROUNDED
from discreet.problem.constraints import AxisPolytope
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers.frank_wolfe.stored_path import StoredPath
from discreet.solvers.frank_wolfe.vertex_selection import Choice, Hull, Polytope, levels_of

SMALLEST_FACTOR = 1e-60  # of the weights, before it is multiplied out


class ScannedPath:
    """Every move is followed by a pass over the whole table: dense rows, an intercept, or general vertices."""

    def __init__(self, scaled: ScaledProblem, polytope: Polytope, clip: float, scale: float, unit: float) -> None:
        self.scaled, self.polytope, self.unit = scaled, polytope, unit
        self.clip, self.units = np.full(scaled.columns, clip), np.full(scaled.columns, unit)
        self.weight = scaled.kernel_weight
        self.inner = scaled.scaling.columns
        self.w = np.zeros(scaled.columns)
        self.w[: self.inner] = start(polytope, self.inner)
        self.margins = scaled.margins(self.w)  # without the intercept
        self.sums = np.empty(scaled.columns)
        self._scan()
        self.choice = Choice(polytope.symmetric, scale / unit, levels_of(polytope, self.sums[: self.inner]))

    def move(self, chosen: tuple[int, float], share: float, intercept_move: float) -> None:
        """Move the given share of the way to the chosen vertex, and shift the intercept."""
        vertex = self.polytope.vertex(*chosen, self.inner)
        self.w[: self.inner] *= 1.0 - share
        self.w[: self.inner] += share * vertex
        self.margins *= 1.0 - share
        self._add_to_margins(chosen, share, vertex)
        if self.scaled.problem.fit_intercept:
            self.w[self.inner] += intercept_move
        self._scan()
        self.choice.follow(levels_of(self.polytope, self.sums[: self.inner]))

    def intercept_sum(self) -> float:
        """The sum of the intercept's entries: a multiple of the grid's step."""
        return float(self.sums[self.inner :].sum() * self.unit)  # empty without an intercept

    def _add_to_margins(self, chosen: tuple[int, float], share: float, vertex: FloatArray) -> None:
        X, j = self.scaled.X, chosen[0]
        if isinstance(self.polytope, Hull):
            self.margins += share * np.asarray(X[:, : self.inner] @ vertex)
        elif sp.issparse(X):
            part = slice(X.indptr[j], X.indptr[j + 1])
            self.margins[X.indices[part]] += share * vertex[j] * X.data[part]
        else:
            self.margins += share * vertex[j] * X[:, j]

    def _scan(self) -> None:
        from discreet.kernels import greedy

        scaled, X = self.scaled, self.scaled.X
        intercept = self.w[self.inner] if scaled.problem.fit_intercept else 0.0
        slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins + intercept, scaled.y))
        if sp.issparse(X):
            greedy.sums_sparse(X.indptr, X.indices, X.data, slopes, self.weight, self.clip, self.units, self.sums)
        else:
            greedy.sums_dense(X.T, slopes, self.weight, self.clip, self.units, self.sums)


class TouchedPath:
    """Sparse rows without an intercept: a move looks only at rows that some chosen column has ever touched.

    The weights are factor * direction. Shrinking all of them changes the factor alone; the margin of a row that
    no chosen column touches stays 0, so its slope, and what it adds to the sums, never changes.
    """

    def __init__(self, scaled: ScaledProblem, polytope: AxisPolytope, clip: float, scale: float, unit: float) -> None:
        from discreet.kernels import frank_wolfe

        self.kernel = frank_wolfe
        self.scaled, self.polytope, self.clip, self.unit = scaled, polytope, clip, unit
        self.weight = scaled.kernel_weight
        self.rows = sp.csr_array(scaled.X)
        n, p = self.rows.shape
        self.direction, self.factor = start(polytope, p), 1.0
        self.margins = scaled.margins(self.direction)
        self.seen = self.margins != 0.0
        self.touched = np.zeros(n, dtype=np.int64)
        self.count = int(self.seen.sum())
        self.touched[: self.count] = np.flatnonzero(self.seen)
        self.slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins, scaled.y))
        self.sums = np.empty(p)
        self.dirty, self.changed = np.zeros(p, dtype=bool), np.empty(p, dtype=np.int64)
        self._first_sums()
        self.choice = Choice(polytope.symmetric, scale / unit, levels_of(polytope, self.sums))

    @property
    def w(self) -> FloatArray:
        return self.factor * self.direction

    def intercept_sum(self) -> float:
        return 0.0

    def move(self, chosen: tuple[int, float], share: float, intercept_move: float) -> None:
        """Move the given share of the way to the chosen vertex."""
        X, (j, sign) = self.scaled.X, chosen
        self._shrink(1.0 - share)
        push = sign * self.polytope.vertex_norm * share / self.factor
        self.direction[j] += push
        state = (self.margins, self.seen, self.touched, self.count)
        self.count = self.kernel.push_column(X.indptr[j], X.indptr[j + 1], X.indices, X.data, push, *state)
        self.choice.follow_some(self.changed[: self._refresh()])

    def _shrink(self, keep: float) -> None:
        self.factor *= keep
        if self.factor < SMALLEST_FACTOR:
            self.direction *= self.factor
            self.margins *= self.factor
            self.factor = 1.0

    def _refresh(self) -> int:
        loss, rows = self.scaled.problem.loss, self.rows
        return self.kernel.refresh_rows(
            rows.indptr, rows.indices, rows.data, self.touched[: self.count], self.factor, self.scaled.y, self.weight,
            loss.code, float(loss.parameter), self.clip, self.unit, self.margins, self.slopes,
            self.sums, self.dirty, self.changed,
        )  # fmt: skip

    def _first_sums(self) -> None:
        from discreet.kernels import greedy

        X, same = self.scaled.X, np.ones(self.sums.size)
        limits = (same * self.clip, same * self.unit)
        greedy.sums_sparse(X.indptr, X.indices, X.data, self.slopes, self.weight, *limits, self.sums)


Path = ScannedPath | TouchedPath | StoredPath


def start(polytope: Polytope, columns: int) -> FloatArray:
    """A data-free point of the set: 0 in an L1 ball, else the first vertex (sparser than the centre)."""
    return np.zeros(columns) if polytope.symmetric else polytope.vertex(0, 1.0, columns)


def begin(scaled: BlockwiseProblem, polytope: Polytope, clip: float, scale: float, step: float) -> Path:
    """The state before the first selection; with scale 0 the best vertex is taken, with step 0 nothing is rounded."""
    unit = step or UNROUNDED
    if not isinstance(scaled, ScaledProblem):
        return StoredPath(scaled, polytope, start(polytope, scaled.scaling.columns), clip, scale, unit)
    sparse = sp.issparse(scaled.X) and not scaled.problem.fit_intercept
    if sparse and not isinstance(polytope, Hull):
        return TouchedPath(scaled, polytope, clip, scale, unit)
    return ScannedPath(scaled, polytope, clip, scale, unit)
