"""Stochastic gradient steps on batches of rows: arrays in, arrays out, batches and noise are arguments.

Sums over a batch are counted in units: every row's term is rounded to integers, and the noise is an integer too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.lanes import dot
from discreet.kernels.slopes import clamp, prox_entry, slope_of
from discreet.kernels.table_rows import add_rounded, margin_of


@njit(cache=True, error_model="numpy", inline="always")
def row_factor(slope, norm, clip, weight):
    """The slope held in the interval where the row's gradient, slope * x, has norm at most clip."""
    return clamp(slope, clip / norm if norm > 0.0 else 0.0) * weight


@njit(cache=True, error_model="numpy", nogil=True)
def fill_outputs(table, w, margins):
    """The products of each row with the weights of each output: of a row alone, whatever rows are beside it."""
    for i in range(table.shape[0]):
        for k in range(w.shape[0]):
            margins[i, k] = dot(table[i], w[k])


@njit(cache=True, error_model="numpy", nogil=True)
def add_gradients(rows, norms, y, weight, code, parameter, unit, clip, w, gradient, held):
    """Add the clipped gradients of all rows, in units; the clipped slopes go into `held`, unless that is empty."""
    inverse = 1.0 / unit
    for i in range(y.size):
        slope = slope_of(code, parameter, margin_of(rows, i, w), y[i])
        if held.size:
            held[i] = row_factor(slope, norms[i], clip, 1.0)
        factor = row_factor(slope, norms[i], clip, weight[i] if weight.size else 1.0) * inverse
        add_rounded(rows, i, factor, gradient)


@njit(cache=True, error_model="numpy")
def steps(
    rows, norms, y, weight, code, parameter, indptr, indices, noise, unit, clip, step, batch, l1, l2, low, high,
    plain, w, total,
):  # fmt: skip
    """One proximal step per batch; `plain` says that the penalty is a ridge alone (no L1, no box).

    With batches of one row every step waits for the one before, so no division is left to it: a ridge shrinks by
    factors known from the start.
    """
    p = w.size
    length, inverse = step / batch * unit, 1.0 / unit
    gradient, shrink = np.empty(p), np.empty(p)
    for j in range(p):
        shrink[j] = 1.0 / (1.0 + step * l2[j])
    for t in range(indptr.size - 1):
        for j in range(p):
            gradient[j] = noise[t, j]
        for e in range(indptr[t], indptr[t + 1]):
            i = indices[e]
            slope = slope_of(code, parameter, margin_of(rows, i, w), y[i])
            factor = row_factor(slope, norms[i], clip, weight[i] if weight.size else 1.0) * inverse
            add_rounded(rows, i, factor, gradient)
        if plain:
            for j in range(p):
                w[j] = (w[j] - length * gradient[j]) * shrink[j]
        else:
            for j in range(p):
                w[j] = prox_entry(w[j] - length * gradient[j], step, l1[j], l2[j], low[j], high[j])
        for j in range(p):
            total[j] += w[j]
