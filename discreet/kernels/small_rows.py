"""Passes over scaled dense rows, slopes and curvatures with NumPy: the same bits as compiled, and nothing to compile.

The twins of `row_passes` and `slopes`; small tables need no more. Losses that bring functions of their
own are compiled all the same: NumPy cannot call these with arrays. Whatever is computed of one row is added up in an
order that is written down: by lanes over its columns (`lane_sums`), four columns at a time where it is multiplied by a
matrix (`mapped`).
"""

from __future__ import annotations

import numpy as np

from discreet.kernels.elementary import (
    EXPONENT_BIAS,
    MANTISSA,
    MANTISSA_BITS,
    ONE,
    bits_to_float,
    float_to_bits,
    minus_sigmoid,
)
from discreet.kernels.forms import HUBER, LOGISTIC, SMOOTHED_HINGE, SQUARED
from discreet.kernels.gradient import SMALLEST_FACTOR

SMALL = 1 << 18  # entries that NumPy passes over in milliseconds, while the first compiled pass takes seconds
ENTRIES_OF_A_ROW = 8  # as many as a row costs beside its own
LOW, HIGH, SHIFT, GAIN = range(4)  # the rows of an array of parameters of the columns
LANES = 8  # sums over columns that are made side by side: lane k adds up the columns k, k + 8, k + 16, ...
GROUP = 64  # rows whose products are added up by lanes, and then group after group


@np.errstate(all="ignore")
def fill_slopes(code, parameter, margins, y, slopes):
    """The slopes of all rows."""
    if code == LOGISTIC:
        slopes[:] = y * minus_sigmoid(y * margins)
    elif code == SMOOTHED_HINGE:
        slopes[:] = -y * _between((1.0 + parameter - y * margins) * (0.5 / parameter), 0.0, 1.0)
    elif code == HUBER:
        slopes[:] = _between(margins - y, -parameter, parameter)
    elif code == SQUARED:
        slopes[:] = margins - y
    else:
        from discreet.kernels import slopes as compiled

        compiled.fill_slopes(code, parameter, margins, y, slopes)


@np.errstate(all="ignore")
def fill_curvatures(code, parameter, margins, y, curvatures):
    """The second derivatives of all rows, of a loss with one output; at a kink the larger one."""
    if code == LOGISTIC:
        less = np.abs(minus_sigmoid(np.abs(y * margins)))  # the probability of the less likely label
        curvatures[:] = less * (1.0 - less)
    elif code == SMOOTHED_HINGE:
        curvatures[:] = np.where(np.abs(1.0 - y * margins) <= parameter, 0.5 / parameter, 0.0)
    elif code == HUBER:
        curvatures[:] = np.abs(margins - y) <= parameter
    elif code == SQUARED:
        curvatures[:] = 1.0
    else:
        from discreet.kernels import slopes as compiled

        compiled.fill_curvatures(code, parameter, margins, y, curvatures)


def _between(value, low, high):
    """min(max(value, low), high) as Numba compiles it: NaN stays NaN."""
    value = np.where(low > value, low, value)
    return np.where(high < value, high, value)


def is_small(rows, columns):
    """Whether NumPy is fast enough for a table of this size."""
    return rows * (columns + ENTRIES_OF_A_ROW) <= SMALL


def lane_sums(terms):
    """The sums over the first axis: by lanes, then the terms that are left over, one after the other.

    Of the lanes the second half is added to the first, until one is left.
    """
    even = len(terms) // LANES * LANES
    lanes = np.zeros((LANES, *terms.shape[1:]))
    for j in range(0, even, LANES):
        lanes += terms[j : j + LANES]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    total = lanes[0]
    for term in terms[even:]:
        total += term
    return total


def scaled(X, columns):
    """(clip(x, low, high) - shift) * gain of all entries; row j holds column j, so that loops run along the rows."""
    low, high, shift, gain = columns[:, :, None]
    Z = np.array(X.T, dtype=np.float64, order="C")
    np.copyto(Z, low, where=~np.greater(Z, low))
    np.copyto(Z, high, where=~np.less(Z, high))
    Z -= shift
    Z *= gain
    return Z


def fill_scaled(X, columns, out):
    """The scaled rows; a further column is left alone."""
    out[:, : X.shape[1]] = scaled(X, columns).T


