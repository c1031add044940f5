"""Sums of terms that are rounded to multiples of a step first: exact, so that their order does not matter.

Terms are counted in steps. While a partial sum stays below 2^53 steps it is an exact double, and one row changes
it by its own rounded terms and by nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from discreet._common.types import FloatArray
from discreet.kernels.slopes import FAST

MAPPED_ENTRIES = 1 << 18  # of sparse rows that are dense for a moment


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def add_dense(X, factors, sums):
    """Add every row times its factors, rounded to integers, to sums[output, column].

    Four rows at once: the sums then travel to memory and back a quarter as often.
    """
    n, p = X.shape
    fours = n - n % 4
    for i in range(0, fours, 4):
        a, b, c, d = X[i], X[i + 1], X[i + 2], X[i + 3]
        for k in range(factors.shape[1]):
            total = sums[k]
            e, f, g, h = factors[i, k], factors[i + 1, k], factors[i + 2, k], factors[i + 3, k]
            for j in range(p):
                total[j] += (np.rint(e * a[j]) + np.rint(f * b[j])) + (np.rint(g * c[j]) + np.rint(h * d[j]))
    for i in range(fours, n):
        for k in range(factors.shape[1]):
            for j in range(p):
                sums[k, j] += np.rint(factors[i, k] * X[i, j])


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def add_columns(columns, factors, sums):
    """The same for a table that is stored column by column: columns[j] is column j."""
    p, n = columns.shape
    for c in range(factors.shape[1]):
        for j in range(p):
            x = columns[j]
            total = 0.0
            for i in range(n):
                total += np.rint(factors[i, c] * x[i])
            sums[c, j] += total


@njit(cache=True, error_model="numpy", nogil=True)
def add_compressed_rows(indptr, indices, values, factors, sums):
    """The same for compressed rows."""
    for i in range(factors.shape[0]):
        for c in range(factors.shape[1]):
            factor = factors[i, c]
            for e in range(indptr[i], indptr[i + 1]):
                sums[c, indices[e]] += np.rint(factor * values[e])


def rounded_row_sum(X: Any, factors: FloatArray, step: float) -> FloatArray:
    """Sum over the rows of x_i times its factors, every entry of every row rounded to a multiple of the step.

    The step must be a power of two. Returns (p,) for factors (n,), (outputs, p) for factors (n, outputs).
    """
    outputs = 1 if factors.ndim == 1 else factors.shape[1]  # not -1: a batch may be empty
    in_steps = np.ascontiguousarray((factors / step).reshape(factors.shape[0], outputs))
    sums = np.zeros((in_steps.shape[1], X.shape[1]))
    if sp.issparse(X):
        rows = X.tocsr()
        add_compressed_rows(rows.indptr, rows.indices, rows.data, in_steps, sums)
    elif X.flags.c_contiguous or not X.flags.f_contiguous:
        add_dense(np.ascontiguousarray(X), in_steps, sums)
    else:
        add_columns(X.T, in_steps, sums)
    sums *= step
    return sums[0] if factors.ndim == 1 else sums


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def cut_rows(rows, factors, unit):
    """Rows times their factors, cut towards 0 to multiples of the unit, a power of two; a unit of 0 cuts nothing."""
    n, p = rows.shape
    cut = np.empty((n, p))
    inverse = 1.0 / unit if unit > 0.0 else 1.0
    for i in range(n):
        row, out, factor = rows[i], cut[i], factors[i]
        if unit > 0.0:
            for j in range(p):
                out[j] = np.trunc((factor * row[j]) * inverse) * unit
        else:
            for j in range(p):
                out[j] = factor * row[j]
    return cut


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
        cut = cut_rows(mapped, factors[start : start + size], unit)
        total += cut.T @ cut
    return total
