"""Mirror descent: multiplicative steps inside a simplex or a ball, on the releases of gradient descent.

Statistical tests are seeded; were the seeds redrawn, one run of this file in 1,500 would raise a false alarm
(Kolmogorov-Smirnov tests at level 1e-4).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import IncompatibleSolverError, NotPrivateWarning, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L1Ball, L2Ball, Simplex
from discreet.problem.losses import Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L1, L2, Box, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.solvers import FrankWolfe, GradientDescent, MirrorDescent
from discreet.solvers._shared.full_batch import NoisyGradient
from discreet.solvers.gradient_descent import VertexWeights
from tests.catalogue import table
from tests.neighbours import CASE, N, P, scaled_neighbours, some_weights

BUDGET = Budget(1.0, 1e-3)
SETS = [L1Ball(0.7), Simplex(2.0)]


def public(rows, columns, relation=Relation.REPLACE):
    bounds = {"low": -np.ones(columns), "high": np.ones(columns), "target_low": -10.0, "target_high": 10.0}
    return Public(rows, columns, relation, **bounds)


def shares_on(problem, data, steps=5, budget=BUDGET):
    solver = MirrorDescent(steps=steps, clip=1.0)
    scaled = exactly_scaled(problem, data)
    plan = solver.plan(problem, public(data.rows, scaled.scaling.columns), budget)
    return VertexWeights(scaled, 1.0, NoisyGradient(scaled, plan, 1.0))


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("constraint", SETS, ids=lambda c: c.name)
def test_the_weights_lie_in_the_set_whatever_the_noise(constraint, epsilon, average):
    for columns in (1, 4):
        data = array_rows(*table(Squared(), columns=columns))
        problem = Problem(Squared(), constraint=constraint)
        solver = MirrorDescent(steps=20, average=average)
        plan = solver.plan(problem, public(120, columns), Budget(epsilon, 1e-6))
        solution = solver.solve(problem, data, plan, seeded_generator(0))
        assert constraint.contains(solution.w, 1e-9)
        assert math.isfinite(solution.intercept)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), SmoothedHinge(0.5)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("constraint", SETS, ids=lambda c: c.name)
def test_without_noise_the_objective_falls_at_every_step_to_the_optimum(loss, constraint):
    """The theory's step length is short enough for any table; the start is the middle of the set."""
    X, y = table(loss, scales=np.ones(4))
    problem = Problem(loss, constraint=constraint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(
            problem, X, y, MirrorDescent(steps=3_000, average=False), Budget(math.inf, 0.5), trace="non-private"
        )
    trace = np.array(solution.objective_trace)
    assert (np.diff(trace) <= 1e-12).all()
    assert trace[-1] <= problem.optimum(X, y).value * (1 + 1e-3)


@pytest.mark.parametrize(
    ("penalty", "constraint"),
    [(L2(0.5), Simplex(2.0)), (L2(0.5), L1Ball(0.7)), (L1(0.1), L1Ball(0.7)), (ElasticNet(0.3, 0.5), L1Ball(0.7))],
    ids=lambda part: part.name,
)
def test_penalties_inside_the_set_are_minimised_too(penalty, constraint):
    X, y = table(Logistic(), scales=np.ones(4))
    problem = Problem(Logistic(), penalty, constraint)
    best = problem.optimum(X, y).value
    for solver, gap in ((MirrorDescent(steps=5_000, average=False), 1e-3), (MirrorDescent(), 1e-6)):
        with pytest.warns(NotPrivateWarning):
            found = solve(problem, X, y, solver, Budget(math.inf, 0.5))
        assert problem.objective(X, y, found.w, found.intercept) <= best * (1 + gap)


def test_a_step_minimises_gradient_plus_relative_entropy():
    """The law of entropic mirror descent, against random points of the simplex; half the step would not be it."""
    X, y = table(Squared())
    shares = shares_on(Problem(Squared(), constraint=Simplex(2.0)), array_rows(X, y))
    rng = np.random.default_rng(0)
    shares.logarithms = rng.standard_normal(4)
    old = shares.weights()[:4] / shares.radius
    gradient = np.append(rng.standard_normal(4), 0.0)
    length = shares.length
    moved = shares.move(shares.weights(), gradient)[:4] / shares.radius

    def cost(u, step):
        return step * shares.radius * u @ gradient[:4] + (u * np.log(u / old)).sum()

    points = np.concatenate([rng.dirichlet(np.ones(4), 2_000), moved * np.exp(1e-2 * rng.standard_normal((2_000, 4)))])
    points /= points.sum(axis=1, keepdims=True)
    assert all(cost(moved, length) <= cost(point, length) + 1e-12 for point in points)
    assert any(cost(moved, 10 * length) > cost(point, 10 * length) for point in points)


def test_the_ball_starts_at_zero_and_pairs_move_against_each_other():
    X, y = table(Squared())
    shares = shares_on(Problem(Squared(), constraint=L1Ball(2.0), fit_intercept=False), array_rows(X, y))
    assert shares.logarithms.size == 9
    np.testing.assert_array_equal(shares.weights(), np.zeros(4))
    moved = shares.move(shares.weights(), np.array([1.0, -1.0, 0.0, 0.0]))
    assert moved[0] == -moved[1] < 0.0
    assert moved[2] == moved[3] == 0.0


@settings(max_examples=100)
@given(**CASE, loss=st.sampled_from([Squared(), Logistic(), SmoothedHinge(0.5)]))
def test_what_a_step_reads_moves_by_at_most_its_sensitivity(relation, X, weight, row, at, seed, loss):
    """The released vector under equal noise: hostile rows, all relations."""
    released = []
    solver = MirrorDescent(steps=1)
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        problem = Problem(loss, Zero(), L1Ball(1.0))
        gradient = NoisyGradient(scaled, solver.plan(problem, public(N, P, relation), BUDGET), 0.8)
        with np.errstate(all="ignore"):
            released.append(gradient(some_weights(scaled, seed), seeded_generator(seed)))
    move = np.linalg.norm(released[0] - released[1]) * N
    assert np.isfinite(released).all()
    assert move <= mechanisms.clipped_sum(relation).l2 * 0.8 * (1 + 1e-9)
    assert gradient.sensitivity.l2 == mechanisms.clipped_sum(relation).l2 * 0.8


ROWS, COLUMNS = 50, 4_000


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget.pure(1.0)], ids=str)
def test_the_shares_carry_the_planned_noise(budget, relation):
    """On a table of zeros one step multiplies equal shares by exponentials of pure noise."""
    problem = Problem(Logistic(), constraint=Simplex(3.0), fit_intercept=False)
    solver = MirrorDescent(steps=1, clip=2.0, scale_share=0.0)
    plan = solver.plan(problem, public(ROWS, COLUMNS, relation), budget)
    w = solver.solve(problem, Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS)), plan, seeded_generator(1)).w
    pure = budget.kind == "pure"
    scale = plan.mechanism.multiplier * relation.factor * 2.0 / ROWS * (math.sqrt(COLUMNS) if pure else 1.0)
    noise = 3.0 * scale * (math.sqrt(2.0) if pure else 1.0)
    step = min(1 / (9.0 * 0.25), math.sqrt(2.0 * math.log(COLUMNS)) / noise)
    logarithms = np.log(w) - np.median(np.log(w))  # shares are known up to a common factor
    law = (stats.laplace if pure else stats.norm)(scale=3.0 * step * scale)
    assert stats.kstest(logarithms, law.cdf).pvalue > 1e-4
    assert stats.kstest(logarithms * 2 / 3, law.cdf).pvalue < 1e-4


