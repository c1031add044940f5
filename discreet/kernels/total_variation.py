"""The proximal map of the total variation of a sequence, exactly, in a time that grows with its length.

Dynamic programming after Johnson (2013): the derivative of the best value of the first k entries, as a function of the
k-th, is piecewise linear; each step clips it to [-strength, strength] and adds one line. A step adds two knots, one at
each end, and a knot that is passed there is gone: all steps together handle at most twice as many knots as entries.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def total_variation_prox(v, strength):
    """The minimiser of |w - v|^2 / 2 + strength * (sum of |w[k + 1] - w[k]|), for n >= 2 and strength > 0.

    A knot is a place and the change of slope and offset that the derivative makes there.
    """
    n = v.size
    places, slopes, offsets = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
    lower, upper = np.empty(n - 1), np.empty(n - 1)  # where the derivative crosses -strength and strength
    first, last = n - 1, n
    lower[0], upper[0] = v[0] - strength, v[0] + strength
    places[first], slopes[first], offsets[first] = lower[0], 1.0, strength - v[0]
    places[last], slopes[last], offsets[last] = upper[0], -1.0, strength + v[0]
    for k in range(1, n - 1):
        slope, offset, low = 1.0, -v[k] - strength, first
        while low <= last and slope * places[low] + offset <= -strength:
            slope += slopes[low]
            offset += offsets[low]
            low += 1
        back_slope, back_offset, high = -1.0, v[k] - strength, last
        while high >= low and -back_slope * places[high] - back_offset >= strength:
            back_slope += slopes[high]
            back_offset += offsets[high]
            high -= 1
        lower[k] = (-strength - offset) / slope
        upper[k] = (strength + back_offset) / -back_slope
        first, last = low - 1, high + 1
        places[first], slopes[first], offsets[first] = lower[k], slope, offset + strength
        places[last], slopes[last], offsets[last] = upper[k], back_slope, back_offset + strength
    slope, offset, low = 1.0, -v[n - 1] - strength, first
    while low <= last and slope * places[low] + offset <= 0.0:
        slope += slopes[low]
        offset += offsets[low]
        low += 1
    w = np.empty(n)
    w[n - 1] = -offset / slope
    for k in range(n - 2, -1, -1):
        w[k] = min(max(w[k + 1], lower[k]), upper[k])
    return w
