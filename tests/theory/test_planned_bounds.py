"""What solvers say of a planned run holds for their real runs, and depends on the plan alone.

Columns are declared to lie in [-1, 1], so that scales are 1, and thresholds are so large that nothing is clipped: what
the theorems assume. Means over the runs may exceed a bound by 4.5 standard errors before a test fails.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L1Ball, L2Ball
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L1, L2, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import (
    FTRL,
    ExponentialMechanism,
    FrankWolfe,
    GreedyCoordinateDescent,
    MirrorDescent,
    ObjectivePerturbation,
    OutputPerturbation,
)
from discreet.solvers.ftrl.solver import LeafLoop
from tests.bound_tools import mean_over, mean_under

ROWS, COLUMNS, RUNS = 400, 3, 30
RIDGE = Problem(Logistic(), L2(0.05), fit_intercept=False)
PLAIN = Problem(Logistic(), Zero(), fit_intercept=True)
BALL = Problem(Logistic(), Zero(), L1Ball(1.5), fit_intercept=False)
ROUND = Problem(Logistic(), Zero(), L2Ball(1.0), fit_intercept=False)
PLAIN_GREEDY = GreedyCoordinateDescent(clip=2.0, steps=8, scale_share=0.0, learn_smoothness=False, least_entry=0.0)
CASES = {
    "greedy-cd, strongly convex": (PLAIN_GREEDY, RIDGE),
    "greedy-cd, convex": (PLAIN_GREEDY, PLAIN),
    "frank-wolfe": (FrankWolfe(clip=1.0, scale_share=0.0), BALL),
    "frank-wolfe, constant": (FrankWolfe(clip=1.0, schedule="constant", steps=10, scale_share=0.0), BALL),
    "output-perturbation": (OutputPerturbation(row_norm=1.0, scale_share=0.0), RIDGE),
    "objective-perturbation": (ObjectivePerturbation(row_norm=1.0, scale_share=0.0), RIDGE),
    "exponential": (ExponentialMechanism(scale_share=0.0), ROUND),
}


@cache
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (ROWS, COLUMNS))
    return Data(X, np.where(X @ [2.0, -1.0, 0.0] + rng.logistic(size=ROWS) > 0.0, 1.0, -1.0))


def planned(solver, problem, epsilon, rows=ROWS, relation=Relation.REPLACE, delta=1e-6):
    ends = np.ones(COLUMNS)
    return solver.plan(problem, Public(rows, COLUMNS, relation, -ends, ends), Budget(epsilon, delta))


def excesses(solver, problem, plan, runs=RUNS):
    """Of the objective, over the optimum, for as many runs of the solver itself."""
    data = table()
    best = problem.optimum(data.X, data.y).value
    found = (solver.solve(problem, data, plan, seeded_generator(seed)) for seed in range(runs))
    return np.array([problem.objective(data.X, data.y, s.coef, s.intercept) - best for s in found])


def radius_of(problem):
    best = problem.optimum(table().X, table().y)
    if isinstance(problem.constraint, L1Ball):
        return problem.constraint.radius
    return 1.5 * float(np.linalg.norm(np.append(best.coef, best.intercept)))


@pytest.mark.parametrize("epsilon", [0.05, 5.0])
@pytest.mark.parametrize("case", CASES)
def test_runs_stay_under_what_their_plan_says(case, epsilon):
    solver, problem = CASES[case]
    if case == "exponential":
        epsilon = min(epsilon, 0.06)  # more would take too long: cells shrink with the noise
    plan = planned(solver, problem, epsilon)
    bound = plan.error_bound(radius_of(problem))
    assert bound.proved
    assert mean_under(excesses(solver, problem, plan), bound)


@pytest.mark.parametrize("case", ["greedy-cd, strongly convex", "output-perturbation", "objective-perturbation"])
def test_a_bound_for_a_hundredth_of_the_noise_is_refuted(case):
    """Otherwise the test above could not fail; selections on bounded sets are refuted in test_selection_bounds.py."""
    solver, problem = CASES[case]
    noisy, quiet = planned(solver, problem, 0.05), planned(solver, problem, 5.0)
    assert mean_over(excesses(solver, problem, noisy), quiet.error_bound(radius_of(problem)))


@pytest.mark.parametrize("problem", [RIDGE, PLAIN], ids=["ridge", "intercept"])
@pytest.mark.parametrize("aggregation", ["tree", "square-root"])
def test_the_regret_of_ftrl_stays_under_what_its_plan_says(problem, aggregation):
    solver = FTRL(leaves=16, epochs=2, clip=2.0, aggregation=aggregation, scale_share=0.0)
    plan, data = planned(solver, problem, 2.0), table()
    best = problem.optimum(data.X, data.y)
    comparator = np.append(best.coef, np.atleast_1d(best.intercept)[: int(problem.fit_intercept)])
    bound = plan.error_bound(float(np.linalg.norm(comparator)))
    scaling = learn_scaling(plan.scaling_plan, data, plan.public, seeded_generator(0))
    scaled = scale_problem(problem, data, scaling, ROWS, solver.capabilities.order)
    regrets = []
    for seed in range(40):
        rng = seeded_generator(seed)
        loop = LeafLoop(solver, plan, scaled, lambda _, rng=rng: rng)
        w, regret = loop.leader.w.copy(), 0.0
        for rows in solver.follow(loop, rng):
            margins = scaled.X[rows] @ np.column_stack([w, comparator])
            losses = np.logaddexp(0.0, -scaled.y[rows][:, None] * margins).sum(axis=0) / plan.settings.leaf_rows
            penalties = [0.5 * float(scaled.penalty_terms.l2 @ v**2) for v in (w, comparator)]
            regret += losses[0] - losses[1] + penalties[0] - penalties[1]
            w = loop.leader.w.copy()
        regrets.append(regret / 32.0)
    assert mean_under(regrets, bound)


def test_plans_with_more_rows_or_epsilon_promise_more():
    """By the power of the theory where one term counts: noise over rows, squared, for a minimiser with a ridge."""
    solver = OutputPerturbation(row_norm=1.0, ridge=0.1, scale_share=0.0)

    def noise_part(**change):
        plan = planned(solver, RIDGE, **{"epsilon": 1.0, **change})
        return plan.error_bound(1.0).value - 0.5 * 0.1

    assert noise_part() / noise_part(rows=2 * ROWS) == pytest.approx(4.0)
    assert 3.0 < noise_part() / noise_part(epsilon=2.0) < 4.2
    for solver, problem in CASES.values():
        values = [
            planned(solver, problem, epsilon, rows).error_bound(1.0).value
            for epsilon, rows in [(0.02, 500), (0.05, 500), (0.05, 1000)]
        ]
        assert values == sorted(values, reverse=True)


def test_plans_that_no_theorem_covers_have_no_bound():
    greedy = replace(PLAIN_GREEDY, clip=None, steps=None)
    lasso = Problem(Logistic(), L1(0.1), fit_intercept=False)
    uncovered = [
        (greedy, lasso, {}),
        (replace(greedy, step=0.5), RIDGE, {}),
        (replace(greedy, least_entry=4.0), RIDGE, {}),
        (replace(greedy, learn_smoothness=True), RIDGE, {}),
        (replace(greedy, selection="laplace"), RIDGE, {}),
        (FrankWolfe(scale_share=0.0), replace(BALL, fit_intercept=True), {}),
        (FTRL(scale_share=0.0), lasso, {}),
        *((solver, problem, {"relation": Relation.ADD_REMOVE}) for solver, problem in CASES.values()),
        (FTRL(scale_share=0.0), RIDGE, {"relation": Relation.ADD_REMOVE}),
        (MirrorDescent(scale_share=0.0), BALL, {}),
        (OutputPerturbation(scale_share=0.0), replace(RIDGE, constraint=L2Ball(1.0)), {}),
    ]
    for solver, problem, options in uncovered:
        assert planned(solver, problem, 1.0, **options).error_bound(1.0) is None
    for solver, problem in CASES.values():
        assert planned(solver, problem, math.inf).error_bound(1.0) is None


def test_squared_losses_and_pure_budgets_are_covered_too():
    squares = Problem(Squared(), Zero(), L2Ball(1.0), fit_intercept=False)
    public = Public(ROWS, COLUMNS, low=-np.ones(COLUMNS), high=np.ones(COLUMNS), target_low=-1.0, target_high=1.0)
    solver = ExponentialMechanism(scale_share=0.0)
    bound = solver.plan(squares, public, Budget.pure(0.05)).error_bound(1.0)
    assert any("target has scale 1" in words for words in bound.assumptions)
    for case in ("output-perturbation", "objective-perturbation"):
        solver, problem = CASES[case]
        plan = planned(solver, problem, 3.0, delta=0.0)
        assert mean_under(excesses(solver, problem, plan, 20), plan.error_bound(radius_of(problem)))
