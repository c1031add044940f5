"""Margins, norms and clipped gradients of scaled dense rows: the table is read once, and never copied.

Four rows are taken at once, so that the parameters of a column (low, high, shift, gain) are read once for the four. A
group of rows is read twice, for its margins and for its gradients, and scaled both times: it still lies in the
first-level cache, and scaling it again costs less than storing it. Where fewer than four rows are left, the last one
is repeated and not counted: the bits of a row do not depend on where blocks begin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.gradient import SMALLEST_FACTOR
from discreet.kernels.mapped_rows import GAIN, HIGH, LOW, SHIFT
from discreet.kernels.slopes import FAST, fill_slopes

GROUP_ENTRIES = 1280  # of the rows of a group: 10 KiB
MOST_ROWS = 128
# Every product is rounded as it is written, so that a gradient is as long as the proof says. What Numba inlines gets
# these flags of its caller.
EXACT = {"nsz"}


@njit(cache=True, error_model="numpy", nogil=True)
def _group_rows(columns):
    """How many rows a group has: a multiple of 4."""
    return min(max(GROUP_ENTRIES // max(columns, 1) // 4 * 4, 4), MOST_ROWS)


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True, inline="always")
def _scaled(value, low, high, shift, gain):
    """(clip(x, low, high) - shift) * gain of one entry."""
    value = value if value > low else low
    value = value if value < high else high
    return (value - shift) * gain


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def _fill_margins(X, start, count, columns, w, margins):
    """The margins of some rows; the last of w is the intercept. Up to three entries beyond the last are overwritten."""
    low, high, shift, gain, last = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN], X.shape[0] - 1
    p = X.shape[1]
    for i in range(0, count, 4):
        k = start + i
        a, b, c, d = X[k], X[min(k + 1, last)], X[min(k + 2, last)], X[min(k + 3, last)]
        e = f = g = h = 0.0
        for j in range(p):
            e += _scaled(a[j], low[j], high[j], shift[j], gain[j]) * w[j]
            f += _scaled(b[j], low[j], high[j], shift[j], gain[j]) * w[j]
            g += _scaled(c[j], low[j], high[j], shift[j], gain[j]) * w[j]
            h += _scaled(d[j], low[j], high[j], shift[j], gain[j]) * w[j]
        margins[i], margins[i + 1], margins[i + 2], margins[i + 3] = e + w[p], f + w[p], g + w[p], h + w[p]


@njit(cache=True, fastmath=EXACT, error_model="numpy", nogil=True)
def _add_rounded(X, start, count, columns, factors, sums):
    """Add every row times its factor, rounded to integers, to the sums; factors beyond the last row are 0."""
    low, high, shift, gain, last = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN], X.shape[0] - 1
    for i in range(0, count, 4):
        k = start + i
        a, b, c, d = X[k], X[min(k + 1, last)], X[min(k + 2, last)], X[min(k + 3, last)]
        e, f, g, h = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for j in range(X.shape[1]):
            first = np.rint(e * _scaled(a[j], low[j], high[j], shift[j], gain[j]))
            second = np.rint(f * _scaled(b[j], low[j], high[j], shift[j], gain[j]))
            third = np.rint(g * _scaled(c[j], low[j], high[j], shift[j], gain[j]))
            fourth = np.rint(h * _scaled(d[j], low[j], high[j], shift[j], gain[j]))
            sums[j] += (first + second) + (third + fourth)


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def _add(X, start, count, columns, factors, sums):
    """The same without rounding, one row after the other."""
    low, high, shift, gain = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN]
    for i in range(count):
        row, factor = X[start + i], factors[i]
        for j in range(X.shape[1]):
            sums[j] += factor * _scaled(row[j], low[j], high[j], shift[j], gain[j])


@njit(cache=True, fastmath={"contract", "nsz"}, error_model="numpy", nogil=True)  # the bound needs an exact quotient
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


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
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
        _fill_margins(X, start, count, columns, w, margins)
        fill_slopes(code, parameter, margins[:count], y[start:end], slopes)
        _clip_slopes(slopes, norms[start:end], weight[start:end] if weight.size else weight, clip, per_step, count)
        if step > 0.0:
            _add_rounded(X, start, count, columns, slopes, sums)
            for i in range(count):
                sums[p] += np.rint(slopes[i])
        else:
            _add(X, start, count, columns, slopes, sums)
            for i in range(count):
                sums[p] += slopes[i]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def fill_margins(X, columns, w, margins):
    """The margins of the rows; the last of w is the intercept."""
    n = X.shape[0]
    found = np.empty(MOST_ROWS)
    for start in range(0, n, MOST_ROWS):
        count = min(MOST_ROWS, n - start)
        _fill_margins(X, start, count, columns, w, found)
        for i in range(count):
            margins[start + i] = found[i]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def fill_scaled(X, columns, scaled):
    """The scaled rows; a further column is left alone."""
    low, high, shift, gain = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN]
    for i in range(X.shape[0]):
        row, out = X[i], scaled[i]
        for j in range(row.size):
            out[j] = _scaled(row[j], low[j], high[j], shift[j], gain[j])


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def fill_square_lengths(X, columns, last, squares):
    """The squared norms of the scaled rows with `last` as their last entry."""
    low, high, shift, gain, bottom = columns[LOW], columns[HIGH], columns[SHIFT], columns[GAIN], X.shape[0] - 1
    square, found = last * last, np.empty(4)
    for i in range(0, X.shape[0], 4):
        a, b, c, d = X[i], X[min(i + 1, bottom)], X[min(i + 2, bottom)], X[min(i + 3, bottom)]
        e = f = g = h = 0.0
        for j in range(X.shape[1]):
            e += _scaled(a[j], low[j], high[j], shift[j], gain[j]) ** 2
            f += _scaled(b[j], low[j], high[j], shift[j], gain[j]) ** 2
            g += _scaled(c[j], low[j], high[j], shift[j], gain[j]) ** 2
            h += _scaled(d[j], low[j], high[j], shift[j], gain[j]) ** 2
        found[0], found[1], found[2], found[3] = e + square, f + square, g + square, h + square
        for k in range(min(4, X.shape[0] - i)):
            squares[i + k] = found[k]
