"""Coordinate descent on a small quadratic, in plain Python: the same bits as `quadratic`, and nothing to compile."""

from __future__ import annotations

import math


def minimise_quadratic(matrix, rest, l1, l2, low, high, w, tolerance, most):
    """At most so many sweeps: see `quadratic.minimise_quadratic`, which can go on from the w and rest it leaves."""
    rows, point, left = matrix.tolist(), w.tolist(), rest.tolist()
    terms = list(zip(l1.tolist(), l2.tolist(), low.tolist(), high.tolist(), strict=True))
    sweep, largest = 0, math.inf
    while sweep < most and largest > tolerance:
        largest = 0.0
        for j, row in enumerate(rows):
            value = _prox_entry(point[j] + 1.0 / row[j] * left[j], 1.0 / row[j], *terms[j])
            change = value - point[j]
            if change != 0.0:
                point[j] = value
                left = [each - change * entry for each, entry in zip(left, row, strict=True)]
                largest = max(largest, abs(change) * math.sqrt(row[j]))
        sweep += 1
    w[:], rest[:] = point, left
    return sweep, largest <= tolerance


def _prox_entry(value, step, l1, l2, low, high):
    """As `slopes.prox_entry` has it."""
    threshold = step * l1
    if value > threshold:
        value -= threshold
    elif value < -threshold:
        value += threshold
    else:
        value = 0.0
    return min(max(value / (1.0 + step * l2), low), high)
