"""Dual coordinate steps on batches of rows: arrays in, arrays out, batches and noise are arguments.

Sums of moves are counted in units: every row's move is rounded to integers, and the noise is an integer too.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import prox_entry, slope_of
from discreet.kernels.stochastic import row_factor
from discreet.kernels.table_rows import add_rounded, margin_of


@njit(cache=True, error_model="numpy", inline="always")
def dual_step(slope, alpha, damping, norm, clip):
    """The move of one dual variable towards minus the slope, held where the row moves v by at most clip."""
    return row_factor((-slope - alpha) / damping, norm, clip, 1.0)


@njit(cache=True, error_model="numpy", inline="always")
def primal_point(v, pull, n, centre, l1, l2, low, high, w):
    """The minimiser of penalty(w) + pull / 2 |w - centre|^2 - v.w / n."""
    for j in range(w.size):
        w[j] = prox_entry(centre[j] + v[j] / (n * pull[j]), 1.0 / pull[j], l1[j], l2[j], low[j], high[j])


@njit(cache=True, error_model="numpy")
def batches(
    rows, norms, y, weight, code, parameter, indptr, indices, noise, unit, clip, damping, pull, n, first, refresh,
    l1, l2, low, high, alpha, v, centre, w, total,
):  # fmt: skip
    """All rows of a lot step from the same v; then v moves by their sum and the noise, and w follows from v.

    `first` batches are done before. After every `refresh` batches of the run the centre moves to w. The iterates are
    added up in `total`.
    """
    p, inverse = w.size, 1.0 / unit
    move = np.empty(p)
    for t in range(indptr.size - 1):
        for j in range(p):
            move[j] = noise[t, j]
        for e in range(indptr[t], indptr[t + 1]):
            i = indices[e]
            slope = slope_of(code, parameter, margin_of(rows, i, w), y[i])
            delta = dual_step(slope, alpha[i], damping[i], norms[i], clip)
            alpha[i] += delta
            add_rounded(rows, i, delta * (weight[i] if weight.size else 1.0) * inverse, move)
        for j in range(p):
            v[j] += move[j] * unit
        primal_point(v, pull, n, centre, l1, l2, low, high, w)
        for j in range(p):
            total[j] += w[j]
        if (first + t + 1) % refresh == 0:
            centre[:] = w
