"""Steps on batches of rows: arrays in, arrays out, batches and noise are arguments.

Steps of gradients, steps of differences of gradients around an anchor (SVRG), and steps in the dual problem. Sums over
a batch are counted in units: every row's term is rounded to integers, and the noise is an integer too. The units of
differences are `grid_step` times the clip of the step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from discreet.kernels.gradient import UNROUNDED
from discreet.kernels.lanes import add_rounded, dot, margin_of
from discreet.kernels.slopes import clamp, prox_entry, slope_of


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
def inner_steps(
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
def dual_steps(
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
