"""Steps on sets of coordinates of a framed problem, with the state that coordinate descent keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.framed import Framed
from discreet.solvers.sketches import Sets
from discreet.sweeps import Sweeps

FloatArray = npt.NDArray[np.float64]


class SetSweeps(Sweeps):
    """Coordinate descent whose steps move sets of coordinates; one output."""

    def run_sets(self, sets: Sets, noise: FloatArray, limit: FloatArray) -> None:
        """One step per set; noise[e] is added to the clipped gradient sum of sets.members[e].

        A row's gradient in a set, with entries in units of their limits, is cut to length 1. Sets of one
        coordinate, whose limits are the thresholds, are steps of coordinate descent: its kernel runs them.
        """
        from discreet.kernels import sketched

        count = sets.starts.size - 1
        if count == sets.members.size:
            self.run(sets.members, noise)
            return
        framed, X, c, loss = self.framed, self.framed.X, self.framed.coefficients, self.framed.problem.loss
        rows = (framed.y, self.weight, loss.code, float(loss.parameter), sets.starts, sets.members, noise)
        settings = (limit, self.step, c.l1, c.l2, c.low, c.high, float(framed.rows))
        state = (self.w, self.margins, self.total, self.since, self.count)
        if sp.issparse(X):
            sketched.sets_sparse(X.indptr, X.indices, X.data, *rows, *settings, *state)
        else:
            sketched.sets_dense(X.T, *rows, *settings, *state)
        self.count += count


def limit_support(framed: Framed, most: int) -> Framed:
    """Keep the `most` largest framed entries of each row (the intercept is not counted) and drop the others.

    Which entries stay depends on the row alone; every row goes the same way, whether it is too long or not.
    """
    columns = framed.frame.columns
    if most >= columns:
        return framed
    if sp.issparse(framed.X):
        return replace(framed, X=_limit_sparse(framed.X, columns, most))
    X = framed.X.copy(order="F")
    inner = X[:, :columns]
    smaller = np.argsort(-np.abs(inner), axis=1, kind="stable")[:, most:]
    np.put_along_axis(inner, smaller, 0.0, axis=1)
    return replace(framed, X=X)


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
