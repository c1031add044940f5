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

from discreet import LogisticRegression, Relation, Ridge, solve
from discreet.data.public import Public
from discreet.data.rows import Data, Limits, moment_sums
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.kernels.lanes import arrays_of
from discreet.kernels.stochastic import steps
from discreet.privacy import accounting, mechanisms
from discreet.privacy.accounting.closed_forms import zcdp_epsilon
from discreet.privacy.budget import Budget
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.scaling import histograms
from discreet.solvers import SOLVERS, Solver
from tests.catalogue import SIZES, problem_for, suits
from tests.neighbours import (
    BUDGETS,
    CASE,
    LOSSES,
    N,
    P,
    neighbours,
    scaled_neighbours,
    some_weights,
    targets,
)


@settings(max_examples=200)
@given(**CASE)
def test_exponent_histograms_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = neighbours(relation, X, targets(Squared(), seed), weight, row, at)
    groups = [range(1), range(1, 2), range(2, 3), range(P, P + 1)]
    origin = np.array([0.0, -3.0, 1e6, 0.5])
    move = histograms.exponent_counts(first, groups, origin) - histograms.exponent_counts(second, groups, origin)
    claimed = mechanisms.one_hot_counts(relation, len(groups))
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-12)
    first, second = (histograms.exponent_counts(data, [range(P)], np.zeros(P)) for data in (first, second))
    pooled = first - second
    assert np.linalg.norm(pooled) <= mechanisms.one_hot_counts(relation, 1).l2 * (1 + 1e-12)


@settings(max_examples=200)
@given(**CASE)
def test_moments_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = neighbours(relation, X, targets(Squared(), seed), weight, row, at)
    radius = np.array([2.0, 1e-3, 1e6, 5.0])
    centre = np.array([0.0, 1.0, 0.0, 0.5])
    limits = Limits(centre - radius, centre + radius, centre, radius)
    everything = slice(0, P + 1)
    move = moment_sums(first, limits, everything) - moment_sums(second, limits, everything)
    claimed = mechanisms.bounded_moments(relation, P + 1)
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


def test_the_moment_bound_is_attained_and_cannot_be_lowered():
    limits = Limits(-np.ones(1), np.ones(1), np.zeros(1), np.ones(1))
    sums = [moment_sums(Data(np.array([[x]]), np.zeros(1)), limits, slice(0, 1)) for x in (1.0, -1.0, -0.5)]
    claimed = mechanisms.bounded_moments(Relation.REPLACE, 1)
    assert np.linalg.norm(sums[0] - sums[1]) == pytest.approx(claimed.l2)
    assert np.abs(sums[0] - sums[2]).sum() == pytest.approx(claimed.l1)


@settings(max_examples=150)
@given(**CASE, loss=LOSSES, j=st.integers(0, P))
def test_coordinate_gradients_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, loss, j):
    clip, step = np.array([0.3, 1.0, 0.7, 2.0]), np.ones(P + 1)
    released = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "F"):
        state = CoordinateState(scaled, clip, step)
        state.restart(some_weights(scaled, seed))
        before = state.w[..., j].copy()
        state.run(np.array([j]), np.zeros((1, *scaled.shape[:-1])))
        released.append((before - state.w[..., j]) * N)
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
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        with np.errstate(all="ignore"):
            slopes = scaled.slopes(some_weights(scaled, seed))
        sums.append(clipped_gradient_sum(scaled.X, slopes, scaled.norms(), clip, scaled.weight))
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

    clip, batch, step = 0.8, 2.0, 2.0**-30
    moved = []
    for scaled in scaled_neighbours(relation, loss, X, weight, row, at, seed, "C"):
        w = some_weights(scaled, seed)
        before, total = w.copy(), np.zeros_like(w)
        rows = scaled.X.shape[0]
        indptr, indices = np.array([0, rows]), np.arange(rows)
        c = scaled.penalty_terms
        common = (
            scaled.norms(), scaled.y, scaled.weight, loss.code, float(loss.parameter), indptr, indices,
            np.zeros((1, w.size)), step, clip, 1.0, batch, c.l1, c.l2, c.low, c.high,
        )  # fmt: skip
        steps(arrays_of(sp.csr_array(scaled.X) if sparse else scaled.X), *common, False, w, total)
        moved.append((before - w) * batch)
    move = np.linalg.norm(moved[0] - moved[1])
    assert move <= relation.factor * clip + step * np.sqrt(w.size) + 1e-12 * np.abs(before).max()


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # small tables
@pytest.mark.filterwarnings("ignore:the noise in a prediction:discreet.UtilityWarning")
@pytest.mark.filterwarnings("ignore:even a column that tells everything:discreet.UtilityWarning")
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


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # small tables
@pytest.mark.parametrize("make", [LogisticRegression, Ridge])
def test_the_plan_of_an_estimator_is_the_same_for_any_two_tables(make):
    rng = np.random.default_rng(0)
    options = {"classes": [0, 1]} if make is LogisticRegression else {"y_bounds": (0.0, 1.0)}
    model = make(bounds=(-1.0, 1.0), **options)
    tables = [rng.standard_normal((80, 3)), np.full((80, 3), 1e300), np.zeros((80, 3))]
    plans = [model.fit(X, rng.integers(0, 2, 80)).plan_.to_dict() for X in tables]
    assert plans[0] == plans[1] == plans[2] == model.plan(80, 3).to_dict()


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
    if budget.kind == "approximate" and solver.capabilities.selects:
        # Google's accountants know selections by their rho only: compare with our bound by rho.
        outside = accounting.google_epsilon(event, budget.delta, relation)
        assert outside == pytest.approx(zcdp_epsilon(accounting.rho_of(event, relation), budget.delta), rel=0.001)
    elif budget.kind == "approximate":
        # Their grid rounds losses up: a step of a thousandth of epsilon makes this harder to pass, not easier.
        outside = accounting.google_epsilon(event, budget.delta, relation, interval=1e-3 * promised)
        assert outside <= promised * 1.005


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_an_unplanned_read_is_impossible_before_the_reservation(tmp_path, monkeypatch):
    """A ledger that refuses must leave the rows untouched: the solver is never called."""
    calls, run = [], Solver.solve

    def counted(*args, **kwargs):
        calls.append(args)
        return run(*args, **kwargs)

    monkeypatch.setattr(Solver, "solve", counted)
    from discreet import BudgetExceededError, Ledger

    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("table", epsilon=0.5, delta=1e-3)
    X, y = np.random.default_rng(0).standard_normal((50, 2)), np.arange(50) % 2
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=(-1.0, 1.0), ledger=ledger, dataset="table")
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert calls == []
    assert not hasattr(model, "coef_")
    assert ledger.spent("table") == 0.0
    assert math.isclose(ledger.remaining("table"), 0.5)
    model.set_params(epsilon=0.4).fit(X, y)  # what the ledger grants does call it
    assert len(calls) == 1
