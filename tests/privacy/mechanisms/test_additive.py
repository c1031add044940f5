"""Additive mechanisms: the noise has the law that the event states, and shares of a budget add up.

Kolmogorov-Smirnov tests at level 1e-4 with fixed seeds; 2/3 of the noise is rejected.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.perturbations import SphericalLaplace
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Sensitivity
from discreet.scaling.plan import DEFAULT_SHARE
from tests.statistics import both_arms

SENSITIVITY = Sensitivity(l2=2.0, l1=5.0)
ADDITIVE = [
    mechanisms.Gaussian(3.0),
    mechanisms.Laplace(3.0),
    mechanisms.GumbelGreedy(3.0, 1),
    mechanisms.LaplaceGreedy(3.0, 1),
    SphericalLaplace(3.0),
]


@pytest.mark.parametrize(
    ("kind", "law", "size"),
    [(mechanisms.Gaussian, stats.norm, SENSITIVITY.l2), (mechanisms.Laplace, stats.laplace, SENSITIVITY.l1)],
)
def test_the_noise_has_the_multiplier_of_the_event(kind, law, size):
    mechanism = kind(3.0, count=7)
    assert mechanism.event.count == 7
    stated = mechanism.event.event.noise_multiplier
    both_arms(mechanism.grid(SENSITIVITY, 1).noise(seeded_generator(7), 5_000), law(scale=stated * size))


def test_the_length_of_spherical_noise_has_the_scale_of_the_event():
    """In dimension d a density proportional to exp(-|z| / s) has a length with the law Gamma(d) times s."""
    mechanism, rng = SphericalLaplace(3.0), seeded_generator(8)
    grid = mechanism.grid(SENSITIVITY, 4)
    draws = np.array([grid.noise(rng, 4) for _ in range(4_000)])
    scale = SENSITIVITY.l2 / mechanism.event.epsilon
    both_arms(np.linalg.norm(draws, axis=1), stats.gamma(4, scale=scale))


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda m: type(m).__name__)
def test_a_release_is_the_value_with_the_noise_of_the_mechanism(mechanism):
    value = np.arange(6.0).reshape(2, 3)
    released = mechanism.release(seeded_generator(1), value, SENSITIVITY)
    noise = mechanism.grid(SENSITIVITY, 6).noise(seeded_generator(1), (2, 3))
    np.testing.assert_array_equal(released, value + noise)
    assert (released != value).all()
    np.testing.assert_array_equal(value, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda m: type(m).__name__)
def test_without_noise_the_event_is_not_private_and_the_value_is_exact(mechanism):
    """Also where nothing is clipped, so that the sensitivity is infinite."""
    noiseless = replace(mechanism, multiplier=0.0)
    assert type(noiseless.event).__name__ == "NonPrivateDpEvent"
    unbounded = Sensitivity(math.inf, math.inf)
    np.testing.assert_array_equal(noiseless.release(seeded_generator(1), np.ones(3), unbounded), np.ones(3))


def test_shares_of_a_budget_add_up_to_the_whole():
    for budget in (Budget(1.0, 1e-6), Budget.zcdp(0.2)):
        parts = [mechanisms.additive(budget, share) for share in (0.1, 0.4, 0.5)]
        total = sum(part.count / part.multiplier**2 for part in parts)
        assert np.sqrt(total) == pytest.approx(budget.gaussian_mu(), rel=1e-12)
    parts = [mechanisms.additive(Budget.pure(2.0), share, 3) for share in (0.25, 0.75)]
    assert sum(part.count / part.multiplier for part in parts) == pytest.approx(2.0, rel=1e-12)
    assert DEFAULT_SHARE == 0.1