@np.errstate(all="ignore")
def fill_margins(X, columns, w, margins):
    """The margins of the rows; the last of w is the intercept."""
    margins[:] = lane_sums(scaled(X, columns) * w[:-1, None]) + w[-1]


@np.errstate(all="ignore")
def fill_square_lengths(X, columns, last, squares):
    """The squared norms of the scaled rows with `last` as their last entry."""
    Z = scaled(X, columns)
    squares[:] = lane_sums(Z * Z) + last * last


@np.errstate(all="ignore")
def add_clipped_gradients(X, y, norms, weight, columns, w, code, parameter, clip, step, sums):
    """Add the gradients of the rows, each clipped and then rounded to multiples of the step, to sums; in steps.

    The last of w and of the sums is the intercept's. An empty weight stands for none, a step of 0 for no rounding.
    """
    Z, slopes = scaled(X, columns), np.empty(X.shape[0])
    fill_slopes(code, parameter, lane_sums(Z * w[:-1, None]) + w[-1], y, slopes)
    size, per_step = np.abs(slopes) * norms, 1.0 / step if step > 0.0 else 1.0
    factor = np.where(size > clip, clip / size, 1.0)
    slopes = np.where((size < np.inf) & (factor >= SMALLEST_FACTOR), slopes * factor * per_step, 0.0)
    if weight.size:
        slopes *= weight
    Z *= slopes
    for terms, place in ((Z, slice(-1)), (slopes[None], slice(-1, None))):
        if step > 0.0:
            sums[place] += np.rint(terms, out=terms).sum(axis=1)  # exact, in any order
        else:
            sums[place] = np.add.accumulate(np.column_stack([sums[place], terms]), axis=1)[:, -1]


def mapped(Z, last, maps):
    """Row k holds, of each scaled row with `last` as its last entry, its product with maps[k]; no maps: its entry k."""
    Z = np.concatenate([Z, np.full((1, Z.shape[1]), last)])
    if not maps.shape[0]:
        return Z
    total, weights = np.zeros((maps.shape[0], Z.shape[1])), maps.T[:, :, None]
    fours = len(Z) // 4 * 4
    for j in range(0, fours, 4):
        e, f, g, h = weights[j : j + 4] * Z[j : j + 4, None]
        total += (e + f) + (g + h)
    for j in range(fours, len(Z)):
        total += weights[j] * Z[j]
    return total


@np.errstate(all="ignore")
def fill_mapped_squares(X, columns, last, maps, squares):
    """The squared norms of z M, z being the scaled row with `last` as its last entry; maps[k] is column k of M."""
    squares[:] = 0.0
    for row in mapped(scaled(X, columns), last, maps):
        squares += row * row


@np.errstate(all="ignore")
def add_outer_products(X, columns, last, maps, factors, unit, total):
    """Add a a' of the rows a = (factor z) M, cut to multiples of the unit, to the upper triangle of the total.

    z is the scaled row with `last` as its last entry; no maps: M leaves it as it is. Where the unit makes all products
    exact, so is their sum.
    """
    groups, size = -(-X.shape[0] // GROUP), total.shape[0]
    A = np.zeros((size, groups * GROUP))
    a = A[:, : X.shape[0]]
    a[:] = mapped(scaled(X, columns), last, maps)[:size] * factors
    if unit > 0.0:
        a[:] = np.trunc(a * (1.0 / unit)) * unit
    for k in range(size):
        by_group = lane_sums(np.moveaxis((A[k] * A[k:]).reshape(size - k, groups, GROUP), 2, 0))
        total[k, k:] = np.add.accumulate(np.column_stack([total[k, k:], by_group]), axis=1)[:, -1]


@np.errstate(all="ignore")
def add_norms(norms, weight, unit, lowest, edges, counts):
    """Add the weight of each row to the bin of its norm; an empty weight stands for 1. See `histograms`."""
    bits = float_to_bits(norms / unit)
    octaves = (bits << np.uint64(1)) >> np.uint64(MANTISSA_BITS + 1)
    places = (octaves.astype(np.int64) - EXPONENT_BIAS - lowest) * (edges.size + 1)
    mantissas = bits_to_float((bits & MANTISSA) | ONE)
    for edge in edges:
        places += mantissas >= edge
    np.clip(places, 0, counts.size - 1, out=places)
    counts += np.bincount(places, weight if weight.size else None, minlength=counts.size)
