"""Margins, norms and clipped gradients of scaled dense rows: the table is read once, and never copied.

Four rows are taken at once, so that the parameters of a column (low, high, shift, gain) are read once for the four. A
group of rows is read twice, for its margins and for its gradients, and scaled both times: it still lies in the
first-level cache, and scaling it again costs less than storing it. Where fewer than four rows are left, the last one is
repeated and not counted: the bits of a row do not depend on where blocks begin. Nor do they on the processor: sums over
columns are made by lanes, and every product is rounded as it is written, so that a gradient is as long as the proof
says. `small_rows` has the same bits without Numba.

For rows times a matrix, groups of them lie transposed in the cache, so that the innermost loops run along the rows.
Groups are always computed in full, the last one filled up with zeros: the bits of a row do not depend on where blocks
begin. Parts of arrays are copied in loops: Numba compiles an assignment of one slice to another for seconds, to word
its error message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.gradient import SMALLEST_FACTOR
from discreet.kernels.lanes import (
    add_products,
    four,
    lanes_of,
    no_lanes,
    numbers_of,
    rounded_products,
    scaled_lanes,
    sum_of_lanes,
)
from discreet.kernels.slopes import ANY_ORDER, fill_curvatures, fill_slopes  # noqa: F401 - as `small_rows` has them
from discreet.kernels.small_rows import GAIN, GROUP, HIGH, LANES, LOW, SHIFT


@njit(cache=True, error_model="numpy", nogil=True)
def _transpose_scaled(X, start, columns, Z):
    """Scaled rows from `start` on, column by column: Z[j, i]; zeros beyond the last row."""
    n, p = X.shape
    count = min(GROUP, n - start)
    for i in range(count):  # row by row: reading down the columns takes three times as long
        for j in range(p):
            Z[j, i] = X[start + i, j]
    for j in range(p):
        z = Z[j]
        low, high, shift, gain = columns[LOW, j], columns[HIGH, j], columns[SHIFT, j], columns[GAIN, j]
        for i in range(GROUP):
            value = z[i]
            value = value if value > low else low
            value = value if value < high else high
            z[i] = (value - shift) * gain
    if count < GROUP:
        Z[:, count:] = 0.0


@njit(cache=True, error_model="numpy", nogil=True)
def _map(Z, maps, mapped):
    """Row k of `mapped` is the sum over j of maps[k, j] Z[j]; two rows at once, so that Z is read half as often."""
    count = maps.shape[0]
    for k in range(0, count - 1, 2):
        _map_two(Z, maps[k], maps[k + 1], mapped[k], mapped[k + 1])
    if count % 2:
        _map_one(Z, maps[count - 1], mapped[count - 1])


@njit(cache=True, error_model="numpy", nogil=True)
def _map_two(Z, first, second, one, two):
    one[:] = 0.0
    two[:] = 0.0
    fours = Z.shape[0] // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
        e, f, g, h = first[j], first[j + 1], first[j + 2], first[j + 3]
        s, t, u, v = second[j], second[j + 1], second[j + 2], second[j + 3]
        for i in range(GROUP):
            one[i] += (e * a[i] + f * b[i]) + (g * c[i] + h * d[i])
            two[i] += (s * a[i] + t * b[i]) + (u * c[i] + v * d[i])
    for j in range(fours, Z.shape[0]):
        a, e, s = Z[j], first[j], second[j]
        for i in range(GROUP):
            one[i] += e * a[i]
            two[i] += s * a[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _map_one(Z, weights, mapped):
    mapped[:] = 0.0
    fours = Z.shape[0] // 4 * 4
    for j in range(0, fours, 4):
        a, b, c, d = Z[j], Z[j + 1], Z[j + 2], Z[j + 3]
        e, f, g, h = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for i in range(GROUP):
            mapped[i] += (e * a[i] + f * b[i]) + (g * c[i] + h * d[i])
    for j in range(fours, Z.shape[0]):
        a, e = Z[j], weights[j]
        for i in range(GROUP):
            mapped[i] += e * a[i]


@njit(cache=True, error_model="numpy", nogil=True)
def fill_mapped_squares(X, columns, last, maps, squares):
    """The squared norms of z M, z being the scaled row with `last` as its last entry; maps[k] is column k of M."""
    n, p = X.shape
    Z, total = np.zeros((p + 1, GROUP)), np.empty(GROUP)
    mapped = np.empty((maps.shape[0], GROUP))
    for start in range(0, n, GROUP):
        _transpose_scaled(X, start, columns, Z[:p])
        Z[p] = last
        _map(Z, maps, mapped)
        total[:] = 0.0
        for k in range(maps.shape[0]):
            a = mapped[k]
            for i in range(GROUP):
                total[i] += a[i] * a[i]
        for i in range(min(GROUP, n - start)):
            squares[start + i] = total[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _cut(mapped, factors, unit):
    """Entries times the factors of their rows, cut towards 0 to multiples of the unit; a unit of 0 cuts nothing."""
    if unit > 0.0:
        inverse = 1.0 / unit
        for i in range(GROUP):
            mapped[i] = np.trunc((factors[i] * mapped[i]) * inverse) * unit
    else:
        for i in range(GROUP):
            mapped[i] *= factors[i]


@njit(cache=True, error_model="numpy", nogil=True)
def add_outer_products(X, columns, last, maps, factors, unit, total):
    """Add a a' of the rows a = (factor z) M, cut to multiples of the unit, to the upper triangle of the total.

    z is the scaled row with `last` as its last entry; no maps: M leaves it as it is. Where the unit makes all products
    exact, so is their sum.
    """
    n, p = X.shape
    Z, factor = np.zeros((p + 1, GROUP)), np.zeros(GROUP)
    A = np.empty((total.shape[0], GROUP))
    for start in range(0, n, GROUP):
        count = min(GROUP, n - start)
        _transpose_scaled(X, start, columns, Z[:p])
        Z[p] = last
        for i in range(GROUP):
            factor[i] = factors[start + i] if i < count else 0.0
        if maps.shape[0]:
            _map(Z, maps, A)
        else:
            for k in range(A.shape[0]):
                for i in range(GROUP):
                    A[k, i] = Z[k, i]
        for k in range(A.shape[0]):
            _cut(A[k], factor, unit)
        _add_upper(A, total)


@njit(cache=True, error_model="numpy", nogil=True)
def _add_upper(A, total):
    """Add A A' to the upper triangle, two rows by two columns at once; each product is added up by lanes."""
    size = A.shape[0]
    for k in range(0, size - 1, 2):
        a, b = A[k], A[k + 1]
        for m in range(k, size - 1, 2):
            c, d = A[m], A[m + 1]
            ac = ad = bc = bd = no_lanes()
            for i in range(0, GROUP, LANES):
                e, f, g, h = lanes_of(a, i), lanes_of(b, i), lanes_of(c, i), lanes_of(d, i)
                ac, ad = add_products(ac, e, g), add_products(ad, e, h)
                bc, bd = add_products(bc, f, g), add_products(bd, f, h)
            total[k, m] += sum_of_lanes(ac)
            total[k, m + 1] += sum_of_lanes(ad)
            total[k + 1, m] += sum_of_lanes(bc)
            total[k + 1, m + 1] += sum_of_lanes(bd)
    if size % 2:
        d = A[size - 1]
        for k in range(size):
            ad = no_lanes()
            for i in range(0, GROUP, LANES):
                ad = add_products(ad, lanes_of(A[k], i), lanes_of(d, i))
            total[k, size - 1] += sum_of_lanes(ad)


