"""The Gaussian DP cost of a Poisson sample: enough at every epsilon, and no smaller one is (sgd.md, Theorem 4)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from discreet.privacy.accounting import delta_of, epsilon_of, gaussian_delta, mu_of, poisson_event
from discreet.privacy.accounting.releases import PoissonGaussianNoise
from discreet.privacy.relation import Relation

RELATIONS = pytest.mark.parametrize("relation", list(Relation))
MULTIPLIERS = pytest.mark.parametrize("multiplier", [0.3, 1.0, 5.0])


@RELATIONS
@MULTIPLIERS
@pytest.mark.parametrize("rate", [0.02, 0.5, 0.6, 0.95])
def test_the_mu_covers_the_profile_at_every_epsilon(rate, multiplier, relation):
    mu = mu_of(poisson_event(rate, multiplier, 1), relation)
    epsilons = np.linspace(0.0, 8.0 * mu + 0.5 * mu**2, 200)
    bounds = np.array([gaussian_delta(float(epsilon), mu) for epsilon in epsilons])
    for pair in PoissonGaussianNoise(rate, multiplier, relation).pairs():
        p, q = pair.above(epsilons)
        assert (p - np.exp(epsilons) * q <= bounds * (1.0 + 1e-9)).all()


@RELATIONS
@MULTIPLIERS
@pytest.mark.parametrize("rate", [1e-4, 0.02, 0.5])
def test_no_smaller_mu_would_do(rate, multiplier, relation):
    """The event y > x, x far out: more likely than a mu that is 1 % smaller allows."""
    mu = mu_of(poisson_event(rate, multiplier, 1), relation)
    x = 1e4 / mu
    at_least = math.log(rate) + norm.logsf(x - 1.0 / multiplier)
    assert at_least > norm.logsf(x - 0.99 * mu)  # under the other table its probability is at most that of N(0, 1)
    assert at_least < norm.logsf(x - mu)


@MULTIPLIERS
def test_a_sample_of_nearly_all_rows_needs_twice_the_mu_under_replace(multiplier):
    """Booked like a sample of at most half of them, it would break the promise at epsilon = 0."""
    p, q = PoissonGaussianNoise(0.95, multiplier, Relation.REPLACE).pairs()[0].above(np.array([0.0]))
    assert float(p[0] - q[0]) > gaussian_delta(0.0, 1.0 / multiplier)
    assert float(p[0] - q[0]) <= gaussian_delta(0.0, mu_of(poisson_event(0.95, multiplier), Relation.REPLACE))


@RELATIONS
@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_almost_no_noise_has_a_finite_epsilon(rate, relation):
    """Losses of more than a million are on no grid; the other routes answer."""
    event = poisson_event(rate, 1e-5, 100)
    epsilon = epsilon_of(event, 1e-6, relation)
    assert 1e6 < epsilon < math.inf
    assert delta_of(event, 2.0 * epsilon, relation) <= 1e-6
    assert delta_of(event, 10.0, relation) == 1.0
