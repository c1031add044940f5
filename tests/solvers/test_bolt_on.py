"""Bolt-on noise: how far one row moves the end of a walk, and the noise that covers it.

Statistical tests are seeded; were the seeds redrawn, one run of this file in 800 would raise a false alarm
(Kolmogorov-Smirnov tests at level 1e-4, audits at 1e-6).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import IncompatibleSolverError
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box, L1Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L2, ElasticNet, PenaltyTerms
from discreet.problem.problem import Problem
from discreet.solvers import BoltOn
from discreet.solvers._shared.batch_steps import assign_rows
from discreet.solvers._shared.minimisers import clip_rows
from discreet.solvers.output_perturbation import with_lighter_penalty
from tests.catalogue import table
from tests.neighbours import CASE, N, P, scaled_neighbours

LOSSES = [Logistic(), Huber(0.7), SmoothedHinge(0.5), Multinomial(3)]
BUDGET = Budget(1.0, 1e-3)
AS_FAR_AS_ALLOWED = {"total_step_length": 1e9, "step": 1.99}


def public(rows, columns, relation=Relation.REPLACE):
    bounds = {"low": -np.ones(columns), "high": np.ones(columns), "target_low": -10.0, "target_high": 10.0}
    return Public(rows, columns, relation, **bounds)


def lots_of(relation, at, seed):
    """Lots of two tables, the second without row `at` if rows may be added: the other rows stay where they are."""
    if relation is not Relation.ADD_REMOVE:
        order = np.random.default_rng(seed).permutation(N)
        return [[order[:2], order[2:4], order[4:]]] * 2
    lot = np.random.default_rng(seed).integers(0, 3, N)  # crowded batches included
    return [[np.flatnonzero(part == k) for k in range(3)] for part in (lot, np.delete(lot, at))]


@settings(max_examples=150)
@given(
    **CASE,
    loss=st.sampled_from(LOSSES),
    l2=st.sampled_from([0.0, 0.4]),
    ball=st.booleans(),
    sparse=st.booleans(),
    average=st.booleans(),
)
def test_one_hostile_row_moves_the_end_by_at_most_its_sensitivity(
    relation, X, weight, row, at, seed, loss, l2, ball, sparse, average
):
    """The real walk on neighbouring tables, with steps of 1.99 / beta, an l1 penalty and a box or a ball."""
    solver = BoltOn(passes=3, batches=3, row_norm=0.8, average=average, **AS_FAR_AS_ALLOWED)
    constraint = L1Ball(2.0) if ball else None
    ends = []
    for scaled, parts in zip(
        scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"), lots_of(relation, at, seed), strict=True
    ):
        problem = replace(scaled.problem, constraint=constraint)
        plan = solver.plan(problem, public(N, P, relation), BUDGET)
        ones = np.ones(P + 1)
        scaling = scaled.scaling.uniform() if ball else scaled.scaling
        rows = replace(
            scaled, problem=problem, scaling=scaling, penalty_terms=PenaltyTerms(0.05 * ones, l2 * ones, -ones, ones)
        )
        rows = clip_rows(rows, plan.settings.row_norm, 0.0)
        rows = replace(rows, X=sp.csr_array(rows.X)) if sparse else rows
        ends.append(solver.noiseless_passes(rows, plan, parts))
    claimed = solver.sensitivity(rows, plan).l2
    assert np.isfinite(ends).all()
    assert np.linalg.norm(ends[0] - ends[1]) <= claimed * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_sensitivity_is_attained_and_half_of_it_would_be_wrong(relation, average, ridge):
    """Targets far away keep the Huber slope at its bound, so every visit drives the two runs apart by all it can."""
    solver = BoltOn(
        passes=4, batches=1, row_norm=1.0, ridge=ridge, average=average, scale_share=0.0, **AS_FAR_AS_ALLOWED
    )
    problem, rows = Problem(Huber(0.7), fit_intercept=False), 300
    plan = solver.plan(problem, public(rows, 1, relation), BUDGET)
    others = [1e9] * (rows + 2 if relation is Relation.ADD_REMOVE else rows - 1)  # a crowd: an added row displaces it
    own = {Relation.REPLACE: ([1e9], [-1e9]), Relation.ZERO_OUT: ([1e9], []), Relation.ADD_REMOVE: ([-1e9], [])}
    ends = []
    for target in own[relation]:
        y = np.array(others + target)
        scaled = exactly_scaled(problem, array_rows(np.ones((y.size, 1)), np.zeros(y.size)))
        scaled = clip_rows(replace(scaled, y=y, X=np.ones((y.size, 1)), rows=rows), 1.0, ridge)
        ends.append(solver.noiseless_passes(scaled, plan, [np.arange(y.size)]))
    claimed = solver.sensitivity(scaled, plan).l2
    move = float(np.linalg.norm(ends[0] - ends[1]))
    assert move <= claimed * (1 + 1e-9)
    assert move == pytest.approx(claimed, rel=0.01 if relation is Relation.ADD_REMOVE else 1e-9)
    assert not move <= 0.5 * claimed


def test_the_printed_sensitivities_are_special_cases():
    """2 k L eta / b without a penalty, and the limit 2 L / (mu n) of long runs on full batches."""
    loss, step = Huber(0.7), 0.1
    convex = perturbations.path_end(Relation.REPLACE, loss, 2.0, step, 5, shrink=1.0, batches=7, passes=9)
    assert convex.l2 == pytest.approx(2 * 9 * 0.7 * 2.0 * step / 5)
    strong = perturbations.path_end(
        Relation.REPLACE, loss, 2.0, step, 35, 1 / (1 + step * 0.3), batches=1, passes=5_000
    )
    assert strong.l2 == pytest.approx(2 * 0.7 * 2.0 / (0.3 * 35))
    mean = perturbations.path_end(Relation.ZERO_OUT, loss, 2.0, step, 5, 1.0, batches=7, passes=4, averaged=2)
    assert mean.l2 == pytest.approx(3.5 * 0.7 * 2.0 * step / 5)


@settings(max_examples=200)
@given(
    weights=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8),
    limit=st.floats(1.0, 5.0),
    slopes=st.lists(st.floats(-1.0, 1.0), min_size=8, max_size=8),
)
def test_an_added_row_moves_a_thinned_lot_by_at_most_its_sensitivity(weights, limit, slopes):
    weight = np.array(weights)
    sums = []
    for rows in (weight.size, weight.size - 1):
        thin = perturbations.thinned(weight[:rows], rows, [np.arange(rows)], limit)
        assert thin.sum() <= limit * (1 + 1e-12)
        assert (thin <= weight[:rows]).all()
        sums.append(thin @ np.array(slopes[:rows]))
    assert abs(sums[0] - sums[1]) <= perturbations.batch_sum(Relation.ADD_REMOVE).l2 * weight[-1] + 1e-12


@pytest.mark.parametrize("relation", list(Relation))
def test_every_row_is_in_one_lot(relation):
    parts = assign_rows(relation, 103, 7, 15, seeded_generator(0))
    assert len(parts) == 7
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(103))
    assert relation is Relation.ADD_REMOVE or max(part.size for part in parts) <= 15


def test_the_walk_is_textbook_proximal_gradient_descent_and_reaches_the_optimum():
    problem = Problem(Logistic(), ElasticNet(0.05, 0.5))
    scaled = exactly_scaled(problem, array_rows(*table(Logistic())))
    solver = BoltOn(passes=2_000, batches=1, row_norm=50.0, average=False, **AS_FAR_AS_ALLOWED)
    plan = solver.plan(problem, public(120, 4), BUDGET)
    plan = replace(plan, settings=replace(plan.settings, step=1.0))
    scaled = replace(scaled, X=np.ascontiguousarray(scaled.X))
    end = solver.noiseless_passes(scaled, plan, [np.arange(120)])
    assert scaled.residual(end, np.ones(5)) < 1e-6


def test_light_columns_are_the_same_problem():
    """A column of tiny scale has a huge penalty in the frame; its noise must not come back multiplied."""
    problem = Problem(Logistic(), ElasticNet(0.05, 0.5))
    X, y = table(Logistic(), scales=np.array([1e-4, 0.1, 1.0, 10.0]))
    scaled = exactly_scaled(problem, array_rows(X, y))
    w = np.linspace(-1.0, 1.0, 5)
    before = scaled.value(w)
    light, gain = with_lighter_penalty(scaled, total_step_length=20.0)
    assert light.value(w / gain) == pytest.approx(before, rel=1e-10)
    assert light.penalty_terms.l2.max() <= 1 / 20 * (1 + 1e-12)
    assert gain[0] < 1e-3
    assert gain[-1] == 1.0


ROWS, COLUMNS = 50, 4_000
PLAIN = Problem(Logistic(), fit_intercept=False)


def looks_like(draws, law):
    return stats.kstest(np.ravel(draws), law.cdf).pvalue > 1e-4


def both_arms(draws, law):
    """The truth is accepted, and 2/3 of the noise would be rejected."""
    assert looks_like(draws, law)
    assert not looks_like(np.asarray(draws) * 2 / 3, law)


@pytest.mark.parametrize("relation", list(Relation))
def test_the_result_carries_the_planned_gaussian_noise(relation):
    solver = BoltOn(passes=4, batches=5, total_step_length=0.2, row_norm=2.0, average=False, scale_share=0.0)
    plan = solver.plan(PLAIN, public(ROWS, COLUMNS, relation), Budget(1.0, 1e-5))
    zeros = Data(np.zeros((ROWS, COLUMNS)), np.ones(ROWS))
    w = solver.solve(PLAIN, zeros, plan, seeded_generator(1)).w
    radius, factor = 2.0 * math.sqrt(COLUMNS), 1 if relation is Relation.ZERO_OUT else 2
    step = min(0.2 / 20, 1.0 / (0.25 * radius**2))
    both_arms(w, stats.norm(scale=plan.mechanism.multiplier * factor * radius * 4 * step / 10))


def test_the_result_carries_the_planned_gamma_noise():
    solver = BoltOn(passes=2, batches=1, total_step_length=0.2, row_norm=1.0, average=False, scale_share=0.0)
    plan = solver.plan(PLAIN, public(ROWS, 3), Budget.pure(2.0))
    zeros, stream = Data(np.zeros((ROWS, 3)), np.ones(ROWS)), seeded_generator(2)
    draws = np.array([solver.solve(PLAIN, zeros, plan, stream).w for _ in range(1_500)])
    scale = 0.5 * 2 * math.sqrt(3.0) * 0.2 / ROWS
    both_arms(np.linalg.norm(draws, axis=1), stats.gamma(3, scale=scale))
    assert looks_like(draws[:, 0] / np.linalg.norm(draws, axis=1), stats.uniform(-1.0, 2.0))  # Archimedes


EPSILON, DELTA, RUNS = 1.0, 0.1, 3_600
AUDITED = BoltOn(passes=3, batches=1, total_step_length=1e-3, row_norm=1.0, average=False, scale_share=0.0)
SATURATED = Problem(Huber(0.25), fit_intercept=False)


def lower_bound(relation, noise, budget):
    """One column, and a row whose slope flips from one end to the other (or vanishes): the bound is attained.

    With normal draws in place of the runs, half the noise is missed in 0 of 3,000 audits (after 2,400 runs in 5).
    """
    plan = AUDITED.plan(SATURATED, public(3, 1, relation), budget)
    plan = replace(plan, mechanism=replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier))
    X, y = np.array([[1.0], [0.0], [0.0]]), np.full(3, 10.0)
    changed = Data(-X, y) if relation is Relation.REPLACE else Data(0.0 * X, y)
    stream = seeded_generator(20)
    outputs = [
        np.array([AUDITED.solve(SATURATED, data, plan, stream).w[0] for _ in range(RUNS)])
        for data in (Data(X, y), changed)
    ]
    return epsilon_lower_bound(*outputs, budget.delta)


BUDGETS = [Budget(EPSILON, DELTA), Budget.pure(EPSILON)]


@pytest.mark.slow
@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_audit_accepts(relation, budget):
    assert lower_bound(relation, 1.0, budget) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_audit_rejects_half_the_noise(budget):
    assert lower_bound(Relation.REPLACE, 0.5, budget) > EPSILON


def test_only_the_noisy_result_is_ever_shown():
    X, y = table(Logistic())
    problem, calls = Problem(Logistic(), L2(0.1)), []
    plan = BoltOn().plan(problem, Public(120, 4), BUDGET)
    with pytest.warns(match="objective trace"):
        solution = BoltOn().solve(
            problem, array_rows(X, y), plan, seeded_generator(0), lambda *call: calls.append(call), trace="non-private"
        )
    assert len(calls) == len(solution.objective_trace) == 1
    steps = plan.settings.passes * plan.settings.batches
    assert calls == [(steps, steps)]
    assert solution.iterations == steps


def test_what_cannot_be_proved_is_refused():
    with pytest.raises(IncompatibleSolverError, match=r"slope of the squared loss has no bound.*Huber"):
        BoltOn().plan(Problem(Squared()), Public(100, 3), BUDGET)
    with pytest.raises(ValueError, match="step must be below 2"):
        BoltOn(step=2.0)
    with pytest.raises(ValueError, match="ridge must be a positive"):
        BoltOn(ridge=-1.0)
    with pytest.raises(ValueError, match="batches must be a whole"):
        BoltOn(batches=1.5)


def test_defaults_follow_from_public_facts():
    problem = Problem(Logistic(), L2(0.01))
    plans = [
        BoltOn().plan(problem, Public(n, 20), Budget(e, 1e-6)) for n, e in ((500, 0.1), (5_000, 1.0), (10**6, 10.0))
    ]
    journeys = [plan.settings.total_step_length for plan in plans]
    assert journeys == sorted(journeys)
    for plan in plans:
        s = plan.settings
        assert s.step <= 1.0 / (0.25 * s.row_norm**2) * (1 + 1e-12)
        assert s.step * s.passes * s.batches == pytest.approx(s.total_step_length)
        assert s.batch_rows * s.batches >= plan.public.rows


def test_it_learns_a_real_table():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    data, problem = array_rows(X, 2.0 * y - 1.0), Problem(Logistic(), L2(0.001))
    plan = BoltOn().plan(problem, Public(*X.shape), Budget(10.0, 1e-6))
    solutions = [BoltOn().solve(problem, data, plan, seeded_generator(seed)) for seed in range(5)]
    right = [np.mean((X @ s.w + s.intercept > 0) == (y == 1)) for s in solutions]
    assert np.median(right) > 0.88


@pytest.mark.parametrize("setting", ["total_step_length", "step"])
def test_walks_too_short_for_numbers_are_refused(setting):
    with pytest.raises(ValueError, match=f"{setting} must lie between"):
        BoltOn(**{setting: 2.5e-304})


def test_far_from_zero_the_sensitivity_pays_for_rounding():
    """Around 1e14 neighbouring doubles are 2^-6 apart: a walk of less than that would show every row."""
    near, far = (
        BoltOn(total_step_length=1e-3, scale_share=0.0).sensitivity(framed_in(box), plan_for(box))
        for box in (Box(0.0, 1.0), Box(1e14, 1e15))
    )
    assert near.l2 < 1e-3
    assert far.l2 > np.spacing(1e14)


def plan_for(box):
    return BoltOn(total_step_length=1e-3, scale_share=0.0).plan(
        Problem(Huber(1.0), constraint=box), public(300, 1, Relation.REPLACE), BUDGET
    )


def framed_in(box):
    problem = Problem(Huber(1.0), constraint=box)
    return exactly_scaled(problem, array_rows(np.resize([1.0, -1.0], (300, 1)), np.zeros(300)))
