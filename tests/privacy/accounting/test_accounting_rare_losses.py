"""Many releases from small samples (k q near 1): nearly every loss is tiny and a few are large.

The truth is the inversion of a Laplace transform and the closed form of one attack (tests/exact_privacy.py).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.privacy.accounting import delta_of, epsilon_of, gaussian_epsilon, poisson_event
from discreet.privacy.accounting.closed_forms import zcdp_epsilon
from discreet.privacy.accounting.pairs import LaplacePair, SampledGaussianPair
from discreet.privacy.accounting.pld.discretisation import certified_renyi_delta, certified_renyi_epsilon, roughly
from discreet.privacy.accounting.pld.selections import moving_sums
from tests.exact_privacy import (
    Profile,
    attained_delta,
    attained_epsilon,
    gaussian_moment,
    poisson_moments,
    poisson_replace_moment,
)

REPLACE, ZERO_OUT = "replace", "zero_out"


def exact_epsilon(rate: float, multiplier: float, times: int, delta: float, relation: str) -> float:
    shift = 1.0 / multiplier
    moments = poisson_moments(rate, shift) if relation == ZERO_OUT else [poisson_replace_moment(rate, shift)]
    points = 4000 if rate < 1e-4 else 1500
    return max(Profile(((moment, times),)).epsilon(delta, points) for moment in moments)


@pytest.mark.parametrize(("mu", "delta"), [(1.0, 1e-5), (1.0, 1e-100), (0.03, 1e-12)])
def test_the_inversion_agrees_with_the_closed_form_of_gaussians(mu, delta):
    found = Profile(((gaussian_moment(0.1 * mu), 100),)).epsilon(delta)
    assert found == pytest.approx(gaussian_epsilon(delta, mu), rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "times", "multiplier", "delta", "relation"),
    [
        (1e-3, 1_000, 1.0, 1e-5, ZERO_OUT),
        (1e-3, 1_000, 1.0, 1e-30, REPLACE),
        (1e-3, 1_000, 1.0, 1e-100, ZERO_OUT),
        (1e-4, 10_000, 0.7, 1e-30, ZERO_OUT),
        (1e-6, 1_000_000, 0.7, 1e-5, REPLACE),
        (1e-6, 1_000_000, 0.5, 1e-5, ZERO_OUT),
        (1e-6, 1_000_000, 0.5, 1e-30, ZERO_OUT),
    ],
)
def test_epsilon_is_never_below_the_truth_and_within_a_thousandth_of_it(rate, times, multiplier, delta, relation):
    exact = exact_epsilon(rate, multiplier, times, delta, relation)
    assert exact * (1 - 1e-6) <= epsilon_of(poisson_event(rate, multiplier, times), delta, relation) <= exact * 1.001


def test_the_check_rejects_half_the_rate_and_a_tenth_more_noise():
    exact = exact_epsilon(1e-3, 1.0, 1_000, 1e-30, ZERO_OUT)
    for rate, multiplier in ((5e-4, 1.0), (1e-3, 1.1)):
        assert epsilon_of(poisson_event(rate, multiplier, 1_000), 1e-30, ZERO_OUT) < 0.99 * exact


@pytest.mark.parametrize("relation", [ZERO_OUT, REPLACE])
@pytest.mark.parametrize(("times", "multiplier"), [(1_000_000, 0.7), (1_000_000, 0.5), (100_000, 0.7)])
def test_at_tiny_delta_one_large_loss_decides(times, multiplier, relation):
    """There the best simple attack is nearly the best of all, and its delta has a closed form."""
    rate, shift = 1e-6, 1.0 / multiplier
    other = -shift if relation == REPLACE else 0.0
    event = poisson_event(rate, multiplier, times)
    attained = attained_epsilon(rate, shift, other, times, 1e-30)
    found = epsilon_of(event, 1e-30, relation)
    assert attained <= found <= 1.01 * attained
    assert delta_of(event, found, relation) >= attained_delta(rate, shift, other, times, found)


def test_the_renyi_bound_of_a_gaussian_is_that_of_zcdp():
    for delta in (1e-5, 1e-60):
        laws = roughly([(SampledGaussianPair(1.0, 0.1), 100)], delta)
        bound = certified_renyi_epsilon(laws, delta)
        assert gaussian_epsilon(delta, 1.0) <= bound <= 1.002 * zcdp_epsilon(0.5, delta)
        for order in (2.0, 10.0):
            assert certified_renyi_delta(laws, bound, order) >= 0.99 * delta


def test_a_loss_that_is_never_infinite_has_a_renyi_bound_below_its_largest_value():
    laws = roughly([(LaplacePair(0.1), 10)], 1e-6)
    # The coarse grid ends two per cent above the largest loss, 0.1.
    assert certified_renyi_epsilon(laws, 1e-6) <= 1.02
    assert certified_renyi_delta(laws, 1.02, 1e5) <= 1e-5


def test_moving_sums_keep_the_digits_of_small_results():
    """A transform would lose them; the allowance is one unit in the last place for each term."""
    values = np.geomspace(1.0, 1e-200, 400)
    kernel = np.exp(-0.5 * np.linspace(-4.0, 4.0, 41) ** 2)
    found = moving_sums(values, kernel)
    assert found.shape == (360,)
    for i in range(0, 360, 7):
        exact = math.fsum(float(v * k) for v, k in zip(values[i : i + 41], kernel[::-1], strict=True))
        assert abs(found[i] - exact) <= 42 * 1.2e-16 * exact
