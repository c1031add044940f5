"""The one loop, in which whoever has the turn reads the board and adds a message, and the model that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.vertical.board import Board, Message
from discreet.federated.vertical.plan import VerticalSchedule
from discreet.privacy.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class VerticalModel:
    """A linear model whose columns lie at several holders.

    Attributes
    ----------
    coef : dict of str to array
        The coefficients of each holder's columns, in its own units.
    intercept : float
    board : Board
        All messages; they are as public as the model.
    seeded : bool
        Whether noise came from a seed; the guarantees then name it as a leak.

    Guarantee: a function of the board; `guarantees` states its cost for each holder, `total` for all together.
    """

    coef: dict[str, FloatArray]
    intercept: float
    board: Board
    seeded: bool = False

    @classmethod
    def from_board(cls, board: Board, seeded: bool = False) -> VerticalModel:
        """Read the latest weights of all holders from the board."""
        coef, intercept = {}, 0.0
        for holder in board.plan.holders:
            scaling = board.required(holder.name, "scales").scaling
            w = board.weights(holder.name)
            coef[holder.name] = scaling.coef(w[: holder.public.columns])
            own = float(w[-1]) if holder.has_labels and board.plan.problem.fit_intercept else 0.0
            intercept += float(scaling.intercept(own, coef[holder.name]))
        return cls(coef, intercept, board, seeded)

    @property
    def plan(self) -> VerticalSchedule:
        """What was decided before the rows were read."""
        return self.board.plan

    @property
    def guarantees(self) -> dict[str, Guarantee]:
        """For each holder: what is promised about one person's row there, against all others together."""
        return {holder.name: self._stated(holder.guarantee) for holder in self.plan.holders}

    @property
    def total(self) -> Guarantee:
        """What is promised about all that the holders know of one person."""
        return self._stated(self.plan.total)

    def _stated(self, guarantee: Guarantee) -> Guarantee:
        return guarantee.with_seed() if self.seeded else guarantee

    def part(self, holder: str, X: Any) -> FloatArray:
        """Return what a holder adds to the margins of new people; not protected."""
        return np.asarray(X, dtype=np.float64) @ self.coef[holder]

    def margins(self, tables: Mapping[str, Any]) -> FloatArray:
        """Return the margins of new people from the tables of all holders."""
        if set(tables) != set(self.coef):
            raise ValueError(f"predictions need the columns of all holders, {sorted(self.coef)}.")
        return sum((self.part(name, X) for name, X in tables.items()), np.zeros(())) + self.intercept

    def predict(self, tables: Mapping[str, Any]) -> FloatArray:
        """Return predicted targets, or labels -1 and +1, from the tables of all holders."""
        margins = self.margins(tables)
        return np.where(margins > 0.0, 1.0, -1.0) if self.plan.problem.loss.classification else margins


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
