"""Attacks on one holder of a vertical split: no message moves more than it may, and faults are found."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from discreet import Budget, Problem, Relation
from discreet.audit.lower_bound import at_least, at_most
from discreet.audit.vertical import attack, exact_holder
from discreet.federated.vertical import Board, Holder, HolderFacts, plan_vertical, run_vertical
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Huber, Logistic, Squared
from tests.vertical_tools import COLUMNS, cut, holders, small_plan, table

HUGE = [1e308, -1e308, 5e-324, -30.0, 2.0, 0.0, 1e30]


class HalfNoise(Holder):
    """A planted fault: the factor 2 of replacement is missing from per-person messages."""

    def _per_person(self, kind, values, clip, believed):
        plan, self._plan = self._plan, _under(self._plan, Relation.ZERO_OUT)
        message = super()._per_person(kind, values, clip, believed)
        self._plan = plan
        return message


class NoiseForgotten(Holder):
    """A planted fault: the second kind of message, the gradient, has almost no noise."""

    @property
    def _mechanism(self):
        right = super()._mechanism
        return replace(right, multiplier=0.01 * right.multiplier) if self._kind == "weights" else right

    def _make(self, kind, board):
        self._kind = kind
        return super()._make(kind, board)


class HiddenWeights(Holder):
    """A planted fault: margins of weights that are not on the board, but fitted to all rows of the holder."""

    def _margins(self, board):
        rows = self._rows(board)
        hidden = board.weights(self.own.name) + rows.mean(axis=0)
        return self._per_person("margins", rows @ hidden, 1.0, 0.0)


def _under(plan, relation):
    parts = tuple(replace(part, public=replace(part.public, relation=relation)) for part in plan.holders)
    return replace(plan, holders=parts)


def neighbours(relation, name, X, y, rng):
    """The tables (X, y, weight) of a holder, before and after person 0 changes there."""
    own = cut(X)[name]
    first = own.copy()
    first[0] = rng.choice(HUGE, own.shape[1])
    target, other = y.copy(), y.copy()
    labels = set(np.unique(y)) == {-1.0, 1.0}
    target[0], other[0] = (1.0, -1.0) if labels else rng.permutation([1e308, -1e308])
    if relation is Relation.ZERO_OUT:
        return (first, target, None), (first, target, np.append(0.0, np.ones(len(y) - 1)))
    second = first.copy()
    second[0] = rng.choice(HUGE, own.shape[1])
    return (first, target, None), (second, other, None)


def moves(loss, relation, name, seed, kind=Holder):
    """All moves of an attack on a hostile person at one holder."""
    rng = np.random.default_rng(seed)
    X, y = table(30, seed)
    y = np.sign(y) if loss.classification else y
    plan = small_plan(
        30, Problem(loss), Budget(8.0, 1e-3), y_bounds=(-20, 20), relation=relation, sweeps=2, scale_share=0
    )
    tables = neighbours(relation, name, X, y, rng)
    made = [
        kind(plan, name, own, target if name == "labels" else None, weight, seeded_generator(1))
        for own, target, weight in tables
    ]
    senders = holders(plan, X, y, seed)
    own, target, weight = tables[0]
    senders[name] = kind(plan, name, own, target if name == "labels" else None, weight, seeded_generator(2))
    return attack(plan, senders, name, *made).moves


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.7)])
@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
def test_no_message_moves_further_than_its_noise_allows(loss, relation):
    """The same board, two neighbouring tables with a hostile person: replayed message by message."""
    closest = 0.0
    for name in COLUMNS:
        for seed in range(4):
            for move in moves(loss, relation, name, seed):
                assert move.moved <= move.allowed * (1.0 + 1e-6), (name, seed, move)
                assert move.entries == 1 or move.kind not in ("slopes", "margins")
                closest = max(closest, move.moved / move.allowed)
    assert closest > (0.4 if loss.classification else 0.9)  # the bound is nearly reached, so the test means something


def test_a_missing_factor_and_hidden_weights_are_found():
    wrong = [move for seed in range(4) for move in moves(Squared(), Relation.REPLACE, "labels", seed, HalfNoise)]
    assert max(move.moved / move.allowed for move in wrong) > 1.5
    wrong = [move for seed in range(2) for move in moves(Squared(), Relation.REPLACE, "bank", seed, HiddenWeights)]
    assert max(move.entries for move in wrong if move.kind == "margins") == 30


def test_messages_of_the_others_do_not_depend_on_a_holder_but_through_the_board():
    X, y = table(40)
    plan = small_plan(40, sweeps=2)
    board, changed = Board(plan), Board(plan)
    first, second = holders(plan, X, y), holders(plan, X, y)
    bank = exact_holder(holders(plan, np.hstack([-X[:, :2], X[:, 2:]]), y)["bank"])
    while (turn := board.turn) is not None:
        message, again = first[turn.holder].post(board), second[turn.holder].post(changed)
        if turn.holder == "bank":
            bank.post(changed)  # its rows are others, but the same message reaches the board
        elif turn.kind != "scales":
            np.testing.assert_array_equal(message.array, again.array)
        board.add(message)
        changed.add(message)


MU, RUNS = 1.0, 600


def seen_mu(name, kind, runs=RUNS):
    """A lower bound on mu from runs with a hostile person at one holder; wrong with probability 1e-4."""
    n, budget = 12, Budget.gdp(MU)
    facts = [HolderFacts(part, 1, budget, (-1, 1)) for part in ("other", "labels")]
    problem = Problem(Squared(), fit_intercept=False)
    plan = plan_vertical(problem, facts, n, labels="labels", y_bounds=(-1, 1), scale_share=0, sweeps=1)
    rng, stream = np.random.default_rng(0), seeded_generator(5)
    y = np.sign(rng.normal(size=n))

    def holder(part, sign):
        X, target = np.full((n, 1), 0.01), y.copy()
        X[0], target[0] = (sign if part == name == "other" else 1.0), (sign if name == "labels" else 1.0)
        used = kind if part == name else Holder
        return used(plan, part, X, target if part == "labels" else None, random_state=stream.spawn(1)[0])

    made = {sign: {part: holder(part, sign) for part in ("other", "labels")} for sign in (1.0, -1.0)}

    def fresh(sign, part):
        """A copy that has sent nothing yet, with noise of its own."""
        again = copy.copy(made[sign][part])
        again._rng = stream.spawn(1)[0]
        return again

    above = []  # how often the likelihood ratio says that the sign was positive
    for sign in (1.0, -1.0):
        found = 0
        for _ in range(runs):
            senders = {part: fresh(sign, part) for part in ("other", "labels")}
            found += attack(plan, senders, name, fresh(1.0, name), fresh(-1.0, name)).loss > 0.0
        above.append(np.array([found]))
    power, size = at_least(above[0], runs, 5e-5)[0], at_most(above[1], runs, 5e-5)[0]
    return float(ndtri(power) - ndtri(size))


@pytest.mark.slow
def test_many_runs_show_no_more_than_the_promise_at_the_worst_person():
    bound = seen_mu("labels", Holder)
    assert 0.3 * MU < bound < MU


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "runs"), [("labels", HalfNoise, RUNS), ("other", NoiseForgotten, 200)])
def test_many_runs_show_planted_faults(name, kind, runs):
    assert seen_mu(name, kind, runs) > MU


def test_exact_holders_are_for_audits():
    X, y = table(20)
    plan = small_plan(20, sweeps=1)
    one, two = (
        run_vertical(plan, {name: exact_holder(part) for name, part in holders(plan, X, y, seed).items()})
        for seed in (1, 2)
    )
    np.testing.assert_array_equal(one.coef["labels"], two.coef["labels"])
