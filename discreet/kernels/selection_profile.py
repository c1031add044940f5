"""The inner loop of the privacy profile of selections: the best two-point loss at each point of a grid.

Without fast mathematics: every result is rounded as NumPy rounds it, operation by operation.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def best_means(slopes, intercepts, a, bounds, decay):
    """The largest mean over all two-point losses; `bounds[s + 1] <= u <= bounds[s]` in the cell s.

    In the cell s the two chords are intercepts[i] + slopes[i] * a, for i = k + cells - s and i = k + 2 cells - s.
    """
    size, cells = a.size, bounds.size - 1
    best = np.zeros(size)
    for s in range(cells):
        first, second, least, most = cells - s, 2 * cells - s, bounds[s + 1], bounds[s]
        for k in range(size):
            slope, steeper = slopes[k + first], slopes[k + second]
            start, lower = intercepts[k + first], intercepts[k + second]
            falling, rising = a[k] * (steeper - slope), decay * (start - lower)
            falling = falling if falling > 1e-300 else 1e-300
            rising = rising if rising > 0.0 else 0.0
            u = math.sqrt(rising / falling)
            u = u if u > least else least
            u = u if u < most else most
            p = (1.0 - decay / u) / (1.0 - decay)
            mean = p * (start + slope * a[k] * u) + (1.0 - p) * (lower + steeper * a[k] * (u / decay))
            best[k] = mean if mean > best[k] else best[k]
    return best
