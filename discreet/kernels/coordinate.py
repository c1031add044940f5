"""Coordinate descent sweeps: arrays in, arrays out, noise is an argument.

Gradients of coordinate j are counted in units of unit[j]: those of a row are clipped to clip[j] and rounded to an
integer, so that their sum is exact in any order, and the noise is an integer as well. With zero noise, no clipping and
tiny units these are the textbook proximal coordinate descent. `total` and `since` keep the sum of all iterates up to
date at constant cost per step (only one entry changes).

Other steps move a set of coordinates at once. With zero noise and infinite clipping such a step is the textbook
parallel coordinate step: all gradients of the set are taken at the same point.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.gradient import SMALLEST_NORM
from discreet.kernels.greedy import clipped_dot
from discreet.kernels.slopes import ANY_ORDER, LOGISTIC, clamp, fill_slopes, fill_vector_slope, prox_entry, slope_of


@njit(cache=True, error_model="numpy", forceinline=True, fastmath=False)
def moved_part(margin, change, moved, x, y, code, parameter, inverse, limit):
    """The margin of a row moved by change * moved, and the clipped coordinate gradient of the row there, in units."""
    margin += change * moved
    return margin, clamp(x * slope_of(code, parameter, margin, y) * inverse, limit)


@njit(cache=True, fastmath=ANY_ORDER, error_model="numpy")
def move_and_sum(margins, change, moved, x, y, weight, code, parameter, inverse, limit):
    """Add change * moved to all margins; the sum of the rounded, weighted, clipped coordinate gradients.

    One loop does both, so that the margins travel once; it must be free of choices to vectorise well.
    In a loop for all losses LLVM computes each of them and selects, so the dear one has its own.
    """
    total = 0.0
    n = x.size
    if code == LOGISTIC and weight.size == 0:
        for i in range(n):
            margins[i], part = moved_part(margins[i], change, moved[i], x[i], y[i], LOGISTIC, parameter, inverse, limit)
            total += np.rint(part)
    elif code == LOGISTIC:
        for i in range(n):
            margins[i], part = moved_part(margins[i], change, moved[i], x[i], y[i], LOGISTIC, parameter, inverse, limit)
            total += np.rint(weight[i] * part)
    elif weight.size == 0:
        for i in range(n):
            margins[i], part = moved_part(margins[i], change, moved[i], x[i], y[i], code, parameter, inverse, limit)
            total += np.rint(part)
    else:
        for i in range(n):
            margins[i], part = moved_part(margins[i], change, moved[i], x[i], y[i], code, parameter, inverse, limit)
            total += np.rint(weight[i] * part)
    return total


@njit(cache=True, error_model="numpy", forceinline=True)
def move_coordinate(j, push, count, step, l1, l2, low, high, w, total, since):
    """Coordinate j minus `push`, then the proximal map, as step number `count`; returns by how much it moved."""
    old = w[j]
    w[j] = prox_entry(old - push, step[j], l1[j], l2[j], low[j], high[j])
    total[j] += old * (count - since[j])
    since[j] = count
    return w[j] - old


@njit(cache=True, error_model="numpy")
def move_margins(margins, change, moved):
    for i in range(moved.size):
        margins[i] += change * moved[i]


@njit(cache=True, error_model="numpy")
def sweep_dense(
    columns, y, weight, code, parameter, coordinates, noise, clip, unit, step, l1, l2, low, high, rows,
    w, margins, total, since, first,
):  # fmt: skip
    """One step per entry of `coordinates`; columns[j] is column j, noise[k] is added to the k-th sum.

    The margins follow a step behind: a step moves them by the change of the step before.
    """
    change, last = 0.0, 0
    for k in range(coordinates.size):
        j = coordinates[k]
        inverse = 1.0 / unit[j]
        total_units = move_and_sum(
            margins, change, columns[last], columns[j], y, weight, code, parameter, inverse, clip[j] * inverse
        )
        push = step[j] * ((total_units + noise[k]) * unit[j] / rows)
        change, last = move_coordinate(j, push, first + k, step, l1, l2, low, high, w, total, since), j
    move_margins(margins, change, columns[last])


@njit(cache=True, error_model="numpy")
def sweep_sparse(
    indptr, indices, values, y, weight, code, parameter, coordinates, noise, clip, unit, step, l1, l2, low, high,
    rows, w, margins, total, since, first,
):  # fmt: skip
    """The same on compressed columns: a step costs the non-zeros of its column."""
    for k in range(coordinates.size):
        j = coordinates[k]
        total_units, inverse = noise[k], 1.0 / unit[j]
        for e in range(indptr[j], indptr[j + 1]):
            i = indices[e]
            part = clamp(values[e] * slope_of(code, parameter, margins[i], y[i]) * inverse, clip[j] * inverse)
            total_units += np.rint(part if weight.size == 0 else weight[i] * part)
        push = step[j] * (total_units * unit[j]) / rows
        change = move_coordinate(j, push, first + k, step, l1, l2, low, high, w, total, since)
        for e in range(indptr[j], indptr[j + 1]):
            margins[indices[e]] += change * values[e]


@njit(cache=True, error_model="numpy")
def sweep_blocks(
    indptr, indices, columns, y, weight, code, parameter, coordinates, noise, clip, unit, step, l1, l2, low, high,
    rows, w, margins, total, since, first,
):  # fmt: skip
    """Several outputs: a step moves the whole block w[:, j], its row gradients clipped in Euclidean norm.

    Dense columns come as a (p, n) array with empty `indices`, sparse ones as a (1, nnz) array.
    """
    outputs = w.shape[0]
    slopes, gradient = np.empty(outputs), np.empty(outputs)
    dense = indices.size == 0
    for k in range(coordinates.size):
        j = coordinates[k]
        gradient[:] = noise[k]
        inverse = 1.0 / unit[j]
        limit = clip[j] * inverse
        begin, end = (0, columns.shape[1]) if dense else (indptr[j], indptr[j + 1])
        for e in range(begin, end):
            i = e if dense else indices[e]
            x = columns[j, e] if dense else columns[0, e]
            fill_vector_slope(code, parameter, margins[i], y[i], slopes)
            length = np.sqrt((slopes * slopes).sum())
            # Squares of tiny slopes underflow: the floor is above their length. NaN stays NaN.
            size = abs(x) * (SMALLEST_NORM if length < SMALLEST_NORM else length) * inverse
            if not size < np.inf:  # NaN or infinite: the row contributes nothing
                continue
            factor = x * inverse if size <= limit else x * inverse * (limit / size)
            if weight.size:
                factor *= weight[i]
            for c in range(outputs):
                gradient[c] += np.rint(factor * slopes[c])
        for c in range(outputs):
            old = w[c, j]
            moved = old - step[j] * (gradient[c] * unit[j]) / rows
            w[c, j] = prox_entry(moved, step[j], l1[j], l2[j], low[j], high[j])
            total[c, j] += old * (first + k - since[j])
            gradient[c] = w[c, j] - old
        since[j] = first + k
        for e in range(begin, end):
            i = e if dense else indices[e]
            x = columns[j, e] if dense else columns[0, e]
            for c in range(outputs):
                margins[i, c] += x * gradient[c]


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
