"""Where the rejected end of a range of candidates stops."""

from __future__ import annotations

from collections.abc import Callable

HALVINGS = 60


def last_rejected(rejected: Callable[[float], bool], halvings: int = HALVINGS) -> float:
    """How far the points from 0 on are rejected; those that are rejected form an interval.

    Bisection ends at a point that is rejected, so that rounding can only widen an interval of accepted points.
    """
    if not rejected(0.0):
        return 0.0
    if rejected(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low