GROUP_ENTRIES = 1280  # of the rows of a group: 10 KiB
FEWEST_ROWS, MOST_ROWS = 16, 128


@njit(cache=True, error_model="numpy", nogil=True)
def _group_rows(columns):
    """How many rows a group has: a multiple of 4."""
    return min(max(GROUP_ENTRIES // max(columns, 1) // 4 * 4, FEWEST_ROWS), MOST_ROWS)


@njit(cache=True, error_model="numpy", nogil=True, inline="always")
def _scaled(value, low, high, shift, gain):
    """(clip(x, low, high) - shift) * gain of one entry."""
    value = value if value > low else low
    value = value if value < high else high
    return (value - shift) * gain


@njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
def _scaled_column(a, b, c, d, low, high, shift, gain):
    """One column of four rows, scaled."""
    ends = four(low, low, low, low), four(high, high, high, high)
    return scaled_lanes(four(a, b, c, d), *ends, four(shift, shift, shift, shift), four(gain, gain, gain, gain))


@njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
def _four_sums(a, b, c, d, columns, weights):
    """The sums over the columns of four rows: each scaled entry times its weight; without weights, its square."""
    low, high, shift, gain, p = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN], a.size
    even = p // LANES * LANES
    q = r = s = t = no_lanes()
    for j in range(0, even, LANES):
        bottom, top, centre, factor = lanes_of(low, j), lanes_of(high, j), lanes_of(shift, j), lanes_of(gain, j)
        e = scaled_lanes(lanes_of(a, j), bottom, top, centre, factor)
        f = scaled_lanes(lanes_of(b, j), bottom, top, centre, factor)
        g = scaled_lanes(lanes_of(c, j), bottom, top, centre, factor)
        h = scaled_lanes(lanes_of(d, j), bottom, top, centre, factor)
        if weights is None:
            q, r, s, t = add_products(q, e, e), add_products(r, f, f), add_products(s, g, g), add_products(t, h, h)
        else:
            w = lanes_of(weights, j)
            q, r, s, t = add_products(q, e, w), add_products(r, f, w), add_products(s, g, w), add_products(t, h, w)
    # The columns that are left over: the entries of the four rows side by side.
    sums = four(sum_of_lanes(q), sum_of_lanes(r), sum_of_lanes(s), sum_of_lanes(t))
    for j in range(even, p):
        u = _scaled_column(a[j], b[j], c[j], d[j], low[j], high[j], shift[j], gain[j])
        if weights is None:
            sums = add_products(sums, u, u)
        else:
            v = weights[j]
            sums = add_products(sums, u, four(v, v, v, v))
    return numbers_of(sums)


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_sums(X, start, count, columns, weights, last, sums):
    """The sums of some rows, and `last` added to each. Up to three entries beyond the last one are overwritten."""
    end = X.shape[0] - 1
    for i in range(0, count, 4):
        k = start + i
        a, b, c, d = X[k], X[min(k + 1, end)], X[min(k + 2, end)], X[min(k + 3, end)]
        e, f, g, h = _four_sums(a, b, c, d, columns, weights)
        sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = e + last, f + last, g + last, h + last


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_all_sums(X, columns, weights, last, sums):
    """The sums of all rows."""
    found = np.empty(MOST_ROWS)
    for start in range(0, X.shape[0], MOST_ROWS):
        count = min(MOST_ROWS, X.shape[0] - start)
        _fill_sums(X, start, count, columns, weights, last, found)
        for i in range(count):
            sums[start + i] = found[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _add_rounded(X, start, count, columns, factors, sums):
    """Add every row times its factor, rounded to integers, to the sums; factors beyond the last row are 0."""
    low, high, shift, gain, last = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN], X.shape[0] - 1
    even = X.shape[1] // LANES * LANES
    for i in range(0, count, 4):
        k = start + i
        a, b, c, d = X[k], X[min(k + 1, last)], X[min(k + 2, last)], X[min(k + 3, last)]
        e, f, g, h = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for j in range(even):
            first = np.rint(e * _scaled(a[j], low[j], high[j], shift[j], gain[j]))
            second = np.rint(f * _scaled(b[j], low[j], high[j], shift[j], gain[j]))
            third = np.rint(g * _scaled(c[j], low[j], high[j], shift[j], gain[j]))
            fourth = np.rint(h * _scaled(d[j], low[j], high[j], shift[j], gain[j]))
            sums[j] += (first + second) + (third + fourth)
        factor = four(e, f, g, h)
        for j in range(even, X.shape[1]):
            column = _scaled_column(a[j], b[j], c[j], d[j], low[j], high[j], shift[j], gain[j])
            sums[j] += sum_of_lanes(rounded_products(factor, column))


@njit(cache=True, fastmath=ANY_ORDER, error_model="numpy", nogil=True)
def _rounded_sum(factors):
    """The sum of the factors, rounded to integers."""
    total = 0.0
    for factor in factors:
        total += np.rint(factor)
    return total


@njit(cache=True, error_model="numpy", nogil=True)
def _add(X, start, count, columns, factors, sums):
    """The same without rounding, one row after the other."""
    low, high, shift, gain = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN]
    for i in range(count):
        row, factor = X[start + i], factors[i]
        for j in range(X.shape[1]):
            sums[j] += factor * _scaled(row[j], low[j], high[j], shift[j], gain[j])


