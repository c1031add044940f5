"""Privacy as laws: one changed row moves every released quantity by at most the claimed sensitivity.

The released quantities are the exponent histograms, the moments, and every clipped gradient sum; all else is
post-processing. Hostile rows (1e308, subnormal numbers, huge targets) are drawn on purpose.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import LogisticRegression, Relation, Ridge, accounting, mechanisms, solve, summaries
from discreet.accounting import Budget
from discreet.accounting.zcdp import zcdp_epsilon
from discreet.data import Data, Public
from discreet.frame import Frame
from discreet.framed import put_in_frame
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.kernels.stochastic import steps_dense, steps_sparse
from discreet.losses import Huber, Logistic, Multinomial, OneVsRest, SmoothedHinge, Squared
from discreet.penalties import Zero
from discreet.problem import Problem
from discreet.solvers import SOLVERS
from discreet.sweeps import Sweeps
from tests.catalogue import SIZES, problem_for, suits

N, P = 6, 3
EXTREME = st.one_of(
    st.floats(-3.0, 3.0), st.sampled_from([0.0, 1e308, -1e308, 1.7e308, 5e-324, -1e-310, 1e30, -1e6, 0.5])
)
TABLES = arrays(np.float64, (N, P), elements=EXTREME)
ROWS = arrays(np.float64, P, elements=EXTREME)
WEIGHTS = arrays(np.float64, N, elements=st.floats(0.0, 1.0))
RELATIONS = st.sampled_from(list(Relation))
LOSSES = st.sampled_from(
    [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5), Multinomial(3), OneVsRest(Logistic(), 3)]
)


def targets(loss, seed):
    rng = np.random.default_rng(seed)
    if not loss.classification:
        return rng.standard_normal(N) * 10.0 ** rng.integers(-3, 300)
    return rng.choice([-1.0, 1.0], N) if loss.outputs == 1 else rng.integers(0, loss.outputs, N).astype(float)


def neighbours(relation, X, y, weight, row, at):
    """Two neighbouring tables: replaced, turned into a null row (weight 0), or shortened by a row."""
    first = Data(X, y, weight)
    if relation is Relation.REPLACE:
        other_X, other_y = X.copy(), y.copy()
        other_X[at], other_y[at] = row, y[at - 1]
        other_weight = weight.copy()
        other_weight[at] = weight[at - 1]
        return first, Data(other_X, other_y, other_weight)
    if relation is Relation.ZERO_OUT:
        zeroed = weight.copy()
        zeroed[at] = 0.0
        return first, Data(X, y, zeroed)
    keep = np.arange(N) != at
    return first, Data(X[keep], y[keep], weight[keep])


CASE = {
    "relation": RELATIONS,
    "X": TABLES,
    "weight": WEIGHTS,
    "row": ROWS,
    "at": st.integers(0, N - 1),
    "seed": st.integers(0, 1000),
}


@settings(max_examples=200)
@given(**CASE)
def test_exponent_histograms_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = neighbours(relation, X, targets(Squared(), seed), weight, row, at)
    groups = [range(1), range(1, 2), range(2, 3), range(P, P + 1)]
    origin = np.array([0.0, -3.0, 1e6, 0.5])
    move = summaries.exponent_counts(first, groups, origin) - summaries.exponent_counts(second, groups, origin)
    claimed = mechanisms.one_hot_counts(relation, len(groups))
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-12)
    first, second = (summaries.exponent_counts(data, [range(P)], np.zeros(P)) for data in (first, second))
    pooled = first - second
    assert np.linalg.norm(pooled) <= mechanisms.one_hot_counts(relation, 1).l2 * (1 + 1e-12)


@settings(max_examples=200)
@given(**CASE)
def test_moments_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = neighbours(relation, X, targets(Squared(), seed), weight, row, at)
    radius = np.array([2.0, 1e-3, 1e6, 5.0])
    centre = np.array([0.0, 1.0, 0.0, 0.5])
    limits = summaries.Limits(centre - radius, centre + radius, centre, radius)
    everything = slice(0, P + 1)
    move = summaries.moment_sums(first, limits, everything) - summaries.moment_sums(second, limits, everything)
    claimed = mechanisms.bounded_moments(relation, P + 1)
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


def test_the_moment_bound_is_attained_and_cannot_be_lowered():
    limits = summaries.Limits(-np.ones(1), np.ones(1), np.zeros(1), np.ones(1))
    sums = [summaries.moment_sums(Data(np.array([[x]]), np.zeros(1)), limits, slice(0, 1)) for x in (1.0, -1.0, -0.5)]
    claimed = mechanisms.bounded_moments(Relation.REPLACE, 1)
    assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(claimed.l2)
    assert np.abs(sums[0] - sums[2]).sum() == pytest.approx(claimed.l1)


def framed_neighbours(relation, loss, X, weight, row, at, seed, order):
    """Both tables in one released frame, with an intercept."""
    frame = Frame(
        low=np.full(P, -1e9),
        high=np.full(P, 1e9),
        shift=np.array([0.0, 0.5, -1.0]),
        scale=np.array([1.0, 0.01, 100.0]),
        second_moment=np.ones(P),
        frozen=np.array([False, False, True]),
        target_low=-1e200,
        target_high=1e200,
    )
    problem = Problem(loss, Zero())
    tables = neighbours(relation, X, targets(loss, seed), weight, row, at)
    return [put_in_frame(problem, data, frame, N, order) for data in tables]


def some_weights(framed, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(framed.shape) * 10.0 ** rng.integers(-3, 4)


@settings(max_examples=150)
@given(**CASE, loss=LOSSES, j=st.integers(0, P))
def test_coordinate_gradients_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss, j):
    clip, step = np.array([0.3, 1.0, 0.7, 2.0]), np.ones(P + 1)
    released = []
    for framed in framed_neighbours(relation, loss, X, weight, row, at, seed, "F"):
        sweeps = Sweeps(framed, clip, step)
        sweeps.restart(some_weights(framed, seed))
        before = sweeps.w[..., j].copy()
        sweeps.run(np.array([j]), np.zeros((1, *framed.shape[:-1])))
        released.append((before - sweeps.w[..., j]) * N)
    move = np.atleast_1d(released[0] - released[1])
    claimed = mechanisms.clipped_sum(relation, move.size) * clip[j]
    rounding = 1e-9 + 1e-12 * np.abs(before).max() * N
    assert np.isfinite(move).all()
    assert np.linalg.norm(move) <= claimed.l2 + rounding
    assert np.abs(move).sum() <= claimed.l1 + rounding


@settings(max_examples=150)
@given(**CASE, loss=LOSSES)
def test_row_gradients_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss):
    clip = 0.8
    sums = []
    for framed in framed_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        with np.errstate(all="ignore"):
            slopes = framed.slopes(some_weights(framed, seed))
        sums.append(clipped_gradient_sum(framed.X, slopes, framed.norms(), clip, framed.weight))
    move = sums[0] - sums[1]
    claimed = mechanisms.clipped_sum(relation, move.size) * clip
    assert np.isfinite(move).all()
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


@settings(max_examples=150)
@given(
    **CASE,
    loss=st.sampled_from([Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.5)]),
    sparse=st.booleans(),
)
def test_stochastic_steps_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss, sparse):
    """A batch that holds the changed row: the pair of the Poisson analysis has one contribution of norm C."""
    import scipy.sparse as sp

    clip, batch = 0.8, 2.0
    moved = []
    for framed in framed_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        w = some_weights(framed, seed)
        before, total = w.copy(), np.zeros_like(w)
        rows = framed.X.shape[0]
        indptr, indices = np.array([0, rows]), np.arange(rows)
        c = framed.coefficients
        common = (
            framed.norms(), framed.y, framed.weight, loss.code, float(loss.parameter), indptr, indices,
            np.zeros((1, w.size)), clip, 1.0, batch, c.l1, c.l2, c.low, c.high,
        )  # fmt: skip
        if sparse:
            matrix = sp.csr_array(framed.X)
            steps_sparse(matrix.indptr, matrix.indices, matrix.data, *common, w, total)
        else:
            steps_dense(framed.X, *common, False, w, total)
        moved.append((before - w) * batch)
    move = np.linalg.norm(moved[0] - moved[1])
    assert move <= relation.factor * clip + 1e-9 + 1e-12 * np.abs(before).max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_plan_is_the_same_for_any_two_tables_with_the_same_public_facts(solver):
    problem, rng = problem_for(solver), np.random.default_rng(0)
    plans = []
    for X in (rng.standard_normal((80, 3)), np.full((80, 3), 1e300), np.zeros((80, 3))):
        y = 2.0 * rng.integers(0, 2, 80) - 1.0
        solution = solve(problem, X, y, solver, Budget(1.0, 1e-4), bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0))
        plans.append(solution.plan.to_dict())
    low, high = np.full(3, -1.0), np.full(3, 1.0)
    target = {} if problem.loss.classification else {"target_low": -1.0, "target_high": 1.0}
    planned = SOLVERS[solver]().plan(problem, Public(80, 3, low=low, high=high, **target), Budget(1.0, 1e-4))
    assert plans[0] == plans[1] == plans[2] == planned.to_dict()


@pytest.mark.parametrize("make", [LogisticRegression, Ridge])
def test_the_plan_of_an_estimator_is_the_same_for_any_two_tables(make):
    rng = np.random.default_rng(0)
    options = {"classes": [0, 1]} if make is LogisticRegression else {"y_bounds": (0.0, 1.0)}
    model = make(bounds=(-1.0, 1.0), **options)
    tables = [rng.standard_normal((80, 3)), np.full((80, 3), 1e300), np.zeros((80, 3))]
    plans = [model.fit(X, rng.integers(0, 2, 80)).plan_.to_dict() for X in tables]
    assert plans[0] == plans[1] == plans[2] == model.plan(80, 3).to_dict()


BUDGETS = [
    Budget(1.0, 1e-6),
    Budget(0.1, 1e-9),
    Budget(8.0, 1e-5),
    Budget.pure(1.0),
    Budget.zcdp(0.1),
    Budget.gdp(0.5),
]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_plan_spends_its_budget_and_no_more(solver, budget, relation):
    """The plan's epsilon lies within 0.1 % under the promised one, and outside accountants agree."""
    solver = SOLVERS[solver]()
    problem = problem_for(solver.name)
    if not suits(solver.name, problem, budget):
        pytest.skip("refused, and tested to be refused, elsewhere")
    public = Public(*SIZES.get(solver.name, (5_000, 6)), relation)
    plan = solver.plan(problem, public, budget)
    event = plan.event
    if budget.kind == "zcdp":
        spent, promised = accounting.rho_of(event, relation), budget.rho
    elif budget.kind == "gdp":
        spent, promised = accounting.mu_of(event, relation), budget.mu
    elif budget.kind == "pure":
        spent, promised = accounting.pure_epsilon_of(event, relation), budget.epsilon
    else:
        spent, promised = accounting.epsilon_of(event, budget.delta, relation), budget.epsilon
    assert 0.999 * promised <= spent <= promised
    if budget.kind == "approximate" and solver.selects:
        # Google's accountants know selections by their rho only: compare with our bound by rho.
        outside = accounting.google_epsilon(event, budget.delta, relation)
        assert outside == pytest.approx(zcdp_epsilon(accounting.rho_of(event, relation), budget.delta), rel=0.001)
    elif budget.kind == "approximate":
        outside = accounting.google_epsilon(event, budget.delta, relation)
        assert outside <= promised * 1.005  # their grid of 1e-4 rounds losses up


def test_an_unplanned_read_is_impossible_before_the_reservation(tmp_path):
    """A ledger that refuses must leave the rows untouched: the solver is never called."""
    from discreet import BudgetExceededError, Ledger

    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("table", epsilon=0.5, delta=1e-3)
    X, y = np.random.default_rng(0).standard_normal((50, 2)), np.arange(50) % 2
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=(-1.0, 1.0), ledger=ledger, dataset="table")
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert ledger.spent("table") == 0.0
    assert math.isclose(ledger.remaining("table"), 0.5)
