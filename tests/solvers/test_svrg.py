"""SVRG: the method without noise, differences that stay short, both noises, and audits of the whole transcript."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import IncompatibleSolverError, NotPrivateWarning, solve
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.kernels.stochastic import add_differences
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.problem.penalties import L1, L2, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.solvers import SVRG
from discreet.solvers.base import Run
from discreet.solvers.svrg import MemorySteps
from tests.catalogue import name_of, table
from tests.neighbours import CASE, N, scaled_neighbours, some_weights
from tests.statistics import variance_fits

NO_BUDGET = Budget(math.inf, 0.5)
PROBLEMS = [
    Problem(Logistic(), L2(0.1)),
    Problem(Squared(), L1(0.05)),
    Problem(Huber(0.7), ElasticNet(0.05, 0.5)),
    Problem(SmoothedHinge(0.5), L2(0.1)),
    Problem(Multinomial(3), L2(0.1)),
    Problem(Squared(), constraint=L1Ball(0.3)),
]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("problem", PROBLEMS, ids=name_of)
def test_the_steps_themselves_reach_the_optimum_without_noise(problem, form):
    """Not by the momentum steps that an infinite budget takes by default: by anchors and differences."""
    X, y = table(problem.loss, scales=np.ones(4))
    with pytest.warns(NotPrivateWarning):
        solution = solve(problem, form(X), y, SVRG(anchors=60, inner=40, batch_size=30, step=1.0), NO_BUDGET)
    best = problem.optimum(X, y).value
    assert problem.objective(X, y, solution.w, solution.intercept) - best <= 1e-6 * best


def descent_on(scaled, problem, relation=Relation.REPLACE, solver=None):
    """A run in progress on rows that are in their frame already."""
    solver = solver or SVRG(clip=0.8, inner=1, anchors=1)
    bounds = {"low": -np.ones(scaled.scaling.columns), "high": np.ones(scaled.scaling.columns)}
    public = Public(scaled.rows, scaled.scaling.columns, relation, target_low=-1.0, target_high=1.0, **bounds)
    return MemorySteps(solver, scaled, solver.plan(problem, public, Budget(1.0, 1e-3)))


class NoNoise:
    """A generator without noise whose batches hold every row: what is left is the sum itself."""

    def rounded_draws(self, law, scale, size):
        return np.zeros(size)

    def poisson_batches(self, n, rate, steps):
        return np.arange(steps + 1, dtype=np.int64) * n, np.tile(np.arange(n, dtype=np.int64), steps)


@settings(max_examples=120)
@given(**CASE, loss=st.sampled_from([Squared(), Logistic(), Huber(0.7), Multinomial(3)]), sparse=st.booleans())
def test_sums_of_differences_move_by_at_most_their_clip(relation, X, weight, row, at, seed, loss, sparse):
    """Hostile rows, all in the batch; the clip of a step follows the distance and is the same for both tables."""
    sums = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        rows = replace(scaled, X=sp.csr_array(scaled.X)) if sparse else scaled
        descent = descent_on(rows, scaled.problem, relation)
        run = Run(NoNoise(), None, False)
        with np.errstate(all="ignore"):
            descent.w = some_weights(scaled, seed)
            descent.anchor_gradient(run)
            anchor_sum = descent.gradient * scaled.rows
            descent.w = descent.w + 10.0 ** (seed % 5 - 4) * np.ones(scaled.shape)
            limit = min(descent.difference_clip * np.linalg.norm(descent.w - descent.anchor), 2.0 * descent.clip)
            before, descent.gradient = descent.w.copy(), np.zeros(scaled.shape)
            descent.inner_steps(run)
        moved = (before - descent.w) / descent.length * descent.settings.batch
        rounding = 1e-13 * np.abs(before).max() / descent.length * descent.settings.batch
        sums.append((anchor_sum, moved))
    allowed = mechanisms.clipped_sum(relation).l2
    steps = np.sqrt(scaled.outputs * scaled.columns) * np.array(
        [descent.full_grid.step, descent.batch_grid.step * limit]
    )
    assert np.linalg.norm(sums[0][0] - sums[1][0]) <= allowed * 0.8 * (1 + 1e-12) + steps[0]
    assert np.linalg.norm(sums[0][1] - sums[1][1]) <= allowed * limit * (1 + 1e-9) + steps[1] + rounding


@pytest.mark.parametrize("limit", [1e-140, 1e-160, 1e-300, 1e-305, 1e-310, 1e-320])
def test_differences_stay_within_tiny_limits(limit):
    """The inverse of the unit would be infinite, and a row would turn the sum into NaN."""
    change, X, w = np.zeros(2), np.array([[1.0, 0.0], [0.0, 0.5]]), np.ones(2)
    loss, sizes = (Logistic().code, 0.0), (2.0**-30, np.zeros(2), 1.0, limit)
    add_differences((X,), np.array([1.0, 0.5]), np.array([1.0, -1.0]), np.empty(0), *loss, *sizes, w, change)
    assert (np.abs(change) <= 2.0**30).all()
    assert change.any() == (limit > 2.0**-470)


def test_the_clip_of_differences_binds():
    """The arm that can fail: with a clip ten times as long, one row moves the sum by more than the claimed clip."""
    moves = []
    for difference in (0.05, 0.5):
        problem = Problem(Squared(), Zero(), fit_intercept=False)
        scaled = framed_rows(problem, np.ones((N, 1)), np.zeros(N))
        descent = descent_on(scaled, problem, solver=SVRG(clip=9.0, inner=1, anchors=1, difference=difference))
        run = Run(NoNoise(), None, False)
        descent.anchor_gradient(run)
        descent.w, descent.gradient = np.ones(1), np.zeros(1)
        descent.inner_steps(run)
        moves.append((1.0 - descent.w[0]) / descent.length)
    assert moves[0] == pytest.approx(0.05)
    assert moves[1] == pytest.approx(0.5)


def framed_rows(problem, X, y, weight=None, relation=Relation.REPLACE):
    columns = X.shape[1]
    bounds = {"low": -np.ones(columns), "high": np.ones(columns), "target_low": -1.0, "target_high": 1.0}
    public = Public(len(y), columns, relation, **bounds)
    plan = SVRG(scale_share=0.0, inner=1, anchors=1).plan(problem, public, Budget(1.0, 1e-3))
    data = Data(X, y, weight)
    scaling = learn_scaling(plan.scaling_plan, data, public, seeded_generator(0))
    return scale_problem(problem, data, scaling, len(y), "C")


@pytest.mark.parametrize(("loss", "columns"), [(Logistic(), 6_000), (Multinomial(3), 2_000)])
def test_both_noises_have_the_planned_size(loss, columns):
    """Null rows release noise alone. Chi-square on its variance, level 1e-4 (4 tests); 10 % less is rejected."""
    problem = Problem(loss, Zero(), fit_intercept=False)
    labels = np.ones(4) if loss.outputs == 1 else np.zeros(4)
    scaled = framed_rows(problem, np.zeros((4, columns)), labels, weight=np.zeros(4))
    solver = SVRG(clip=0.8, inner=2, anchors=1, batch_size=2)
    descent = descent_on(scaled, problem, solver=solver)
    run = Run(seeded_generator(3), None, False)
    descent.anchor_gradient(run)
    anchor_noise = descent.gradient * 4.0
    descent.w = descent.anchor + 1e-3
    distance = np.linalg.norm(descent.w - descent.anchor)
    start, limit = descent.w.copy(), min(descent.difference_clip * distance, 2.0 * descent.clip)
    descent.gradient = np.zeros(scaled.shape)
    descent.settings = replace(descent.settings, inner=1)
    descent.inner_steps(run)
    inner_noise = (start - descent.w) / descent.length * descent.settings.batch
    planned = [2.0 * 0.8 * descent.full.multiplier, limit * descent.sampled.multiplier]
    for noise, deviation in zip((anchor_noise, inner_noise), planned, strict=True):
        assert variance_fits(noise, deviation)
        assert not variance_fits(noise, deviation / 0.9)


def test_without_distance_there_is_neither_difference_nor_noise():
    problem = Problem(Logistic(), Zero(), fit_intercept=False)
    scaled = framed_rows(problem, np.ones((6, 3)), np.ones(6))
    descent = descent_on(scaled, problem)
    run = Run(seeded_generator(0), None, False)
    descent.anchor_gradient(run)
    descent.inner_steps(run)
    np.testing.assert_array_equal(descent.w, descent.anchor - descent.length * descent.gradient)


# Audits. One column, one row with weight or without; the transcript (G, Y) is read with the best weights for its two
# parts. Confidence 1 - 1e-6 each: the chance that this file rejects a correct library is below 3e-6.
EPSILON, DELTA, RUNS = 1.0, 0.1, 4_000
AUDITED = SVRG(anchors=1, inner=1, batch_size=3, anchor_share=0.5, clip=0.25, difference=0.05, scale_share=0.0)
WITHOUT_PENALTY = Problem(Logistic(), fit_intercept=False)


def transcript_score(plan, scaled, stream):
    """How much the two released sums speak for the row, which pulls the anchor down and differences up.

    The inner step is taken far from the anchor, where the slope has become small: both clips bind.
    """
    far = 3.0
    descent = MemorySteps(AUDITED, scaled, plan)
    run = Run(stream, None, False)
    descent.anchor_gradient(run)
    pull = -descent.gradient[0] * scaled.rows / descent.clip
    descent.w = descent.anchor + far
    descent.inner_steps(run)
    total = (far - descent.w[0]) / descent.length - descent.gradient[0]
    change = total * descent.settings.batch / (far * descent.difference_clip)
    mechanism = plan.mechanism
    return pull / mechanism.full.multiplier**2 + mechanism.rate * change / mechanism.sampled.multiplier**2


def lower_bound(relation, noise):
    rows = 4
    public = Public(rows, 1, relation, low=-np.ones(1), high=np.ones(1))
    plan = AUDITED.plan(WITHOUT_PENALTY, public, Budget(EPSILON, DELTA))
    plan = replace(plan, mechanism=replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier))
    X, weight = np.zeros((rows, 1)), np.ones(rows)
    X[0] = 1.0
    changed, other = X.copy(), weight.copy()
    if relation is Relation.REPLACE:
        changed[0] = -1.0
    else:
        other[0] = 0.0
    stream, scores = seeded_generator(7), []
    for x, w in ((X, weight), (changed, other)):
        scaled = framed_rows(WITHOUT_PENALTY, x, np.ones(rows), w, relation)
        scores.append(np.array([transcript_score(plan, scaled, stream) for _ in range(RUNS)]))
    return epsilon_lower_bound(*scores, DELTA)


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
@pytest.mark.slow
def test_the_audit_accepts(relation):
    assert lower_bound(relation, noise=1.0) <= EPSILON


@pytest.mark.slow
def test_the_audit_rejects_half_the_noise():
    assert lower_bound(Relation.ZERO_OUT, noise=0.5) > EPSILON


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_anchors_take_about_their_share(relation, share):
    """In the units of Gaussian DP, measured by the epsilon that each part has alone."""
    plan = SVRG(anchors=20, inner=30, anchor_share=share).plan(
        Problem(Logistic(), L2(0.1)), Public(50_000, 5, relation), Budget(1.0, 1e-6)
    )
    parts = [plan.mechanism.full.event, plan.mechanism.sampled.event]
    costs = [accounting.gaussian_mu(accounting.epsilon_of(part, 1e-6, relation), 1e-6) ** 2 for part in parts]
    assert costs[0] / sum(costs) == pytest.approx(share, abs=0.05)


def test_defaults_follow_the_public_facts():
    problem = Problem(Logistic(), L2(0.1))
    inner = [
        SVRG().plan(problem, Public(n, 5), Budget(epsilon, 1e-6)).settings.inner
        for n, epsilon in ((100, 0.1), (1_000, 0.1), (10_000, 1.0), (100_000, 10.0))
    ]
    assert inner == sorted(inner)
    assert inner[0] == 1
    assert inner[-1] == 40


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="anchor_share must be below 1"):
        SVRG(anchor_share=1.0)
    with pytest.raises(ValueError, match="anchors must be a whole"):
        SVRG(anchors=1.5)
    with pytest.raises(ValueError, match="difference must be a positive"):
        SVRG(difference=0.0)
    with pytest.raises(IncompatibleSolverError, match="pure"):
        SVRG().plan(Problem(Squared()), Public(100, 3), Budget.pure(1.0))


def test_it_keeps_up_with_gradient_descent_on_a_real_table(shared_data):
    """Electricity at epsilon 1: measured 6e-5 relative error; a broken clip or step would lose orders of magnitude."""
    stored = shared_data("electricity")
    X, y = stored["X"], 2.0 * stored["y"] - 1.0
    problem = Problem(Logistic(), L2(1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, X, y, "svrg", Budget(1.0, 1e-9), random_state=0)
    best = problem.optimum(X, y).value
    assert problem.objective(X, y, solution.w, solution.intercept) <= best * (1 + 5e-4)
