"""Coordinate descent on a small quadratic with a separable penalty: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.kernels.slopes import prox_entry


@njit(cache=True, error_model="numpy")
def minimise_quadratic(matrix, rest, l1, l2, low, high, w, tolerance, most):
    """Minimise w' matrix w / 2 - linear . w + penalty(w), starting at and writing to w; `rest` is linear - matrix w.

    It ends when no coordinate moves by more than the tolerance, in units of 1 / sqrt(its curvature). Returns the
    sweeps, and whether they sufficed.
    """
    for sweep in range(most):
        largest = 0.0
        for j in range(w.size):
            step = 1.0 / matrix[j, j]
            value = prox_entry(w[j] + step * rest[j], step, l1[j], l2[j], low[j], high[j])
            change = value - w[j]
            if change != 0.0:
                w[j] = value
                for k in range(w.size):
                    rest[k] -= change * matrix[j, k]
                largest = max(largest, abs(change) * np.sqrt(matrix[j, j]))
        if largest <= tolerance:
            return sweep + 1, True
    return most, False
