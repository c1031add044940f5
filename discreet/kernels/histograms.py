"""Histograms and moments of the columns of dense rows, and counts of norms, in one pass. For `discreet.scaling`."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from discreet._common.types import FloatArray
from discreet.kernels.elementary import EXPONENT_BIAS, MANTISSA, MANTISSA_BITS, ONE
from discreet.kernels.vectormath import bits_to_float, float_to_bits

TILE_ENTRIES = 320  # of the repeated parameters: four times as many numbers, and the sums, fit in a first-level cache
MOST_TILE_ROWS = 64


def tiled_columns(low: FloatArray, high: FloatArray, centre: FloatArray, radius: FloatArray) -> FloatArray:
    """The parameters of the columns, each repeated for as many rows as a tile has: (4, rows of a tile * columns).

    The innermost loop then runs over several rows at once, and vectorises well however few columns there are.
    """
    repeats = min(max(TILE_ENTRIES // max(low.size, 1), 1), MOST_TILE_ROWS)
    return np.stack([np.tile(each, repeats) for each in (low, high, centre, radius)])


@njit(cache=True, error_model="numpy", nogil=True)
def add_exponents(X, origin, weight, lowest, highest, counts):
    """Add each row's weight to the bin of the binary exponent of |x - origin|, column by column; zeros go to the last.

    Exponents beyond the lowest and the highest go to these bins. An empty weight stands for 1.
    """
    n, p = X.shape
    zeros = highest - lowest + 1
    bins = np.empty(p, dtype=np.int64)
    for i in range(n):
        row = X[i]
        for j in range(p):
            distance = abs(np.float64(row[j]) - origin[j])
            exponent = np.int64(float_to_bits(distance) >> uint64(MANTISSA_BITS)) - EXPONENT_BIAS
            place = min(max(exponent, lowest), highest) - lowest
            bins[j] = place if distance > 0.0 else zeros
        share = weight[i] if weight.size else 1.0
        for j in range(p):
            counts[j, bins[j]] += share


@njit(cache=True, error_model="numpy", nogil=True)
def add_moments(entries, tiled, step, sums):
    """Add u and u^2 of the entries of consecutive rows, rounded to multiples of the step, to sums; in steps.

    u = (clip(x, low, high) - centre) / radius, within [-1, 1]; a radius of 0 gives u = 0. These four parameters of the
    columns come from `tiled_columns`, repeated for several rows, and so do the sums.
    """
    low, high, centre, radius = tiled[0], tiled[1], tiled[2], tiled[3]
    first, second = sums[0], sums[1]
    per_step, size = 1.0 / step, low.size
    for start in range(0, entries.size, size):
        x = entries[start : start + size]
        for j in range(x.size):
            value = np.float64(x[j])
            value = value if value > low[j] else low[j]
            value = value if value < high[j] else high[j]
            u = (value - centre[j]) / radius[j] if radius[j] > 0.0 else 0.0
            u = u if u < 1.0 else 1.0
            u = u if u > -1.0 else -1.0
            first[j] += np.rint(u * per_step)
            second[j] += np.rint((u * u) * per_step)


CHUNK = 512  # bins that are found, in a loop that vectorises, before they are counted


@njit(cache=True, error_model="numpy", nogil=True)
def add_norms(norms, weight, unit, lowest, edges, counts):
    """Add the weight of each row to the bin of its norm; an empty weight stands for 1.

    Bins begin at unit * 2^lowest. `edges`, ascending within (1, 2), are where an octave is divided. Norms below the
    first bin go there, those beyond the last, infinite ones and NaN to the last one.
    """
    bins = np.empty(CHUNK, dtype=np.int64)
    for start in range(0, norms.size, CHUNK):
        part = norms[start : start + CHUNK]
        _fill_bins(part, unit, lowest, edges, counts.size - 1, bins)
        for i in range(part.size):
            counts[bins[i]] += weight[start + i] if weight.size else 1.0


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_bins(norms, unit, lowest, edges, last, bins):
    per_octave = edges.size + 1
    for i in range(norms.size):
        bits = float_to_bits(abs(norms[i] / unit))
        bins[i] = (np.int64(bits >> uint64(MANTISSA_BITS)) - EXPONENT_BIAS - lowest) * per_octave
    for edge in edges:
        for i in range(norms.size):
            bins[i] += bits_to_float((float_to_bits(norms[i] / unit) & MANTISSA) | ONE) >= edge
    for i in range(norms.size):
        bins[i] = min(max(bins[i], 0), last)
