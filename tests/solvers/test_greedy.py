"""Greedy coordinate descent: Lipschitz scores, exact selection law, upkeep of sparse gradients."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic, Squared
from discreet.problem.optimum import exactly_scaled
from discreet.problem.penalties import L1, L2, Box, ElasticNet, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_scaling
from discreet.solvers import GreedyCoordinateDescent
from discreet.solvers.greedy_coordinate_descent import CoordinateGradients
from tests.catalogue import table
from tests.neighbours import CASE, N, P, neighbours, targets

RULES = [("gs-s", True), ("gs-s", False), ("gs-r", False), ("gs-q", False)]
FLOATS = st.floats(-50.0, 50.0)
STEP = 2.0**-30  # of the thresholds, to which terms are rounded


class Frozen:
    """A stand-in for the state of a run: weights and gradient sums at will."""

    def __init__(self, w, sums):
        self.w, self.sums = w, sums


class Framing:
    def __init__(self, penalty_terms):
        self.penalty_terms, self.rows = penalty_terms, 1


@settings(max_examples=300)
@given(
    rule=st.sampled_from(RULES),
    penalty=st.sampled_from([Zero(), L1(0.7), L2(2.0), ElasticNet(1.5, 0.5), Box(-1.0, 3.0)]),
    w=st.sampled_from([0.0, 0.5, -0.5, 2.0, -1.0, 3.0]),
    gradients=st.tuples(FLOATS, FLOATS),
    bound=st.floats(0.01, 100.0),
)
def test_scores_are_lipschitz_in_the_gradient(rule, penalty, w, gradients, bound):
    """The one law that makes one noise scale right for every rule."""
    if penalty.name == "box" and not -1.0 <= w <= 3.0:
        w = 0.0
    solver = GreedyCoordinateDescent(rule=rule[0], signed=rule[1])
    framing = Framing(penalty.penalty_terms(1))
    first, second = (
        solver._scores(framing, Frozen(np.array([w]), np.array([g])), np.array([bound]))[0] for g in gradients
    )
    allowed = abs(gradients[0] - gradients[1]) / np.sqrt(bound)
    assert abs(first - second) <= allowed * (1 + 1e-9) + 1e-10


@settings(max_examples=60)
@given(**CASE, loss=st.sampled_from([Squared(), Logistic()]), sparse=st.booleans())
def test_scores_and_entries_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss, sparse):
    problem = Problem(loss, L1(0.1), fit_intercept=False)
    public = Public(N, P, relation, low=-np.ones(P), high=np.ones(P), target_low=-1.0, target_high=1.0)
    scaling_plan = plan_scaling(public, Budget(1.0, 1e-3), 0.0, False, not loss.classification)
    clip, bound = np.array([0.3, 0.6, 0.9]), np.array([1.0, 4.0, 9.0])
    solver = GreedyCoordinateDescent()
    states = []
    for data in neighbours(relation, X, targets(loss, seed), weight, row, at):
        held = Data(sp.csr_array(data.X) if sparse else data.X, data.y, data.weight)
        scaling = learn_scaling(scaling_plan, Data(data.X, data.y), public, seeded_generator(0))
        scaled = scale_problem(problem, held, scaling, N, "F")
        state = CoordinateGradients(scaled, clip, STEP)
        for j, value in ((1, 0.7), (0, -2.0), (1, 0.1)):
            state.move(j, value)
        states.append((scaled, state))
    entries = states[0][1].sums - states[1][1].sums
    assert (np.abs(entries) <= relation.factor * clip * (1 + 1e-15)).all()
    scores = [solver._scores(scaled, state, bound) for scaled, state in states]
    claimed = relation.factor * (clip / np.sqrt(bound)).max() / N
    assert (np.abs(scores[0] - scores[1]) <= claimed * (1 + 1e-9) + 1e-9).all()


def test_sums_kept_on_sparse_rows_equal_fresh_sums():
    X, y = table(Logistic(), rows=80, columns=6)
    X[np.abs(X) < np.abs(X).mean(axis=0)] = 0.0
    scaled = exactly_scaled(Problem(Logistic(), L1(0.01)), array_rows(sp.csr_array(X), y, np.linspace(0, 1, 80)))
    clip = np.full(scaled.columns, 0.2)
    kept = CoordinateGradients(scaled, clip, STEP)
    rng = np.random.default_rng(0)
    for _ in range(200):
        kept.move(int(rng.integers(scaled.columns)), float(rng.standard_normal()))
    fresh = CoordinateGradients(scaled, clip, STEP)
    for j, value in enumerate(kept.w):
        fresh.w[j] = value
    fresh.slopes[:] = kept.slopes
    fresh._refresh()
    np.testing.assert_array_equal(kept.sums, fresh.sums)  # sums of integers: 200 moves leave no drift
    np.testing.assert_allclose(kept.slopes, scaled.slopes(kept.w), atol=1e-9)
    np.testing.assert_allclose(kept.margins, scaled.margins(kept.w), atol=1e-9)


def test_without_noise_it_takes_the_best_coordinate_and_stays_sparse():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 50))
    y = X[:, 7] * 3.0 - X[:, 21] * 2.0
    problem = Problem(Squared(), L1(0.05), fit_intercept=False)
    solver = GreedyCoordinateDescent(steps=4)
    public = Public(400, 50)
    plan = solver.plan(problem, public, Budget(np.inf, 0.5))
    solution = solver.solve(problem, Data(X, y), plan, seeded_generator(0))
    assert set(np.flatnonzero(solution.w)) == {7, 21}


@pytest.mark.parametrize("relation", list(Relation))
def test_it_finds_the_support_that_noise_drowns_for_plain_descent(relation):
    """Signal on 3 of 300 columns: the choice is right and plain coordinate descent is far worse."""
    import discreet

    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (4_000, 300))
    y = np.clip(X[:, 0] + X[:, 1] - X[:, 2], -3.0, 3.0)
    options = {"bounds": (-1.0, 1.0), "y_bounds": (-3.0, 3.0), "relation": relation, "public_n": None}
    if relation is Relation.ADD_REMOVE:
        options["public_n"] = 4_000
    problem = Problem(Squared(), L1(0.02))
    errors = {}
    for solver in ("greedy-cd", "cd"):
        solution = discreet.solve(problem, X, y, solver, Budget(2.0, 1e-6), random_state=discreet_stream(), **options)
        errors[solver] = problem.objective(X, y, solution.w, solution.intercept)
        if solver == "greedy-cd":
            assert set(np.argsort(-np.abs(solution.w))[:3]) == {0, 1, 2}
    assert errors["greedy-cd"] < errors["cd"]


def discreet_stream():
    return seeded_generator(11)


def test_dorothea_runs_twenty_iterations_in_well_under_a_second(shared_data):
    z = shared_data("dorothea")
    X = sp.csr_array((z["X_data"], z["X_indices"], z["X_indptr"]), shape=tuple(z["X_shape"]))
    y = 2.0 * z["y"] - 1.0
    problem = Problem(Logistic(), L1(0.01), fit_intercept=False)
    public = Public(*X.shape, low=np.zeros(X.shape[1]), high=np.ones(X.shape[1]), sparse=True)
    solver = GreedyCoordinateDescent(steps=20, scale_share=0.0, least_entry=0.0)  # noise may move coordinates
    plan = solver.plan(problem, public, Budget(1.0, 1e-6))
    solver.solve(problem, Data(X, y), plan, seeded_generator(0))  # compiles
    start = time.perf_counter()
    solution = solver.solve(problem, Data(X, y), plan, seeded_generator(0))
    assert time.perf_counter() - start < 1.0
    assert 0 < np.count_nonzero(solution.w) <= 20
