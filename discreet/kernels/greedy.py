"""Clipped gradient sums of all coordinates at once, and their upkeep on sparse rows.

Sums of coordinate j are counted in units of unit[j], every term rounded to an integer: they are exact, also after
many changes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import ANY_ORDER, clamp, slope_of


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
