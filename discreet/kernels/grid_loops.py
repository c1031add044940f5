"""The loops of `grid_sums` over tables that are too large for NumPy: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import ANY_ORDER


@njit(cache=True, error_model="numpy", nogil=True)
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


@njit(cache=True, fastmath=ANY_ORDER, error_model="numpy", nogil=True)
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


@njit(cache=True, error_model="numpy", nogil=True)
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
