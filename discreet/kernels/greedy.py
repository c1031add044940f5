"""Clipped gradient sums of all coordinates at once, and their upkeep on sparse rows.

Sums of coordinate j are counted in units of unit[j], every term rounded to an integer: they are exact, also after many
changes.

For Frank-Wolfe, the exponential mechanism over many vertices is kept up to date while few of their scores change. A
level l_j is the inner product of vertex j with the gradient sum. An entry is either one vertex, with utility -l_j, or a
pair of opposite ones, with utilities -l_j and l_j. `rate` is the inverse of the noise scale; the weight of a vertex is
the exponential of rate * utility - `reference`.

The weights are the leaves of a tree of sums, stored floor by floor in one array, leaves first: node k of floor f is
tree[floors[f] + k], and it is the sum of the nodes FAN * k, ..., FAN * k + FAN - 1 of the floor below. The last number
is the total. A change costs its ancestors, a draw one path from the top. Sums are always taken afresh from the floor
below and never corrected by differences, which would keep the rounding of weights long gone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import ANY_ORDER, clamp, slope_of
from discreet.kernels.vectormath import exp_fast


@njit(cache=True, error_model="numpy", inline="always")
def clipped_units(value, clip, unit):
    """A number clipped to [-clip, clip], in units."""
    return clamp(value / unit, clip / unit)


@njit(cache=True, error_model="numpy", inline="always")
def rounded_change(x, old, new, share, clip, unit):
    """By how many units the term of a row changes when its slope does."""
    after, before = clipped_units(x * new, clip, unit), clipped_units(x * old, clip, unit)
    return np.rint(share * after) - np.rint(share * before)


@njit(cache=True, error_model="numpy", forceinline=True, fastmath=False)
def clipped_part(x, slope, inverse, limit):
    """The clipped coordinate gradient of a row, in units, whose `inverse` this is."""
    return clamp(x * slope * inverse, limit)


@njit(cache=True, fastmath=ANY_ORDER, error_model="numpy")
def clipped_dot(x, slopes, weight, inverse, limit):
    """The sum of the rounded, weighted, clipped coordinate gradients, from stored slopes; `inverse` of the unit."""
    total = 0.0
    if weight.size == 0:
        for i in range(x.size):
            total += np.rint(clipped_part(x[i], slopes[i], inverse, limit))
    else:
        for i in range(x.size):
            total += np.rint(weight[i] * clipped_part(x[i], slopes[i], inverse, limit))
    return total


@njit(cache=True, error_model="numpy")
def sums_dense(columns, slopes, weight, clip, unit, sums):
    """sums[j] = sum over the rows of weight * clamp(x_j * slope, clip_j), in units."""
    for j in range(clip.size):
        sums[j] = clipped_dot(columns[j], slopes, weight, 1.0 / unit[j], clip[j] / unit[j])


@njit(cache=True, error_model="numpy")
def sums_sparse(indptr, indices, values, slopes, weight, clip, unit, sums):
    """The same on compressed columns."""
    for j in range(clip.size):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            part = clipped_units(values[e] * slopes[indices[e]], clip[j], unit[j])
            total += np.rint(part if weight.size == 0 else weight[indices[e]] * part)
        sums[j] = total


@njit(cache=True, error_model="numpy")
def move_sparse(
    indptr, indices, values, row_start, row_columns, row_values, j, change, y, weight, code, parameter, clip, unit,
    margins, slopes, sums,
):  # fmt: skip
    """Move coordinate j and bring margins, slopes and all sums up to date: only its rows are touched."""
    for e in range(indptr[j], indptr[j + 1]):
        i = indices[e]
        margins[i] += change * values[e]
        old, new = slopes[i], slope_of(code, parameter, margins[i], y[i])
        slopes[i] = new
        share = 1.0 if weight.size == 0 else weight[i]
        for q in range(row_start[i], row_start[i + 1]):
            k, x = row_columns[q], row_values[q]
            sums[k] += rounded_change(x, old, new, share, clip[k], unit[k])


FAN = 16
_MARK = -1.0  # a sum that waits to be taken afresh; no sum of weights is negative


@njit(cache=True, error_model="numpy", inline="always")
def _weight(level, rate, paired, reference):
    if not paired:
        return exp_fast(-rate * level - reference)
    size = abs(rate * level)
    return exp_fast(size - reference) + exp_fast(-size - reference)


@njit(cache=True, error_model="numpy")
def _sum_below(tree, floors, floor, k):
    """The sum of the children of node k."""
    first = floors[floor - 1] + FAN * k
    total = 0.0
    for child in range(first, min(first + FAN, floors[floor])):
        total += tree[child]
    return total


@njit(cache=True, error_model="numpy")
def weigh_all(levels, rate, paired, tree, floors):
    """Set the reference to the largest exponent and compute every weight and sum afresh."""
    reference = rate * (max(-levels.min(), levels.max()) if paired else -levels.min())
    for j in range(levels.size):
        tree[j] = _weight(levels[j], rate, paired, reference)
    for floor in range(1, floors.size - 1):
        for k in range(floors[floor + 1] - floors[floor]):
            tree[floors[floor] + k] = _sum_below(tree, floors, floor, k)
    return reference


@njit(cache=True, error_model="numpy")
def weigh_some(changed, levels, rate, paired, reference, tree, floors):
    """Bring the weights of the changed levels and the sums above them up to date; `changed` is used up."""
    for j in changed:
        tree[j] = _weight(levels[j], rate, paired, reference)
    count = changed.size
    for floor in range(1, floors.size - 1):
        parents = 0
        for q in range(count):
            k = changed[q] // FAN
            if tree[floors[floor] + k] != _MARK:
                tree[floors[floor] + k] = _MARK
                changed[parents] = k
                parents += 1
        count = parents
        for q in range(count):
            tree[floors[floor] + changed[q]] = _sum_below(tree, floors, floor, changed[q])


@njit(cache=True, error_model="numpy")
def draw(levels, rate, paired, tree, floors, uniforms):
    """A vertex with the probabilities of its weight: a path down the tree, then one of a pair; (index, sign)."""
    k = 0
    for floor in range(floors.size - 2, 0, -1):
        point = uniforms[floor] * tree[floors[floor] + k]
        first = floors[floor - 1] + FAN * k
        chosen = first
        for child in range(first, min(first + FAN, floors[floor])):
            if tree[child] > 0.0:
                chosen = child
                if point < tree[child]:
                    break
                point -= tree[child]
        k = chosen - floors[floor - 1]
    if paired and uniforms[0] * (1.0 + exp_fast(2.0 * rate * levels[k])) >= 1.0:
        return k, -1.0
    return k, 1.0


@njit(cache=True, error_model="numpy")
def push_column(start, stop, indices, values, push, margins, seen, touched, count):
    """Add a multiple of a sparse column to the margins; rows met for the first time join the touched ones."""
    for e in range(start, stop):
        i = indices[e]
        margins[i] += push * values[e]
        if not seen[i]:
            seen[i] = True
            touched[count] = i
            count += 1
    return count


@njit(cache=True, error_model="numpy")
def refresh_rows(
    row_start, row_columns, row_values, touched, scale, y, weight, code, parameter, clip, unit,
    margins, slopes, sums, dirty, changed,
):  # fmt: skip
    """Slopes of the touched rows at scale * margins, and the clipped sums, in units; lists the sums that changed."""
    count = 0
    for i in touched:
        old, new = slopes[i], slope_of(code, parameter, scale * margins[i], y[i])
        if new == old:
            continue
        slopes[i] = new
        share = 1.0 if weight.size == 0 else weight[i]
        for q in range(row_start[i], row_start[i + 1]):
            k, x = row_columns[q], row_values[q]
            sums[k] += rounded_change(x, old, new, share, clip, unit)
            if not dirty[k]:
                dirty[k] = True
                changed[count] = k
                count += 1
    for k in changed[:count]:
        dirty[k] = False
    return count
