"""Hostile messages, boards and plans of a vertical split: refused from public facts, or harmless to privacy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Budget, Problem, Relation
from discreet.audit.vertical import exact_holder
from discreet.federated.vertical import Board, Holder, HolderFacts, plan_vertical, run_vertical
from discreet.federated.vertical.board import LARGEST
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.losses import Logistic, Squared
from tests.vertical_tools import cut, holders, small_plan, table


def small():
    X, y = table(30)
    plan = small_plan(30, budget=Budget(8.0, 1e-3), y_bounds=(-20, 20), sweeps=2, scale_share=0)
    return plan, X, y


def until(board, parts, kind):
    """Let the holders send until a message of this kind is next."""
    while board.turn.kind != kind:
        board.add(parts[board.turn.holder].post(board))
    return board


@pytest.mark.parametrize("number", ["deviation", "clip"])
@pytest.mark.parametrize("size", [math.inf, 2.0 * LARGEST])
def test_the_board_takes_no_message_whose_noise_or_clip_is_beyond_all_numbers(number, size):
    plan, X, y = small()
    parts = holders(plan, X, y)
    board = until(Board(plan), parts, "slopes")
    message = parts["labels"].post(board)
    with pytest.raises(ValueError, match="slopes of holder 'labels'"):
        board.add(replace(message, **{number: size}))
    with pytest.raises(ValueError, match="finite and of shape"):
        board.add(replace(message, values=np.full(30, 2.0 * LARGEST)))


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("relation", ["replace", "zero_out"])
@pytest.mark.parametrize("numbers", [(0.0, 0.0), (1e-9 * LARGEST, 1e-9 * LARGEST), (LARGEST, 0.0), (1e-320, 1e-320)])
def test_hostile_slopes_and_margins_move_no_message_further(loss, relation, numbers):
    """All others send about the largest numbers that the board takes, or name a clip of 0; a hostile person changes."""
    X, y = table(30)
    y = np.sign(y) if loss.classification else y
    plan = small_plan(
        30, Problem(loss), Budget(8.0, 1e-3), y_bounds=(-20, 20), relation=relation, sweeps=2, scale_share=0
    )
    values, size = numbers
    first, second, weight = cut(X)["bank"].copy(), cut(X)["bank"].copy(), None
    first[0], second[0] = 1e308, -1e308
    if relation == "zero_out":
        second, weight = first, np.append(0.0, np.ones(29))
    pair = [
        exact_holder(Holder(plan, "bank", own, None, part, seeded_generator(1)))
        for own, part in ((first, None), (second, weight))
    ]
    senders, board, seen = holders(plan, X, y), Board(plan), 0
    senders["bank"] = Holder(plan, "bank", first, None, None, seeded_generator(3))
    while (turn := board.turn) is not None:
        message = senders[turn.holder].post(board)
        if turn.holder == "bank":
            means = [one.post(board) for one in pair]
            if turn.kind != "scales":
                moved = np.linalg.norm(means[0].array - means[1].array)
                allowed = message.deviation / plan.holder("bank").mechanism.part(seen).multiplier
                assert moved <= allowed * (1.0 + 1e-6)
                seen += 1
        elif turn.kind in ("slopes", "margins"):
            signs = np.where(np.arange(30) % 2, 1.0, -1.0)
            message = replace(message, values=values * signs, deviation=size, clip=size)
        board.add(message)
    assert seen == 5


def test_a_clip_of_zero_leaves_nothing():
    rows = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert not clipped_gradient_sum(rows, np.array([0.0, 3.0]), np.array([2.3, 1e-9]), 0.0, None).any()


def test_a_holder_refuses_a_board_on_which_its_own_scales_were_changed():
    """With other scales, a row of a hostile person could overflow, and the others' not."""
    plan, X, y = small()
    parts, board = holders(plan, X, y), Board(plan)
    until(board, parts, "moments")
    own = board._messages[0]
    board._messages[0] = replace(own, values=replace(own.scaling, scale=np.full(2, 1e-300)))
    with pytest.raises(ValueError, match="the scales of holder"):
        parts["bank"].post(board)


def test_a_holder_takes_its_turn_from_its_own_plan():
    """A board that names the scales again would have the same thing released twice, for the price of one."""

    class Liar(Board):
        @property
        def turn(self):
            return self.plan.schedule[0]

    plan, X, y = small()
    parts, board = holders(plan, X, y), Board(plan)
    until(board, parts, "moments")
    liar = Liar(plan)
    liar._messages = list(board.messages)
    assert parts["bank"].post(liar).kind == "moments"
    shuffled = Board(plan)
    shuffled._messages = [*board.messages[1:], board.messages[0]]
    with pytest.raises(ValueError, match="order of the plan"):
        parts["bank"].post(shuffled)


@pytest.mark.parametrize("relation", ["replace", "zero_out"])
def test_holders_whose_rows_are_all_zero_are_no_obstacle(relation):
    """Without noise their second moments are 0; with noise nobody may see a difference in how the run ends."""
    exact, private = Budget(math.inf, 1e-6), Budget(1.0, 1e-6)
    for own, others in ((exact, private), (private, exact), (private, private), (exact, exact)):
        facts = [HolderFacts("a", 1, own, (-1, 1)), HolderFacts("b", 2, others, (-1, 1))]
        plan = plan_vertical(Problem(Squared()), facts, 20, labels="b", y_bounds=(-1, 1), relation=relation)
        parts = {"a": Holder(plan, "a", np.zeros((20, 1))), "b": Holder(plan, "b", np.zeros((20, 2)), np.ones(20))}
        model = run_vertical(plan, parts)
        assert np.isfinite(model.intercept)
        assert own is private or not model.coef["a"].any()


def test_a_plan_put_together_by_hand_keeps_its_budgets_or_is_refused():
    plan = small_plan(100, budget=Budget(1.0, 1e-6))
    first, *rest = plan.holders
    faint = replace(first.mechanism, multiplier=0.01 * first.mechanism.multiplier)
    quiet = replace(first, mechanisms={**first.mechanisms, "mechanism": faint})
    with pytest.raises(ValueError, match="too little noise"):
        replace(plan, holders=(quiet, *rest))
    other = replace(first, public=replace(first.public, relation=Relation.ZERO_OUT))
    with pytest.raises(ValueError, match="same relation"):
        replace(plan, holders=(other, *rest))
    with pytest.raises(ValueError, match="messages"):
        replace(plan, sweeps=plan.sweeps + 1)
    with pytest.raises(ValueError, match="last holder"):
        replace(plan, holders=(*rest, first))
