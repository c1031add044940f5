"""Scores of columns: by how many pairs of rows a column orders as the target does (Kendall's tau, without dividing).

Ranks alone count, so no scale of a column or of the target must be known, and one row can move a score by no more than
the pairs it is in. Sensitivity and proof: docs/guarantees/screened.md.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray
from discreet.data.rows import Data
from discreet.problem.problem import Problem


def concordance_scores(problem: Problem, data: Data, public_rows: int) -> FloatArray:
    """One score per column: |concordant pairs - discordant pairs| over the number of rows. Not private.

    With several classes it is the largest over the classes, each against all others. Without an intercept every row is
    joined by its mirror image (-x, -y), so that a column that goes with the target through the origin scores as well.
    """
    mirrored = not problem.fit_intercept
    weight = pair_weights(data.weight, data.rows, public_rows)
    best = np.zeros(data.columns)
    for target in _targets(problem, data.y):
        np.maximum(best, np.abs(_concordance(data.X, target, weight, mirrored)), out=best)
    return best / (max(data.rows, 1) * (4.0 if mirrored else 1.0))


def pair_weights(weight: FloatArray | None, rows: int, public_rows: int) -> FloatArray:
    """The weights of the rows, rounded so that sums over all pairs are exact, for up to 8 times as many rows."""
    if weight is None:
        return np.ones(rows)
    digits = max(0, (46 - 2 * math.ceil(math.log2(max(public_rows, 1)))) // 2)
    return np.asarray(np.floor(np.ldexp(weight, digits)) * 2.0**-digits)


def _targets(problem: Problem, y: FloatArray) -> list[FloatArray]:
    """The target, or one of -1 and 1 for each class."""
    if problem.loss.outputs == 1:
        return [y]
    return [np.where(y == k, 1.0, -1.0) for k in range(problem.loss.outputs)]


def _concordance(X: object, target: FloatArray, weight: FloatArray, mirrored: bool) -> FloatArray:
    from discreet.kernels import concordance

    if mirrored:
        target, weight = np.concatenate([target, -target]), np.concatenate([weight, weight])
    values, rank = np.unique(target, return_inverse=True)
    ranks = values.size
    rank = rank.astype(np.int64)
    balance = _balance(rank, ranks, weight)
    if sp.issparse(X):
        columns = sp.csc_array(X)
        out = np.empty(columns.shape[1])
        parts = (columns.indptr, columns.indices, columns.data)
        concordance.of_sparse(*parts, mirrored, columns.shape[0], rank, ranks, weight, balance, out)
        return out
    table = np.asarray(X)
    out = np.empty(table.shape[1])
    concordance.of_dense(table, mirrored, rank, ranks, weight, balance, out)
    return out


def _balance(rank: IntArray, ranks: int, weight: FloatArray) -> FloatArray:
    """For each row, the weight of the rows with a lower target less that of those with a higher one."""
    upto = np.append(0.0, np.bincount(rank, weights=weight, minlength=ranks).cumsum())
    return np.asarray(upto[rank] - (upto[-1] - upto[rank + 1]))
