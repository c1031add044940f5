"""Steps on sets of coordinates of a scaled problem, with the state that coordinate descent keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.units import units_of
from discreet.problem.coordinate_state import CoordinateState, noise_in_units
from discreet.problem.scaled_problem import ScaledProblem
from discreet.solvers.sketched.sketches import Sets


class BlockState(CoordinateState):
    """Coordinate descent whose steps move sets of coordinates; one output."""

    def run_sets(self, sets: Sets, noise: FloatArray, limit: FloatArray) -> None:
        """One step per set; noise[e], in limits, is added to the clipped gradient sum of sets.members[e].

        A row's gradient in a set, with entries divided by their limits, is cut to length 1. Sets of one
        coordinate, whose limits are the thresholds, are steps of coordinate descent: its kernel runs them.
        """
        from discreet.kernels import sketched

        count = sets.starts.size - 1
        if count == sets.members.size:
            self.run(sets.members, noise)
            return
        scaled, X, c, loss = self.scaled, self.scaled.X, self.scaled.penalty_terms, self.scaled.problem.loss
        units = noise_in_units(noise, limit, self.grid_step)
        rows = (scaled.y, self.weight, loss.code, float(loss.parameter), sets.starts, sets.members, units)
        settings = (limit, units_of(limit, self.grid_step), self.step, c.l1, c.l2, c.low, c.high, float(scaled.rows))
        state = (self.w, self.margins, self.total, self.since, self.count)
        if sp.issparse(X):
            sketched.sets_sparse(X.indptr, X.indices, X.data, *rows, *settings, *state)
        else:
            sketched.sets_dense(X.T, *rows, *settings, *state)
        self.count += count


def limit_support(scaled: ScaledProblem, most: int) -> ScaledProblem:
    """Keep the `most` largest scaled entries of each row (the intercept is not counted) and drop the others.

    Which entries stay depends on the row alone; every row goes the same way, whether it is too long or not.
    """
    columns = scaled.scaling.columns
    if most >= columns:
        return scaled
    if sp.issparse(scaled.X):
        return replace(scaled, X=_limit_sparse(scaled.X, columns, most))
    X = scaled.X.copy(order="F")
    inner = X[:, :columns]
    smaller = np.argsort(-np.abs(inner), axis=1, kind="stable")[:, most:]
    np.put_along_axis(inner, smaller, 0.0, axis=1)
    return replace(scaled, X=X)


def _limit_sparse(X: sp.csc_array, columns: int, most: int) -> sp.csc_array:
    column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    counted = column < columns
    row, size = X.indices[counted], np.abs(X.data[counted])
    order = np.lexsort((column[counted], -size, row))
    begins = np.searchsorted(row[order], row[order], side="left")
    kept = np.ones(X.data.size, dtype=bool)
    kept[np.flatnonzero(counted)[order]] = np.arange(order.size) - begins < most
    limited = sp.csc_array((np.where(kept, X.data, 0.0), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    limited.eliminate_zeros()
    return limited
