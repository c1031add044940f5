"""Sums of terms that are rounded to multiples of a step first: exact, so that their order does not matter.

Terms are counted in steps. While a partial sum stays below 2^53 steps it is an exact double, and one row changes
it by its own rounded terms and by nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.small_rows import is_small

MAPPED_ENTRIES = 1 << 18  # of sparse rows that are dense for a moment


def rounded_row_sum(X: Any, factors: FloatArray, step: float) -> FloatArray:
    """Sum over the rows of x_i times its factors, every entry of every row rounded to a multiple of the step.

    The step must be a power of two. Returns (p,) for factors (n,), (outputs, p) for factors (n, outputs).
    """
    outputs = 1 if factors.ndim == 1 else factors.shape[1]  # not -1: a batch may be empty
    in_steps = np.ascontiguousarray((factors / step).reshape(factors.shape[0], outputs))
    sums = np.zeros((in_steps.shape[1], X.shape[1]))
    stored = X.shape[1] if not sp.issparse(X) else X.nnz // max(1, X.shape[0])
    (_add_small if is_small(X.shape[0] * outputs, stored) else _add_large)(X, in_steps, sums)
    sums *= step
    return sums[0] if factors.ndim == 1 else sums


@np.errstate(all="ignore")
def _add_small(X: Any, factors: FloatArray, sums: FloatArray) -> None:
    """Add every row times its factors, rounded to integers, with NumPy: exact in any order."""
    table = X.tocsr() if sp.issparse(X) else X
    for k, each in enumerate(factors.T):
        if sp.issparse(X):
            terms = np.rint(np.repeat(each, np.diff(table.indptr)) * table.data)
            sums[k] += np.bincount(table.indices, terms, minlength=X.shape[1])
        else:
            sums[k] += np.rint(each[:, None] * table).sum(axis=0)


def _add_large(X: Any, factors: FloatArray, sums: FloatArray) -> None:
    """The same, compiled."""
    from discreet.kernels import grid_loops

    if sp.issparse(X):
        rows = X.tocsr()
        grid_loops.add_compressed_rows(rows.indptr, rows.indices, rows.data, factors, sums)
    elif X.flags.c_contiguous or not X.flags.f_contiguous:
        grid_loops.add_dense(np.ascontiguousarray(X), factors, sums)
    else:
        grid_loops.add_columns(X.T, factors, sums)


@np.errstate(all="ignore")
def _cut_rows(rows: Any, factors: FloatArray, unit: float) -> FloatArray:
    """Rows times their factors, cut towards 0 to multiples of the unit, a power of two; a unit of 0 cuts nothing."""
    if not is_small(*rows.shape):
        from discreet.kernels.grid_loops import cut_rows

        return np.asarray(cut_rows(rows, factors, unit))
    cut = factors[:, None] * rows
    return np.trunc(cut * (1.0 / unit)) * unit if unit > 0.0 else cut


def outer_product_sum(X: Any, factors: FloatArray, unit: float, matrix: FloatArray | None = None) -> FloatArray:
    """The sum of a a', a being the rows, times the matrix if there is one, times their factors, cut to the unit.

    Sparse rows are multiplied by the matrix in parts, as they are dense then.
    """
    if sp.issparse(X) and matrix is None:
        rows = sp.csr_array(X.multiply(factors[:, None]))
        if unit > 0.0:
            rows.data = np.trunc(rows.data / unit) * unit
        return np.asarray((rows.T @ rows).toarray(), dtype=np.float64)
    size = max(1, MAPPED_ENTRIES // X.shape[1]) if sp.issparse(X) else max(1, X.shape[0])
    table = X.tocsr() if sp.issparse(X) else X
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, X.shape[0], size):
        part = table[start : start + size]
        mapped = part if matrix is None else np.asarray(part @ matrix, dtype=np.float64)
        cut = _cut_rows(mapped, factors[start : start + size], unit)
        total += cut.T @ cut
    return total