@njit(cache=True, error_model="numpy", nogil=True)
def _clip_slopes(slopes, norms, weight, clip, per_step, count):
    """Shorten the slopes of a group so that no gradient exceeds the norm `clip`; in steps; 0 beyond the last row."""
    for i in range(count):
        size = abs(slopes[i]) * norms[i]
        factor = clip / size if size > clip else 1.0
        slopes[i] = slopes[i] * factor * per_step if size < np.inf and factor >= SMALLEST_FACTOR else 0.0
    if weight.size:
        for i in range(count):
            slopes[i] *= weight[i]
    slopes[count:] = 0.0


@njit(cache=True, error_model="numpy", nogil=True)
def add_clipped_gradients(X, y, norms, weight, columns, w, code, parameter, clip, step, sums):
    """Add the gradients of the rows, each clipped and then rounded to multiples of the step, to sums; in steps.

    The last of w and of the sums is the intercept's. An empty weight stands for none, a step of 0 for no rounding.
    """
    n, p = X.shape
    group = _group_rows(p)
    slopes, margins = np.empty(group), np.empty(group)
    per_step = 1.0 / step if step > 0.0 else 1.0
    for start in range(0, n, group):
        count = min(group, n - start)
        end = start + count
        _fill_sums(X, start, count, columns, w, w[p], margins)
        fill_slopes(code, parameter, margins[:count], y[start:end], slopes)
        _clip_slopes(slopes, norms[start:end], weight[start:end] if weight.size else weight, clip, per_step, count)
        if step > 0.0:
            _add_rounded(X, start, count, columns, slopes, sums)
            sums[p] += _rounded_sum(slopes)
        else:
            _add(X, start, count, columns, slopes, sums)
            for i in range(count):
                sums[p] += slopes[i]


@njit(cache=True, error_model="numpy", nogil=True)
def fill_margins(X, columns, w, margins):
    """The margins of the rows; the last of w is the intercept."""
    _fill_all_sums(X, columns, w, w[X.shape[1]], margins)


@njit(cache=True, error_model="numpy", nogil=True)
def fill_square_lengths(X, columns, last, squares):
    """The squared norms of the scaled rows with `last` as their last entry."""
    _fill_all_sums(X, columns, None, last * last, squares)


@njit(cache=True, error_model="numpy", nogil=True)
def fill_scaled(X, columns, scaled):
    """The scaled rows; a further column is left alone."""
    low, high, shift, gain = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN]
    for i in range(X.shape[0]):
        row, out = X[i], scaled[i]
        for j in range(row.size):
            out[j] = _scaled(row[j], low[j], high[j], shift[j], gain[j])
