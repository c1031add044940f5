"""What theorems say of planned runs: measured errors of the real solvers lie below, in two arms, and plans show it.

A true bound is exceeded by the mean over runs by more than 3.1 standard errors with probability below 1e-3.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.problem import L1, L2, ElasticNet, Logistic, Multinomial, SmoothedHinge, Zero
from discreet.problem.constraints import L2Ball
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS
from discreet.solvers.base import scaling_of
from tests.distance_runs import BUDGET, planned, scaled_weights, small_table, twin

RUNS = 30
SOLVERS_TRIED = [
    ("gd", {"clip": 2.5, "steps": 60}),
    ("gd", {"clip": 2.5, "step": 0.9, "average": False, "steps": 30}),
    ("sgd", {"clip": 2.5, "passes": 20.0, "batch_size": 50}),
    ("cd", {"clip": 2.5, "sampling": "uniform"}),
    ("cd", {"clip": 2.5, "sampling": "uniform", "step": 1.5, "outer": 1}),
    ("cd", {"clip": 2.5, "sampling": "uniform", "average": False}),
    ("sketched", {"clip": 2.5, "sketch": "nice", "size": 2}),
    ("sketched", {"clip": 2.5, "sketch": "full", "noise": "isotropic"}),
]
PROBLEMS = [
    Problem(Logistic(), Zero()),
    Problem(Logistic(), L2(0.1), fit_intercept=False),
    Problem(Logistic(), L1(0.02)),
    Problem(SmoothedHinge(0.5), ElasticNet(0.1, 0.5), fit_intercept=False),
]


def excess_of_runs(solver, problem, seed, budget=BUDGET):
    """The bound for the true norm of the optimum, and the measured excess of the objective in scaled columns."""
    X, y = small_table(problem, seed=seed)
    y = np.where(np.random.default_rng(seed).uniform(size=y.size) < 0.1, -y, y)  # so that there is an optimum
    plan, data, found = planned(solver, problem, X, budget), array_rows(X, y), []
    scaled, best = twin(problem, X, y, scaling_of(plan, data, seeded_generator(0)), tolerance=1e-9)
    for run in range(RUNS):
        solution = solver.solve(problem, data, plan, seeded_generator(run))
        found.append(scaled.value(scaled_weights(problem, solution)) - scaled.value(best))
    return plan.error_bound(float(np.linalg.norm(best))), np.array(found)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.loss.name}-{problem.penalty.name}")
@pytest.mark.parametrize(("name", "settings"), SOLVERS_TRIED, ids=lambda part: str(part).replace(" ", ""))
def test_measured_errors_lie_below_the_bound_of_the_plan(name, settings, problem):
    for seed in (0, 1):
        bound, found = excess_of_runs(SOLVERS[name](scale_share=0.0, **settings), problem, seed)
        assert bound.proved
        assert found.mean() - 3.1 * found.std() / math.sqrt(RUNS) <= bound.value


def test_a_run_with_more_noise_than_planned_is_found_out():
    """Runs with a fiftieth of the budget, and the bound of the whole: the mean error is far above."""
    problem = PROBLEMS[1]
    for name, settings in (("gd", {"clip": 2.5, "steps": 50}), ("cd", {"clip": 2.5, "sampling": "uniform"})):
        solver = SOLVERS[name](scale_share=0.0, **settings)
        bound, _ = excess_of_runs(solver, problem, 0)
        _, found = excess_of_runs(solver, problem, 0, Budget(0.02, 1e-6))
        assert found.mean() - 3.1 * found.std() / math.sqrt(RUNS) > bound.value


# --- what a plan says -------------------------------------------------------------------------------------------------


def theory(name, problem=None, budget=BUDGET, radius=1.0, **settings):
    solver = SOLVERS[name](**settings)
    problem = Problem(Logistic(), L2(0.1)) if problem is None else problem
    return planned(solver, problem, np.zeros((50_000, 4)), budget).theory(radius)


def test_a_plan_stands_between_the_two_bounds():
    told = theory("gd")
    assert told.lower.value < told.upper.value
    assert told.ratio == pytest.approx(told.upper.value / told.lower.value)
    assert told.radius_is_assumed
    assert any("mean squares" in text for text in told.upper.assumptions)
    assert "order of the lower one" in str(told)
    assert told.to_dict()["upper"]["proved"]


def test_a_ridge_on_all_coordinates_bounds_the_norm_of_the_optimum():
    told = theory("gd", Problem(Logistic(), L2(5.0), fit_intercept=False), radius=10.0, scale_share=0.0)
    assert not told.radius_is_assumed
    assert told.radius == pytest.approx(math.sqrt(2.0 * math.log(2.0) / 5.0), rel=0.3)
    assert told.radius <= 2.0 / 5.0 * 1.001
    assert "by the penalty" in str(told)
    far = theory("gd", Problem(Logistic(), L2(5.0), L2Ball(1.0), fit_intercept=False), radius=10.0, scale_share=0.0)
    assert far.radius_is_assumed


def test_fixed_orders_of_coordinates_give_an_order_and_not_a_proof():
    assert not theory("cd").upper.proved
    assert theory("cd", sampling="uniform").upper.proved
    assert not theory("sketched", sketch="independent").upper.proved
    assert not theory("admm", Problem(Logistic(), L2(0.1), fit_intercept=False), scale_share=0.0).upper.proved


def test_what_is_not_known_is_said():
    assert "no lower bound: " in theory("gd", budget=Budget(4.0, 1e-6)).reasons[0]
    told = theory("newton")
    assert told.upper is None
    assert told.ratio is None
    assert "no theorem covers this solver" in str(told)
    assert theory("gd", budget=Budget(math.inf, 0.5)).upper is None
    assert theory("gd", step=2.0).upper is None
    assert theory("cd", step=2.0).upper is None
    assert theory("cd", step=1.5, average=False).upper is None
    several = theory("gd", Problem(Multinomial(3), L2(0.1)))
    assert any("would be clipped" in text for text in several.upper.assumptions)
    with pytest.raises(ValueError, match="radius"):
        theory("gd", radius=0.0)
