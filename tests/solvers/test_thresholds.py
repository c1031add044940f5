"""Thresholds grow until clipping leaves no bias: slopes beside the best ones without noise, the old rule as a fault."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from discreet import Budget, Problem, UtilityWarning, solve
from discreet.problem import L2, Logistic, Multinomial, Squared
from discreet.problem.column_scaling import identity_scaling
from discreet.solvers import SOLVERS
from discreet.solvers._shared import descents
from discreet.solvers._shared.descents import BATCH_CLIP, COORDINATE_CLIP, GRADIENT_CLIP, ClippingRule

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
ROWS, DRAWS = 20_000, 8


class Ending(ClippingRule):
    """The rule that was used before: it ends at a typical size or two, whatever the noise is."""

    def at(self, noise, sampling=0.0):
        return min({0.13: 2.0, 0.126: 1.0}[self.factor], self.factor * noise**-self.power)


@pytest.fixture(scope="module")
def table():
    """One uniform column, labels of a logistic model, the maximum-likelihood slope and its standard error."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (ROWS, 1))
    y = np.where(rng.random(ROWS) < expit(2.0 * X[:, 0] + 0.3), 1.0, -1.0)
    rows, w = np.column_stack([X, np.ones(ROWS)]), np.zeros(2)
    for _ in range(10):
        chance = expit(rows @ w)
        covariance = np.linalg.inv((rows * (chance * (1.0 - chance))[:, None]).T @ rows)
        w = w + covariance @ (rows.T @ (0.5 * (y + 1.0) - chance))
    return X, y, w[0], math.sqrt(covariance[0, 0])


def bias_of(table, solver, epsilon):
    """The mean distance of slopes from the estimate over the root of the sum of its variance and the noise."""
    X, y, slope, error = table
    problem = Problem(Logistic(), L2(1e-7))
    found = [solve(problem, X, y, solver, epsilon, bounds=(-1.0, 1.0), random_state=s).coef[0] for s in range(DRAWS)]
    return float((np.mean(found) - slope) / math.hypot(error, np.std(found, ddof=1)))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["gd", "sgd", "svrg", "accelerated-gd"])
def test_slopes_are_not_inflated(table, solver, monkeypatch):
    """Noise is at most 0.8 standard errors: 8 draws leave an error of 0.22; 1.2 is 4.5 of them, about 1e-5 of runs."""
    assert abs(bias_of(table, solver, 1.0)) < 1.2
    if solver in ("gd", "sgd"):
        for home in ("_shared.full_batch", "stochastic_gradient"):
            for name in ("GRADIENT_CLIP", "BATCH_CLIP"):
                rule = Ending(*getattr(descents, name))
                monkeypatch.setattr(f"discreet.solvers.{home}.{name}", rule, raising=False)
        assert bias_of(table, solver, 1.0) > 4.0


@pytest.mark.parametrize("solver", ["gd", "sgd", "cd", "svrg", "sketched", "admm"])
def test_the_bias_falls_below_a_tenth_of_a_standard_error(table, solver):
    """At epsilon 10 noise is below 0.2 standard errors, which leaves 8 draws an error of 0.07: 0.25 are 3.5 of them."""
    assert abs(bias_of(table, solver, 10.0)) < 0.1 + 0.25


@pytest.mark.parametrize("rule", [COORDINATE_CLIP, GRADIENT_CLIP, BATCH_CLIP])
def test_thresholds_grow_without_bound_and_their_noise_vanishes(rule):
    """Both as rows grow at one noise per row, and as the noise falls for a fixed number of rows."""
    for path in ([(1.0 / n, n) for n in (1e3, 1e5, 1e7, 1e9)], [(s, 1e4) for s in (1e-1, 1e-3, 1e-5, 1e-7)]):
        found = [rule.at(noise, math.sqrt(1.0 / rows)) for noise, rows in path]
        assert all(later > 1.5 * one for one, later in itertools.pairwise(found))
        products = [noise * threshold for (noise, _), threshold in zip(path, found, strict=True)]
        assert all(later < 0.7 * one for one, later in itertools.pairwise(products))
    assert rule.at(0.0) == math.inf
    ends = [Ending(*GRADIENT_CLIP).at(noise) for noise in (1e-5, 1e-7)]
    assert ends[0] == ends[1]  # the old rule fails


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)], ids=lambda loss: loss.name)
def test_no_gradient_is_longer_than_the_bound(loss):
    rng = np.random.default_rng(1)
    scaling = replace(
        identity_scaling(3), low=np.array([-1.0, 0.0, -5.0]), high=np.array([1.0, 3.0, 2.0]),
        shift=np.array([0.5, 1.0, -4.0]), scale=np.array([2.0, 0.1, 1.0]),
    )  # fmt: skip
    problem = Problem(loss, L2(0.1))
    bound = descents.largest_length(problem, scaling)
    corners = np.array(list(itertools.product(*zip(scaling.low, scaling.high, strict=True))))
    rows = np.column_stack([(corners - scaling.shift) / scaling.scale, np.ones(8)])
    assert np.linalg.norm(rows, axis=1).max() * loss.lipschitz == pytest.approx(bound)
    inside = rng.uniform(scaling.low, scaling.high, (1_000, 3))
    lengths = np.linalg.norm(np.column_stack([(inside - scaling.shift) / scaling.scale, np.ones(1_000)]), axis=1)
    assert (loss.lipschitz * lengths <= bound).all()
    assert descents.largest_length(Problem(Squared(), L2(0.1)), scaling) == math.inf


@pytest.mark.parametrize("name", ["gd", "cd", "sgd", "greedy-cd", "sketched"])
@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
def test_thresholds_do_not_depend_on_the_rows(name, loss, monkeypatch):
    """One row at the ends of what can be stored, in a neighbouring table: known scales, so the same thresholds."""
    seen, plain = [], descents.ClippingRule.at
    monkeypatch.setattr(descents.ClippingRule, "at", lambda self, *noise: seen.append(noise) or plain(self, *noise))
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (500, 2))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    far, other = X.copy(), y.copy()
    far[7], other[7] = [1e308, -5e-324], -1.0
    solver = replace(SOLVERS[name](), scale_share=0.0)
    for rows, target in ((X, y), (far, other)):
        limits = {"bounds": (-1.0, 1.0), "y_bounds": None if loss.classification else (-2.0, 2.0)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            found = solve(Problem(loss, L2(0.1)), rows, target, solver, Budget(1.0, 1e-6), **limits, random_state=0)
        assert np.isfinite(found.coef).all()
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :] != []
