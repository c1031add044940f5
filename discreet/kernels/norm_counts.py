"""Counts of norms in bins of equal ratio. What they are for: `discreet.scaling.second_moment`."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from discreet.kernels.elementary import EXPONENT_BIAS, MANTISSA, MANTISSA_BITS, ONE
from discreet.kernels.vectormath import bits_to_float, float_to_bits

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
