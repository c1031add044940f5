"""Inner steps of SVRG: batches of gradient differences around an anchor; batches and noise are arguments.

Sums over a batch are counted in units of `grid_step` times the clip of the step: every row's term is rounded to
integers, and the noise is an integer too.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from discreet.kernels.slopes import prox_entry, slope_of
from discreet.kernels.stochastic import row_factor
from discreet.kernels.table_rows import add_rounded, margin_of
from discreet.kernels.units import UNROUNDED

SMALLEST_UNIT = 2.0**-500


@njit(cache=True, error_model="numpy", inline="always")
def difference_limit(w, anchor, difference_clip, clip):
    """The clip of a difference: it vanishes with the distance from the anchor, and 2 clip is always enough."""
    square = 0.0
    for j in range(w.size):
        square += (w[j] - anchor[j]) ** 2
    return min(difference_clip * math.sqrt(square), 2.0 * clip) if square > 0.0 else 0.0


@njit(cache=True, error_model="numpy", inline="always")
def difference_factor(slope, held, norm, clip, limit, weight):
    """Clipped slope now minus clipped slope at the anchor, held where the row's difference has norm at most limit."""
    return row_factor(row_factor(slope, norm, clip, 1.0) - held, norm, limit, weight)


@njit(cache=True, error_model="numpy", inline="always")
def unit_of_step(limit, grid_step):
    """What sums of differences of this norm are counted in; without noise they are not rounded.

    0 for a limit so small that its inverse, or a share of it, would leave the range of doubles: nothing is then added.
    """
    unit = limit * grid_step if grid_step > 0.0 else UNROUNDED
    return unit if unit >= SMALLEST_UNIT else 0.0


@njit(cache=True, error_model="numpy", nogil=True)
def limit_of_step(w, anchor, difference_clip, clip):
    """`difference_limit`, for whoever is no kernel."""
    return difference_limit(w, anchor, difference_clip, clip)


@njit(cache=True, error_model="numpy", nogil=True)
def add_differences(rows, norms, y, weight, code, parameter, grid_step, anchor, clip, limit, w, change):
    """Add the clipped differences of all rows between w and the anchor, in the units of a step with this limit."""
    unit = unit_of_step(limit, grid_step)
    inverse = 1.0 / unit if unit > 0.0 else 0.0
    for i in range(y.size):
        held = row_factor(slope_of(code, parameter, margin_of(rows, i, anchor), y[i]), norms[i], clip, 1.0)
        slope = slope_of(code, parameter, margin_of(rows, i, w), y[i])
        factor = difference_factor(slope, held, norms[i], clip, limit, weight[i] if weight.size else 1.0)
        add_rounded(rows, i, factor * inverse, change)


@njit(cache=True, error_model="numpy")
def inner(
    rows, norms, y, weight, code, parameter, indptr, indices, noise, grid_step, held, anchor, gradient, clip,
    difference_clip, step, batch, l1, l2, low, high, w, total,
):  # fmt: skip
    """One proximal step per batch with the anchor's gradient, corrected by the batch's clipped differences.

    `noise` is for differences of norm at most 1, in multiples of `grid_step`.
    """
    p = w.size
    change = np.empty(p)
    for t in range(indptr.size - 1):
        limit = difference_limit(w, anchor, difference_clip, clip)
        unit = unit_of_step(limit, grid_step)
        inverse = 1.0 / unit if unit > 0.0 else 0.0  # a clip of 0 leaves nothing
        for j in range(p):
            change[j] = noise[t, j]
        for e in range(indptr[t], indptr[t + 1]):
            i = indices[e]
            slope = slope_of(code, parameter, margin_of(rows, i, w), y[i])
            factor = difference_factor(slope, held[i], norms[i], clip, limit, weight[i] if weight.size else 1.0)
            add_rounded(rows, i, factor * inverse, change)
        for j in range(p):
            moved = w[j] - step * (gradient[j] + change[j] * unit / batch)
            w[j] = prox_entry(moved, step, l1[j], l2[j], low[j], high[j])
            total[j] += w[j]
