"""The scores of greedy descent in floating point: how far they are from the exact ones, and how far they move."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.problem.penalties import PenaltyTerms, prox_decrease_root

ROUNDOFF = 2.0**-53
CERTIFIED = 40.0  # units of rounding that docs/guarantees/greedy-cd.md proves, over sqrt(M) times the size of the input
DIGITS = 10**30

SIZES = st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 37.0, 1e4, 1e9])
SIGNED = st.builds(lambda size, digits: size * digits, SIZES, st.floats(-1.0, 1.0))
POSITIVE = st.builds(lambda size, digits: size * digits, SIZES, st.floats(0.1, 1.0))
CASES = {
    "w": SIGNED,
    "gradient": SIGNED,
    "bound": st.floats(0.01, 100.0),
    "l1": POSITIVE,
    "l2": POSITIVE,
    "low": st.one_of(st.just(-np.inf), SIGNED),
    "high": st.one_of(st.just(np.inf), SIGNED),
}


def terms(w, l1, l2, low, high):
    """A penalty on an interval that is widened to contain w."""
    return PenaltyTerms(*(np.array([value]) for value in (l1, l2, min(w, low), max(w, high))))


def exact_root(w, gradient, bound, c):
    """sqrt(2 Q) in rational arithmetic: the least of a convex function, sought among all points where it can lie."""
    w, g, M, l1, l2 = (Fraction(float(v)) for v in (w, gradient, bound, c.l1[0], c.l2[0]))
    low, high = float(c.low[0]), float(c.high[0])

    def objective(v):
        return g * (v - w) + M * (v - w) ** 2 / 2 + l1 * (abs(v) - abs(w)) + l2 * (v**2 - w**2) / 2

    points = [Fraction(0), w, *((M * w - g - sign * l1) / (M + l2) for sign in (1, -1))]
    points += [Fraction(end) for end in (low, high) if np.isfinite(end)]
    inside = [v for v in points if low <= v <= high]
    twice = 2 * max(-objective(v) for v in inside)
    return isqrt(int(twice * DIGITS**2)) / DIGITS


def size_of(w, gradient, bound, c):
    return abs(gradient) + (bound + c.l2[0]) * abs(w) + 2.0 * c.l1[0]


@settings(max_examples=400)
@given(**CASES)
def test_the_score_of_gs_q_is_exact_to_a_few_units_of_rounding(w, gradient, bound, l1, l2, low, high):
    """By the decrease itself, a difference of nearly equal numbers, the error would be the root of that rounding."""
    c = terms(w, l1, l2, low, high)
    found = prox_decrease_root([w], [gradient], [bound], c)[0]
    error = abs(found - exact_root(w, gradient, bound, c))
    assert error <= CERTIFIED * ROUNDOFF * size_of(w, gradient, bound, c) / np.sqrt(bound) + 1e-29


@settings(max_examples=400)
@example(w=1065083.2, gradient=0.0, bound=4.8, l1=0.09, l2=0.18, low=-np.inf, high=np.inf, change=1e-3)
@given(**CASES, change=st.sampled_from([1e-12, 3e-8, 1e-3, 1.0]))
def test_the_score_of_gs_q_moves_by_its_sensitivity_and_rounding(w, gradient, bound, l1, l2, low, high, change):
    """Near an optimum too, where the decrease is the difference of numbers that nearly cancel."""
    c = terms(w, l1, l2, low, high)
    near = gradient - np.sign(w) * l1 - l2 * w  # where the gradient of the whole objective is about `gradient`
    scores = [prox_decrease_root([w], [g], [bound], c)[0] for g in (near, near + change)]
    rounding = CERTIFIED * ROUNDOFF * (size_of(w, near, bound, c) + change) / np.sqrt(bound)
    moved = abs((near + change) - near)
    assert abs(scores[0] - scores[1]) <= moved / np.sqrt(bound) + 2.0 * rounding
