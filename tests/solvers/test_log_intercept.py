"""The intercept of a log link: at the optimum the mean curvature is 1, and one row moves its sum by at most 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import Problem
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian
from discreet.privacy.random.generator import generator_from
from discreet.problem import L2, Gamma, Logistic, Poisson
from discreet.problem.column_scaling import exact_scaling
from discreet.problem.optimum import newton
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers.newton.planning import CALIBRATION_SHARE, LABELS
from discreet.solvers.newton.solver import (
    Columns,
    Estimate,
    Newton,
    calibrated_intercept,
    mean_curvature,
    within_belief,
)

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
LOSSES = [Poisson(1e4), Gamma(1e4)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
NOISELESS = Gaussian(0.0)


def scaled_table(loss, weight=None, first=None):
    """A table in exact scales; its first row may be replaced."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    mean = np.exp(1.0 + X @ [0.6, -0.4])
    y = rng.poisson(mean).astype(float) if loss.target_power else rng.gamma(2.0, mean / 2.0)
    data = Data(X, y, weight)
    scaling = exact_scaling(data, True, True)
    if first is not None:
        X, y = X.copy(), y.copy()
        X[0], y[0] = first
    return scale_problem(Problem(loss, L2(0.0)), Data(X, y, weight), scaling, 400, "C")


@each_loss
def test_the_mean_curvature_at_the_optimum_is_1_and_an_intercept_elsewhere_is_put_back(loss):
    scaled, rng = scaled_table(loss), generator_from(0)
    best = newton(scaled, 1e-10)
    assert mean_curvature(scaled, best, NOISELESS, rng)[0] == pytest.approx(1.0, abs=1e-3)
    for error in (-0.7, 0.4):
        moved = best + np.array([0.0, 0.0, error])
        assert abs(mean_curvature(scaled, moved, NOISELESS, rng)[0] - 1.0) > 0.2
        known = np.inf  # the variance of scores: no rule is believed beside what is measured
        object.__setattr__(scaled.scaling, "target_noise", 0.0)
        found = calibrated_intercept(scaled, moved, known, NOISELESS, rng)
        assert found == pytest.approx(best, abs=2e-3)


@each_loss
def test_one_row_moves_the_sum_of_curvatures_by_at_most_1(loss):
    """In units of the bound; a sum that was not in these units would move by far more."""
    bound, rng, largest = loss.smoothness, generator_from(0), 0.0
    for w in np.array([[0.0, 0.0, 0.0], [5.0, -3.0, 2.0], [300.0, 300.0, -50.0]]):
        before = 400 * mean_curvature(scaled_table(loss), w, NOISELESS, rng)[0]
        for first in (([1e6, -1e6], 0.0), ([0.0, 0.0], 1e308), ([-3.0, 3.0], -5.0), ([9.0, 9.0], 1e-300)):
            after = 400 * mean_curvature(scaled_table(loss, first=first), w, NOISELESS, rng)[0]
            largest = max(largest, abs(after - before))
    assert largest <= bound * (1.0 + 1e-6)
    assert largest > 1.0


def test_it_is_left_out_where_the_sum_of_the_weights_is_not_known():
    weighted, w = scaled_table(Poisson(), np.full(400, 0.3)), np.zeros(3)
    assert mean_curvature(weighted, w, NOISELESS, generator_from(0)) is None
    assert calibrated_intercept(weighted, w, 1.0, NOISELESS, generator_from(0)) is w
    for facts in ({"relation": "add_remove", "public_n": 5_000}, {"relation": "zero_out"}, {"persons": True}):
        plan = Newton().plan(Problem(Poisson()), Public.of(5_000, 4, **facts), Budget(1.0, 1e-6))
        assert plan.mechanism.shares[LABELS] == 0.0


def test_it_is_planned_and_paid_for_with_a_log_link_alone():
    public, budget = Public.of(5_000, 4), Budget(1.0, 1e-6)
    plan = Newton().plan(Problem(Poisson()), public, budget)
    assert plan.mechanism.shares[LABELS] == CALIBRATION_SHARE
    assert math.fsum(plan.mechanism.shares) == pytest.approx(1.0)
    assert [r.what for r in plan.releases].count("mean curvature, for the intercept") == 1
    plain = Newton().plan(Problem(Logistic()), public, budget)
    assert "mean curvature, for the intercept" not in [release.what for release in plain.releases]


def test_the_intercept_that_follows_from_a_mean_is_right_for_normal_scores():
    slopes, rng = np.array([0.8, -0.3]), np.random.default_rng(0)
    moment = np.diag([1.0, 1.0, 1.0])
    intercept = Columns(moment, 0.0).intercept_for(Estimate(0.0, 0.0), slopes, "log").value
    means = np.exp(rng.normal(size=(200_000, 2)) @ slopes + intercept)
    assert means.mean() == pytest.approx(1.0, abs=0.02)  # 8 standard errors
    identity = Columns(moment, 0.0).intercept_for(Estimate(0.0, 0.0), slopes, "identity").value
    assert np.exp(rng.normal(size=(200_000, 2)) @ slopes + identity).mean() > 1.2


def test_scores_that_noise_has_made_are_not_believed_and_others_are():
    slopes, columns = np.array([2.0, -1.0]), Columns(np.eye(3), 0.0)
    strong, weak = (within_belief(slopes, variance * np.eye(2), columns, 1.0) for variance in (0.3, 1e-3))
    assert columns.variance_of(strong) == pytest.approx(1.0)
    np.testing.assert_allclose(strong / slopes, strong[0] / slopes[0])
    np.testing.assert_array_equal(weak, slopes)
