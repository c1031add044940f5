"""Laws of a convex penalty."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.penalties import Penalty
from discreet.testing.laws import broken
from discreet.testing.tables import points

STEPS = (1e-3, 0.3, 10.0)
SLACK = 1e-9


def prox_minimises(penalty: Penalty) -> None:
    """No other point has a smaller value(w) + ||w - v||^2 / (2 step) than the proximal map."""
    for step in STEPS:
        for v in points():
            w = penalty.prox(v, step)
            best = _moreau(penalty, w, v, step)
            for other in [*points(), *(w + 0.01 * z for z in points()), v]:
                if not best <= _moreau(penalty, other, v, step) + SLACK * (1.0 + abs(best)):
                    broken(f"prox({v}, {step}) is {w}, but {other} is better")


def conjugate_keeps_fenchel_young(penalty: Penalty) -> None:
    """value(w) + conjugate(u) >= <u, w>, with equality where u is a subgradient at w; for separable penalties."""
    if not penalty.separable:
        return  # its conjugate is not needed
    for v in points():
        w = penalty.prox(v, 1.0)
        u = (v - w) * (1.0 - 1e-12)  # a subgradient at w, not rounded out of the conjugate's domain
        value, conjugate, product = penalty.value(w), penalty.conjugate(u), float(u @ w)
        if not abs(value + conjugate - product) <= SLACK * (1.0 + abs(value) + abs(product)):
            broken(f"at the coefficients {w} conjugate({u}) is {conjugate!r}, and must be {product - value!r}")
        for other in points():
            if not penalty.value(other) + conjugate >= float(u @ other) - SLACK * (1.0 + abs(float(u @ other))):
                broken(f"conjugate({u}) is {conjugate!r}, less than <u, w> - value(w) at the coefficients {other}")


def value_is_strongly_convex(penalty: Penalty) -> None:
    """The value at the middle lies below the mean of the ends, by what `strong_convexity` states."""
    feasible = [w for w in points() if math.isfinite(penalty.value(w))]
    for a in feasible:
        for b in feasible:
            mean = 0.5 * (penalty.value(a) + penalty.value(b))
            gain = penalty.strong_convexity / 8.0 * float((a - b) @ (a - b))
            if not penalty.value(0.5 * (a + b)) <= mean - gain + SLACK * (1.0 + mean):
                broken(f"halfway from {a} to {b} the value is larger than {penalty.strong_convexity=} allows")


def extreme_numbers_give_no_nan(penalty: Penalty) -> None:
    """Coefficients up to 1.7e308 give numbers or infinity, never NaN."""
    w = np.array([1e308, -1.7e308, 5e-324, 0.0])
    found = [penalty.value(w), *np.ravel(penalty.prox(w, 1.0))]
    if penalty.separable:
        found.append(penalty.conjugate(w))
    if np.isnan(found).any():
        broken(f"at the coefficients {w} value, prox and conjugate are {found}")


def _moreau(penalty: Penalty, w: FloatArray, v: FloatArray, step: float) -> float:
    return penalty.value(w) + float((w - v) @ (w - v)) / (2.0 * step)
