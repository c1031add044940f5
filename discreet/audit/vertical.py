"""An attack on a holder of a vertical split: two neighbouring tables, and what the board tells them apart by.

The attacker knows everything but the noise, and so the mean of every message under both tables. The messages are normal
numbers around these means, so the logarithm of the likelihood ratio is the best statistic there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.vertical import Board, Holder, Message, VerticalSchedule
from discreet.federated.vertical.holder import Sender
from discreet.federated.vertical.plan import Kind
from discreet.privacy.random.generator import RandomGenerator


class SilentGenerator(RandomGenerator):
    """A source whose noise is always 0: shows the mean of a message. Not private."""

    def __init__(self) -> None:
        super().__init__(bytes(32), secure=False)

    def rounded_draws(self, law: Literal["normal", "laplace"], scale: float, size: int | tuple[int, ...]) -> FloatArray:
        """Return zeros."""
        return np.zeros(size)


@dataclass(frozen=True)
class Move:
    """How far two neighbouring tables move the mean of one message.

    Attributes
    ----------
    kind : str
    moved : float
        The distance of the two means, in standard deviations of the noise.
    allowed : float
        What the plan books for the message, in the same unit.
    entries : int
        In how many entries the means differ.
    """

    kind: Kind
    moved: float
    allowed: float
    entries: int


@dataclass
class Attack:
    """What an attacker has seen: the moves of all messages, and the logarithm of the likelihood ratio."""

    moves: list[Move] = field(default_factory=list)
    loss: float = 0.0


def exact_holder(holder: Holder) -> Holder:
    """Let a holder draw no noise, and follow a board with another's scales. Not private: for audits."""
    holder._checks_scales = False
    holder._rng = SilentGenerator()
    return holder


def attack(plan: VerticalSchedule, senders: Mapping[str, Sender], name: str, first: Holder, second: Holder) -> Attack:
    """Run a plan and weigh, message by message, which of two tables holder `name` has.

    Parameters
    ----------
    plan : VerticalSchedule
    senders : mapping of str to Holder
        All holders, as for `run_vertical`.
    name : str
        The holder that is attacked.
    first, second : Holder
        That holder with each of the two neighbouring tables, unused; they are made to draw no noise.

    Returns
    -------
    Attack
        `loss` is the log-likelihood ratio of the first against the second table.
    """
    first, second = exact_holder(first), exact_holder(second)
    board, found, sent = Board(plan), Attack(), 0
    while (turn := board.turn) is not None:
        message = senders[turn.holder].post(board)
        if turn.holder == name:
            means = [exact.post(board) for exact in (first, second)]
            if turn.kind != "scales":
                _weigh(found, message, means, plan.holder(name).mechanism.part(sent - 1).multiplier)
            sent += 1
        board.add(message)
    return found


def _weigh(found: Attack, message: Message, means: list[Message], multiplier: float) -> None:
    """Add what one message tells; its noise is white, for moments in the norm of symmetric matrices."""
    difference = means[0].array - means[1].array
    entries = int(np.count_nonzero(difference))
    if entries == 0:
        return
    middle = 0.5 * (means[0].array + means[1].array)
    moved = float(np.linalg.norm(difference)) / message.deviation
    found.moves.append(Move(message.kind, moved, 1.0 / multiplier, entries))
    found.loss += float(np.sum((message.array - middle) * difference)) / message.deviation**2
