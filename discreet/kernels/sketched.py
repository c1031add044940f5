"""Steps that move a set of coordinates at once, and the drawing of such sets; noise and draws are arguments.

With zero noise and infinite clipping a step is the textbook parallel coordinate step: all gradients of the set
are taken at the same point. `total` and `since` keep the sum of the iterates, as in the coordinate kernels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.coordinate import move_coordinate, move_margins
from discreet.kernels.gradient import SMALLEST_NORM
from discreet.kernels.greedy import clipped_dot
from discreet.kernels.slopes import clamp, fill_slopes, slope_of


@njit(cache=True, error_model="numpy", inline="always")
def clip_rows(slope, square):
    """The slope of a row whose gradient, divided by the limits, has length |slope| sqrt(square), cut to length 1.

    A length that is not finite leaves nothing of the row; one whose square underflows counts as SMALLEST_NORM.
    """
    norm = np.sqrt(square)
    size = abs(slope) * (SMALLEST_NORM if norm < SMALLEST_NORM else norm)
    if not size < np.inf:
        return 0.0
    return slope / size if size > 1.0 else slope


@njit(cache=True, error_model="numpy")
def add_squares(x, unit, squares):
    for i in range(x.size):
        squares[i] += (x[i] / unit) * (x[i] / unit)


@njit(cache=True, error_model="numpy")
def shorten_all(slopes, squares):
    for i in range(slopes.size):
        slopes[i] = clip_rows(slopes[i], squares[i])


@njit(cache=True, error_model="numpy")
def sets_dense(
    columns, y, weight, code, parameter, starts, members, noise, limit, unit, step, l1, l2, low, high, rows,
    w, margins, total, since, first,
):  # fmt: skip
    """One step per set members[starts[k]:starts[k + 1]]; noise[e] is added to the clipped sum of members[e].

    A row's gradient in the set, with entry e divided by limit[e], is cut to length 1; its entries and the noise are
    counted in units of unit[e], the entries rounded. The slopes are stored
    before the step, so the margins may follow coordinate by coordinate.
    """
    slopes, squares = np.empty(margins.size), np.empty(margins.size)
    for k in range(starts.size - 1):
        fill_slopes(code, parameter, margins, y, slopes)
        squares[:] = 0.0
        for e in range(starts[k], starts[k + 1]):
            add_squares(columns[members[e]], limit[e], squares)
        shorten_all(slopes, squares)
        for e in range(starts[k], starts[k + 1]):
            j = members[e]
            inverse = 1.0 / unit[e]
            units = clipped_dot(columns[j], slopes, weight, inverse, limit[e] * inverse) + noise[e]
            push = step[j] * (units * unit[e] / rows)
            change = move_coordinate(j, push, first + k, step, l1, l2, low, high, w, total, since)
            move_margins(margins, change, columns[j])


@njit(cache=True, error_model="numpy")
def sets_sparse(
    indptr, indices, values, y, weight, code, parameter, starts, members, noise, limit, unit, step, l1, l2, low, high,
    rows, w, margins, total, since, first,
):  # fmt: skip
    """The same on compressed columns: a step costs the non-zeros of its columns, read three times."""
    change, squares = np.empty(members.size), np.zeros(margins.size)
    for k in range(starts.size - 1):
        for e in range(starts[k], starts[k + 1]):
            for q in range(indptr[members[e]], indptr[members[e] + 1]):
                squares[indices[q]] += (values[q] / limit[e]) * (values[q] / limit[e])
        for e in range(starts[k], starts[k + 1]):
            j = members[e]
            units, inverse = noise[e], 1.0 / unit[e]
            for q in range(indptr[j], indptr[j + 1]):
                i = indices[q]
                slope = clip_rows(slope_of(code, parameter, margins[i], y[i]), squares[i])
                part = clamp(values[q] * slope * inverse, limit[e] * inverse)
                units += np.rint(part if weight.size == 0 else weight[i] * part)
            push = step[j] * (units * unit[e]) / rows
            change[e] = move_coordinate(j, push, first + k, step, l1, l2, low, high, w, total, since)
        for e in range(starts[k], starts[k + 1]):
            j = members[e]
            for q in range(indptr[j], indptr[j + 1]):
                margins[indices[q]] += change[e] * values[q]
                squares[indices[q]] = 0.0


@njit(cache=True)
def partial_shuffles(order, picks, members):
    """members[k] = the first entries of `order` after swapping entry i with entry picks[i, k], for every i.

    A shuffle that stops after a few places; whatever order it starts from, they hold a uniformly random sample
    without replacement if picks[i, k] is uniform on i..n-1.
    """
    for k in range(members.shape[0]):
        for i in range(members.shape[1]):
            chosen = picks[i, k]
            order[i], order[chosen] = order[chosen], order[i]
            members[k, i] = order[i]
