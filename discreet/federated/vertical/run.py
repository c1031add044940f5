"""The one loop: whoever has the turn reads the board and adds a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from discreet.federated.vertical.board import Board, Message
from discreet.federated.vertical.model import VerticalModel
from discreet.federated.vertical.plan import VerticalSchedule

CONVERGED = 1e-11  # change of the weights in a sweep without noise, over their size


class Sender(Protocol):
    """All that the loop asks of a holder: a message. The holder may be an object, a process or another machine."""

    def post(self, board: Board) -> Message: ...


def run_vertical(plan: VerticalSchedule, holders: Mapping[str, Sender], seeded: bool = False) -> VerticalModel:
    """Let the holders send their messages in the planned order, and read the model from the board.

    Parameters
    ----------
    plan : VerticalSchedule
    holders : mapping of str to Holder
        By name; anything with a method `post(board)` that returns the holder's next message.
    seeded : bool
        Whether any holder draws its noise from a seed, which is then named as a leak.

    Guarantee: the result is a function of the board, whose cost the plan states for every holder and in total.
    """
    expected = {holder.name for holder in plan.holders}
    if set(holders) != expected:
        raise ValueError(f"the plan needs the holders {sorted(expected)}; got {sorted(holders)}.")
    board = Board(plan)
    seeded = seeded or any(getattr(holder, "seeded", False) for holder in holders.values())
    before: list[np.ndarray] = []
    while (turn := board.turn) is not None:
        board.add(holders[turn.holder].post(board))
        if not plan.is_noisy and turn.kind == "weights" and turn.holder == plan.holders[-1].name:
            now = [board.weights(holder.name) for holder in plan.holders]
            if turn.sweep > 0 and _same(before, now):
                break
            before = now
    return VerticalModel.from_board(board, seeded)


def _same(before: list[np.ndarray], now: list[np.ndarray]) -> bool:
    moved = max(float(np.abs(a - b).max()) for a, b in zip(before, now, strict=True))
    return moved <= CONVERGED * max(1.0, *(float(np.abs(w).max()) for w in now))
