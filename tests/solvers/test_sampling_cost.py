"""Budgets in which a sample of the rows costs as much as all of them: full batches, and no crash with little noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from discreet import solve
from discreet.data.public import Public
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import SVRG, DualCoordinateDescent, GradientDescent, StochasticGradientDescent
from tests.catalogue import table

PROBLEM = Problem(Logistic(), L2(0.01))
SAMPLING = [StochasticGradientDescent(), SVRG(), DualCoordinateDescent()]
NOT_AMPLIFIED = [Budget.gdp(0.2), Budget.zcdp(0.02)]
by_name = pytest.mark.parametrize("solver", SAMPLING, ids=lambda solver: solver.name)


@by_name
@pytest.mark.parametrize("budget", NOT_AMPLIFIED, ids=str)
@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_a_batch_is_all_rows_where_a_sample_costs_as_much(solver, budget, relation):
    public = Public.of(10_000, 5, relation=relation, public_n=10_000)
    plan = solver.plan(PROBLEM, public, budget)
    assert plan.settings.batch == 10_000
    assert "random batch" not in str(plan)
    assert accounting.fits(plan.event, budget, relation)


@by_name
def test_a_batch_is_a_sample_where_samples_cost_less(solver):
    plan = solver.plan(PROBLEM, Public.of(10_000, 5), Budget(1.0, 1e-8))
    assert plan.settings.batch == 500


def test_a_batch_size_that_is_asked_for_is_kept():
    plan = StochasticGradientDescent(batch_size=500).plan(PROBLEM, Public.of(10_000, 5), Budget.gdp(0.2))
    assert (plan.settings.batch, plan.settings.steps) == (500, 600)
    assert "random batch" in str(plan)


def solve_seeded(X, y, solver, budget, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeds, and plans whose noise is about as large as the signal
        return solve(PROBLEM, X, y, solver, budget, random_state=seed)


def excess(solver, budget, seeds=4):
    """Mean excess of the objective over its least value, on 4,000 rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4_000, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0]
    y = np.where(X @ [1.0, -0.5, 1.0, 0.0, 0.3] + rng.logistic(size=4_000) > 0.0, 1.0, -1.0)
    best = PROBLEM.optimum(X, y).value
    fits = [solve_seeded(X, y, solver, budget, seed) for seed in range(seeds)]
    return float(np.mean([PROBLEM.objective(X, y, fit.w, fit.intercept) - best for fit in fits]))


@by_name
@pytest.mark.parametrize("budget", NOT_AMPLIFIED, ids=str)
def test_sampling_solvers_are_about_as_good_as_full_gradients(solver, budget):
    """Twice the excess of `gd` and 0.01; with samples at the full price it is 20 times that of `gd` and more."""
    full = excess(GradientDescent(), budget)
    assert excess(solver, budget) < 2.0 * full + 0.01
    sampled = {"sgd": StochasticGradientDescent(batch_size=200), "svrg": SVRG(batch_size=200)}
    if solver.name in sampled:
        assert excess(sampled[solver.name], budget) > 2.0 * full + 0.01


@by_name
@pytest.mark.parametrize("budget", [Budget.gdp(1e5), Budget.zcdp(1e9)], ids=str)
@pytest.mark.parametrize("batch", [None, 20])
def test_almost_no_noise_is_planned_and_stated(solver, budget, batch):
    """Losses of more than a million are on no grid of the accountant; other routes state a finite epsilon."""
    X, y = table(Logistic(), rows=80)
    chosen = type(solver)(batch_size=batch)
    solution = solve_seeded(X, y, chosen, budget)
    assert np.isfinite(solution.w).all()
    epsilon = accounting.epsilon_of(solution.plan.event, 1e-6, "replace")
    assert 1e6 < epsilon < np.inf
    assert accounting.delta_of(solution.plan.event, 2.0 * epsilon, "replace") <= 1e-6
