"""Clipped gradient sums of all coordinates at once, and their upkeep on sparse rows."""

from __future__ import annotations

from numba import njit

from discreet.kernels.slopes import FAST, clamp, slope_of


@njit(cache=True, fastmath=FAST, error_model="numpy")
def clipped_dot(x, slopes, weight, limit):
    """The weighted sum of the clipped coordinate gradients, from stored slopes."""
    total = 0.0
    if weight.size == 0:
        for i in range(x.size):
            total += clamp(x[i] * slopes[i], limit)
    else:
        for i in range(x.size):
            total += weight[i] * clamp(x[i] * slopes[i], limit)
    return total


@njit(cache=True, error_model="numpy")
def sums_dense(columns, slopes, weight, clip, sums):
    """sums[j] = sum over the rows of weight * clamp(x_j * slope, clip_j)."""
    for j in range(clip.size):
        sums[j] = clipped_dot(columns[j], slopes, weight, clip[j])


@njit(cache=True, error_model="numpy")
def sums_sparse(indptr, indices, values, slopes, weight, clip, sums):
    """The same on compressed columns."""
    for j in range(clip.size):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            part = clamp(values[e] * slopes[indices[e]], clip[j])
            total += part if weight.size == 0 else weight[indices[e]] * part
        sums[j] = total


@njit(cache=True, error_model="numpy")
def move_sparse(
    indptr, indices, values, row_start, row_columns, row_values, j, change, y, weight, code, parameter, clip,
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
            sums[k] += share * (clamp(x * new, clip[k]) - clamp(x * old, clip[k]))