def test_what_it_cannot_do_is_refused():
    for constraint in (None, L2Ball(1.0)):
        with pytest.raises(IncompatibleSolverError, match=r"needs weights in an L1 ball or a simplex.*'gd'"):
            MirrorDescent().plan(Problem(Squared(), constraint=constraint), Public(100, 3), BUDGET)
    with pytest.raises(IncompatibleSolverError, match="no step for the box penalty"):
        MirrorDescent().plan(Problem(Squared(), Box(-1.0, 1.0), L1Ball(1.0)), Public(100, 3), BUDGET)
    with pytest.raises(IncompatibleSolverError, match="the same number everywhere on a simplex"):
        MirrorDescent().plan(Problem(Squared(), L1(0.1), Simplex(1.0)), Public(100, 3), BUDGET)
    with pytest.raises(IncompatibleSolverError, match="no form for several classes"):
        MirrorDescent().plan(Problem(Multinomial(3), constraint=L1Ball(1.0)), Public(100, 3), BUDGET)
    with pytest.raises(ValueError, match="steps must be a whole"):
        MirrorDescent(steps=2.5)


def test_large_tables_get_fewer_steps():
    problem = Problem(Squared(), constraint=L1Ball(1.0))
    steps = [MirrorDescent().plan(problem, Public(n, 100), BUDGET).settings.steps for n in (10**3, 10**5, 10**7)]
    assert steps == [1_000, 200, 200]


@pytest.mark.slow
def test_with_many_columns_it_is_more_accurate_than_gradient_descent_and_frank_wolfe():
    """A sparse mixture of 200 columns at epsilon 1, medians over 5 seeds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2_000, 200))
    y = X[:, :4] @ [0.4, 0.3, 0.2, 0.1] + 0.1 * rng.standard_normal(2_000)
    problem = Problem(Squared(), constraint=Simplex(1.0))
    best = problem.optimum(X, y, tolerance=1e-6).value
    facts = replace(public(2_000, 200), target_low=-3.0, target_high=3.0)

    def excess(solver):
        plan = solver.plan(problem, facts, Budget(1.0, 1e-6))
        found = [solver.solve(problem, array_rows(X, y), plan, seeded_generator(seed)) for seed in range(5)]
        return np.median([problem.objective(X, y, s.w, s.intercept) for s in found]) - best

    assert 2.0 * excess(MirrorDescent()) < min(excess(GradientDescent()), excess(FrankWolfe()))
