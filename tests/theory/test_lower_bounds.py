"""Lower bounds: their formulas, the condition on uneven constants, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.privacy.budget import Budget
from discreet.theory import coordinate_lower_bound, gd_bound, lower_bound
from discreet.theory.lower import is_even

APPROXIMATE, PURE = Budget(0.5, 1e-6), Budget(0.5, 0.0)


@pytest.mark.parametrize(
    ("budget", "convexity", "value"),
    [
        (APPROXIMATE, 0.0, 3.0 * 2.0 * math.sqrt(7) / (1_000 * 0.5)),
        (PURE, 0.0, 3.0 * 2.0 * 7 / (1_000 * 0.5)),
        (APPROXIMATE, 0.1, 9.0 / 0.1 * 7 / (1_000 * 0.5) ** 2),
        (PURE, 0.1, 9.0 / 0.1 * 7**2 / (1_000 * 0.5) ** 2),
    ],
)
def test_the_four_cases(budget, convexity, value):
    bound = lower_bound(1_000, 7, budget, lipschitz=3.0, radius=2.0, strong_convexity=convexity)
    assert bound.value == pytest.approx(value)
    assert not bound.proved


def test_no_bound_exceeds_the_error_of_doing_nothing():
    assert lower_bound(2, 10_000, APPROXIMATE, lipschitz=3.0, radius=2.0).value == 6.0
    assert coordinate_lower_bound(2, APPROXIMATE, lipschitz=[3.0] * 10_000, radius=2.0).value == 600.0


def test_equal_constants_per_coordinate_give_the_other_bound():
    """L_j = L / sqrt(p)."""
    own = lower_bound(1_000, 9, APPROXIMATE, lipschitz=3.0, radius=2.0).value
    bound = coordinate_lower_bound(1_000, APPROXIMATE, lipschitz=[1.0] * 9, radius=2.0)
    assert bound.value == pytest.approx(own)
    assert bound.settings["evenness"] == 1.0


def test_uneven_constants_cost_their_ratio():
    """The smallest 75th of the coordinates must carry its share; two of 150 that are tiny do not."""
    uneven = np.concatenate([np.full(2, 0.01), np.ones(148)])
    assert is_even(np.ones(150))
    assert is_even(np.concatenate([np.full(1, 0.01), np.ones(149)]))
    assert not is_even(uneven)
    bound = coordinate_lower_bound(1_000, APPROXIMATE, lipschitz=uneven, radius=1.0)
    assert bound.value == pytest.approx(0.01 * math.sqrt(150) * np.linalg.norm(uneven) / 500.0)
    strong = coordinate_lower_bound(1_000, APPROXIMATE, lipschitz=uneven, strong_convexity=2.0)
    assert strong.settings["evenness"] == pytest.approx(1e-4)


def test_the_upper_bound_of_gradient_descent_is_within_logarithms_of_the_lower_one():
    for rows, columns in ((1_000, 3), (10_000, 30), (100_000, 300)):
        low = lower_bound(rows, columns, APPROXIMATE, lipschitz=1.0, radius=1.0).value
        high = gd_bound(rows, columns, APPROXIMATE, lipschitz=1.0, radius=1.0).value
        assert low < high < 4.0 * math.sqrt(math.log(1e6)) * low


REFUSED = [
    (lambda: lower_bound(1_000, 7, Budget(1.5, 1e-6), lipschitz=1.0, radius=1.0), "at most 1"),
    (lambda: lower_bound(1_000, 7, Budget(0.5, 0.01), lipschitz=1.0, radius=1.0), "below 1/rows"),
    (lambda: lower_bound(1_000, 7, Budget.gdp(0.5), lipschitz=1.0, radius=1.0), "epsilon and a delta"),
    (lambda: lower_bound(1_000, 7, APPROXIMATE, lipschitz=1.0), "radius is needed"),
    (lambda: coordinate_lower_bound(1_000, PURE, lipschitz=[1.0], radius=1.0), "delta > 0"),
    (lambda: coordinate_lower_bound(1_000, APPROXIMATE, lipschitz=[1.0, 0.0], radius=1.0), "positive"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_assumptions_are_checked(make, words):
    with pytest.raises(ValueError, match=words):
        make()
