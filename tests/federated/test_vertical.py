"""Columns split between holders: the joint optimum, the walls between holders, and what a plan promises."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from discreet import Budget, Problem
from discreet.audit.vertical import exact_holder
from discreet.federated.vertical import Board, Holder, HolderFacts, Message, plan_vertical, run_vertical
from discreet.federated.vertical.board import noise_ridge
from discreet.privacy.accounting.closed_forms import gaussian_epsilon
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L1, L2
from tests.statistics import both_arms
from tests.vertical_tools import COLUMNS, cut, holders, small_plan, table

EXACT = Budget(math.inf, 1e-6)


@pytest.mark.parametrize("problem", [Problem(Squared()), Problem(Squared(), L1(0.1)), Problem(Logistic(), L2(0.05))])
def test_without_noise_the_holders_find_the_joint_optimum(problem):
    X, y = table()
    y = np.sign(y) if problem.loss.classification else y
    plan = small_plan(len(y), problem, EXACT, bounds=None)
    model = run_vertical(plan, holders(plan, X, y))
    best = problem.optimum(X, y)
    found = np.concatenate([model.coef[name] for name in COLUMNS])
    np.testing.assert_allclose(found, best.coef, atol=1e-7)
    assert model.intercept == pytest.approx(best.intercept, abs=1e-7)
    expected = X @ best.coef + best.intercept
    np.testing.assert_allclose(model.margins(cut(X)), expected, atol=1e-6)
    if problem.loss.classification:
        assert set(model.predict(cut(X))) == {-1.0, 1.0}


def test_a_large_table_and_budget_come_close_to_the_joint_optimum():
    X, y = table(20_000)
    plan = small_plan(len(y), budget=Budget(16.0, 1e-8), y_bounds=(-30.0, 30.0))
    model = run_vertical(plan, holders(plan, X, y))
    left = np.var(y - model.margins(cut(X))) / np.var(y)
    alone = small_alone(cut(X)["labels"], y)
    assert left < 0.25 < alone  # the label holder alone cannot do it


def small_alone(X, y):
    best = Problem(Squared()).optimum(X, y)
    return np.var(y - X @ best.coef) / np.var(y)


class BehindAWall:
    """A holder of which only messages come out, and to which only a copy of the board goes in."""

    __slots__ = ("__holder",)

    def __init__(self, holder):
        self.__holder = holder

    def post(self, board):
        return pickle.loads(pickle.dumps(self.__holder.post(pickle.loads(pickle.dumps(board)))))


def test_messages_are_all_that_holders_share():
    """Copies of the board and of messages are enough: no holder has, or needs, an object of another."""
    X, y = table(60)
    plan = small_plan(len(y))
    together = run_vertical(plan, holders(plan, X, y))
    apart = run_vertical(plan, {name: BehindAWall(holder) for name, holder in holders(plan, X, y).items()})
    for one, other in zip(together.board.messages[3:], apart.board.messages[3:], strict=True):
        np.testing.assert_array_equal(one.array, other.array)
    assert not hasattr(BehindAWall(holders(plan, X, y)["bank"]), "_data")


def test_a_seed_repeats_the_run_and_is_named_as_a_leak():
    X, y = table(60)
    plan = small_plan(len(y))
    first, second, third = (run_vertical(plan, holders(plan, X, y, seed)) for seed in (1, 1, 2))
    slopes = [model.board.required("labels", "slopes").array for model in (first, second, third)]
    np.testing.assert_array_equal(slopes[0], slopes[1])
    assert not np.array_equal(slopes[0], slopes[2])
    assert any("seed" in leak for leak in first.total.leaks)
    assert all("seed" in promise.leaks[0] for promise in first.guarantees.values())


def test_the_noise_of_a_message_has_the_planned_size():
    """False alarms: 1e-4 for each of three messages."""
    X, y = table(3_000)
    plan = small_plan(len(y), budget=Budget(16.0, 1e-6), sweeps=1, y_bounds=(-30, 30))
    noisy, exact = holders(plan, X, y), {name: exact_holder(part) for name, part in holders(plan, X, y).items()}
    board = Board(plan)
    while (turn := board.turn) is not None:
        message = noisy[turn.holder].post(board)
        mean = exact[turn.holder].post(board)
        if turn.kind in ("slopes", "margins"):
            both_arms(message.array - mean.array, stats.norm(scale=message.deviation))
        board.add(message)


def test_what_a_plan_promises():
    plan = small_plan(1_000, budget=Budget(2.0, 1e-6))
    mu = Budget(2.0, 1e-6).gaussian_mu()
    assert [holder.guarantee.epsilon for holder in plan.holders] == [2.0] * 3
    for holder in plan.holders:
        assert holder.guarantee.certified.epsilon <= 2.0
        assert len(holder.mechanism.shares) + 1 == sum(turn.holder == holder.name for turn in plan.schedule)
        assert sum(holder.mechanism.shares) == pytest.approx(1.0)
    assert plan.total.epsilon == pytest.approx(gaussian_epsilon(1e-6, math.sqrt(3) * mu), rel=1e-3)
    text = str(plan)
    assert "labels has the target" in text
    assert text.count("against all others together: epsilon = 2") == 3
    assert "one number per person" in text


def test_one_holder_without_a_budget_leaves_no_promise_for_the_whole():
    facts = [HolderFacts("a", 1, EXACT, (-1, 1)), HolderFacts("b", 1, Budget(1.0, 1e-6), (-1, 1))]
    plan = plan_vertical(Problem(Squared()), facts, 50, labels="b", y_bounds=(-1, 1))
    assert plan.holder("b").guarantee.epsilon == 1.0
    assert not plan.total.is_private
    assert "nothing is promised" in str(plan)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (50, 2)), rng.uniform(-1, 1, 50)
    parts = {"a": Holder(plan, "a", X[:, :1]), "b": Holder(plan, "b", X[:, 1:], y)}
    assert np.isfinite(run_vertical(plan, parts).margins({"a": X[:, :1], "b": X[:, 1:]})).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"relation": "add_remove"}, "how many people"),
        ({"labels": "nobody"}, "labels must name"),
        ({"holders": [HolderFacts("a", 1, EXACT)]}, "two or more"),
        ({"holders": [HolderFacts("a", 1, EXACT), HolderFacts("a", 1, EXACT)]}, "different names"),
        ({"holders": [HolderFacts("a", 1, Budget.pure(1.0)), HolderFacts("b", 1, EXACT)]}, "pure"),
        ({"holders": [HolderFacts("a", 0, EXACT), HolderFacts("b", 1, EXACT)]}, "columns must be"),
        ({"problem": Problem(Multinomial(3))}, "one output"),
        ({"sweeps": 0}, "sweeps must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(options, match):
    good = {"problem": Problem(Squared()), "holders": [HolderFacts(n, 1, EXACT) for n in "ab"], "labels": "b"}
    with pytest.raises(ValueError, match=match):
        plan_vertical(rows=10, **{**good, **options})


def test_tables_that_do_not_fit_the_plan_are_refused():
    X, y = table(20)
    plan = small_plan(20)
    with pytest.raises(ValueError, match="20 rows and 2 columns"):
        Holder(plan, "bank", X[:, :3])
    with pytest.raises(ValueError, match="without a target"):
        Holder(plan, "bank", X[:, :2], y)
    with pytest.raises(ValueError, match="with a target"):
        Holder(plan, "labels", X[:, :2])
    with pytest.raises(ValueError, match="knows no holder"):
        Holder(plan, "nobody", X[:, :2])
    with pytest.raises(ValueError, match="labels -1 and"):
        Holder(small_plan(20, Problem(Logistic())), "labels", X[:, :2], y)
    with pytest.raises(ValueError, match="needs the holders"):
        run_vertical(plan, {})


def test_a_message_is_sent_once_in_its_turn_and_cannot_be_changed():
    X, y = table(20)
    plan = small_plan(20)
    parts, board = holders(plan, X, y), Board(plan)
    with pytest.raises(ValueError, match="not the turn"):
        parts["shop"].post(board)
    with pytest.raises(ValueError, match="not the turn"):
        holders(small_plan(20, sweeps=3), X, y)["bank"].post(board)
    message = parts["bank"].post(board)
    with pytest.raises(ValueError, match="only once"):
        parts["bank"].post(board)  # the first message was lost: to make it again would draw its noise again
    board.add(message)
    for name in ("shop", "labels", "bank"):
        board.add(parts[name].post(board))
    moments = board.required("bank", "moments")
    with pytest.raises(ValueError, match="read-only"):
        moments.array[0, 0] = 5.0
    for values in (np.full((3, 3), np.nan), np.zeros(3)):
        with pytest.raises(ValueError, match="finite and of shape"):
            board.add(Message("shop", "moments", values))
    with pytest.raises(ValueError, match="turn of"):
        board.add(Message("bank", "moments", np.zeros((2, 2))))


def test_the_ridge_is_that_of_a_posterior_mean():
    """With equal eigenvalues the minimiser is the posterior mean, computed here from the joint normal law."""
    rng = np.random.default_rng(0)
    p, curvature, variance, deviation, spread = 40, 0.25, 3e-3, 0.02, 0.7
    matrix = curvature * 1.3 * np.eye(p)
    w = rng.normal(size=p) * math.sqrt(spread)
    covariance = variance * matrix / curvature + deviation**2 * np.eye(p)
    gradient = -matrix @ w + rng.multivariate_normal(np.zeros(p), covariance)
    ridge = noise_ridge(matrix, gradient, deviation, curvature, variance)
    excess = gradient @ gradient - np.trace(covariance) * (1.0 + math.sqrt(2.0 / p))
    seen = excess / np.sum(matrix**2)
    assert seen == pytest.approx(spread, rel=0.5)
    mean = -seen * matrix @ np.linalg.solve(seen * matrix @ matrix + covariance, gradient)
    np.testing.assert_allclose(np.linalg.solve(matrix + ridge * np.eye(p), -gradient), mean, rtol=1e-10)
    assert noise_ridge(matrix, gradient, 0.0, curvature, 0.0) == 0.0
    assert noise_ridge(matrix, 1e-3 * gradient, deviation, curvature, variance) == math.inf
