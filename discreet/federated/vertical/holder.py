"""A holder: its own columns, and perhaps the target. It reads the board, sends its messages and gives nothing else.

Below it is the one loop, in which whoever has the turn reads the board and adds a message, and the model it leaves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.data.validation import array_rows, load_features
from discreet.federated.vertical import board as boards
from discreet.federated.vertical.board import Board, Message
from discreet.federated.vertical.plan import Kind, VerticalSchedule
from discreet.kernels.gradient import clipped_gradient_sum, row_norms
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms import Gaussian, clipped_sum
from discreet.privacy.random.generator import generator_from
from discreet.scaling import second_moment
from discreet.scaling.learn import learn_scaling


class Holder:
    """One holder's rows; `post` is the only way out, and every message has its planned noise.

    Parameters
    ----------
    plan : VerticalSchedule
    name : str
        Which holder of the plan this is.
    X : array of shape (n_samples, n_columns)
        The holder's columns; row i is person i at every holder.
    y : array of shape (n_samples,), optional
        The target, for the label holder: numbers, or labels -1 and +1.
    sample_weight : array of shape (n_samples,), optional
        Weights in [0, 1] of the holder's own rows.
    random_state : int, optional
        A seed, for tests; secure noise by default.

    Guarantee: all messages together cost `plan.holder(name).guarantee`, for one row of this holder, against whoever
    sees the board and knows all else (docs/guarantees/vertical.md).
    """

    _checks_scales = True  # only an audit, which replays a board with two other tables, does without

    def __init__(
        self,
        plan: VerticalSchedule,
        name: str,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self._plan, self.own = plan, plan.holder(name)
        if self.own.has_labels != (y is not None):
            raise ValueError(f"holder {name!r} must come {'with' if self.own.has_labels else 'without'} a target y.")
        data = load_features(X, sample_weight) if y is None else array_rows(X, y, sample_weight)
        self._check(data, plan)
        self._data = data
        self._rng = generator_from(random_state)
        self.seeded = not self._rng.secure
        self._rng.rekey(digest_of(plan.digest, name))
        self._sent = 0
        self._scales: Message | None = None

    def _check(self, data: Data, plan: VerticalSchedule) -> None:
        public = self.own.public
        if data.sparse:
            raise ValueError("a vertical split takes dense tables; pass X.toarray().")
        if (data.rows, data.columns) != (public.rows, public.columns):
            raise ValueError(
                f"the plan is for {public.rows} rows and {public.columns} columns at holder {self.own.name!r}, but the "
                f"table has {data.rows} and {data.columns}."
            )
        if self.own.has_labels:
            plan.problem.check_labels(data.y)

    def post(self, board: Board) -> Message:
        """Return this holder's next message, made of its own rows and of the board.

        Raises
        ------
        ValueError
            It is another holder's turn, the board belongs to another plan, or the message was sent before: to make it
            again would draw its noise twice. Or the board has other scales of this holder than it sent.
        """
        name, messages, schedule = self.own.name, board.messages, self._plan.schedule
        done = len(messages)
        if board.plan.digest != self._plan.digest or done >= len(schedule) or schedule[done].holder != name:
            raise ValueError(f"it is not the turn of holder {name!r} on this board.")
        if any((m.sender, m.kind) != (t.holder, t.kind) for m, t in zip(messages, schedule, strict=False)):
            raise ValueError("the messages on this board are not in the order of the plan.")
        own = [message for message in messages if message.sender == name]
        if len(own) != self._sent:
            raise ValueError(f"holder {name!r} has sent this message before, and sends it only once.")
        # Scales put in the place of its own could make single rows overflow, and so show them.
        if self._checks_scales and self._scales is not None and not own[0].same_as(self._scales):
            raise ValueError(f"the scales of holder {name!r} on this board are not those that it sent.")
        self._sent += 1
        return self._make(schedule[done].kind, board)

    def _make(self, kind: Kind, board: Board) -> Message:
        if kind == "scales":
            scaling = learn_scaling(self.own.scaling_plan, self._data, self.own.public, self._rng)
            self._scales = Message(self.own.name, "scales", scaling)
            return self._scales
        if kind == "moments":
            return self._moments(board)
        if kind == "slopes":
            slopes, believed, _ = self._own_slopes(board)
            return self._per_person(kind, slopes, boards.slope_clip(board), believed)
        if kind == "margins":
            return self._margins(board)
        if self.own.has_labels:
            return self._label_weights(board)
        return self._step(board, boards.slopes_for(board, self.own.name), boards.centre_of(self._plan, board, self.own))

    def _rows(self, board: Board) -> FloatArray:
        """The scaled rows, with a last 1 for the intercept at the label holder; made once the scales are known."""
        if not hasattr(self, "_scaled"):
            scaling = board.required(self.own.name, "scales").scaling
            intercept = self.own.has_labels and self._plan.problem.fit_intercept
            self._scaled = np.asarray(scaling.matrix(self._data, "C", intercept), dtype=np.float64)
            self._norms = row_norms(self._scaled)
            self._y = self._data.y if self._plan.problem.loss.classification else scaling.target(self._data.y)
        return self._scaled

    def _moments(self, board: Board) -> Message:
        rows, own = self._rows(board), self.own
        radius = min(own.radius, float(self._norms.max())) if not own.is_noisy else own.radius
        exact = second_moment.clipped_second_moment(
            rows, self._norms, radius, self._data.weight, self._plan.rows if own.is_noisy else None
        )
        released = second_moment.release(
            exact, radius, self._plan.rows, self._mechanism, self._plan.relation, self._rng
        )
        return Message(own.name, "moments", released.matrix, released.deviation)

    @property
    def _mechanism(self) -> Gaussian:
        """The mechanism of the message that is being made; the first after the scales is number 0."""
        return self.own.mechanism.part(self._sent - 2)

    def _margins(self, board: Board) -> Message:
        margins = self._rows(board) @ board.weights(self.own.name)
        return self._per_person("margins", margins, boards.margin_clip(board, self.own), 0.0)

    def _per_person(self, kind: Kind, values: FloatArray, clip: float, believed: float) -> Message:
        """One number per person, clipped, with noise.

        Guarantee: one event of the message's mechanism. Entry i depends on row i and the board, so one row moves one
        entry, and rounding moves no other.
        """
        clipped = np.clip(np.where(np.isnan(values), 0.0, values), -clip, clip)
        if self._data.weight is not None:
            clipped = clipped * self._data.weight
        if not self.own.is_noisy:
            return Message(self.own.name, kind, clipped, 0.0, float(np.abs(clipped).max()), believed)
        sensitivity = clipped_sum(self._plan.relation) * clip
        noisy = self._mechanism.grid(sensitivity, 1).release(self._rng, clipped)
        return Message(self.own.name, kind, noisy, self._mechanism.deviation(sensitivity), clip, believed)

    def _label_weights(self, board: Board) -> Message:
        slopes, believed, margins = self._own_slopes(board)
        clip, curvature = boards.slope_clip(board), self._plan.problem.loss.smoothness
        rest = curvature * (1.0 - believed)
        values, variance = np.clip(slopes, -clip, clip) + rest * margins.values, curvature**2 * margins.variance
        whole = boards.PerPerson(values, variance, clip + rest * margins.bound)
        return self._step(board, whole, board.weights(self.own.name))

    def _own_slopes(self, board: Board) -> tuple[FloatArray, float, boards.PerPerson]:
        """Slopes at the label holder's own part of the margins and the believed part of the others'."""
        margins = boards.sum_of_margins(board, self.own.name)
        believed = boards.believed_part(board, margins)
        own = self._rows(board) @ board.weights(self.own.name)
        return self._plan.problem.loss.slope(own + believed * margins.values, self._y), believed, margins

    def _step(self, board: Board, slopes: boards.PerPerson, centre: FloatArray) -> Message:
        """The gradient of the block with noise, and the weights that follow from it.

        Guarantee: one event of the message's mechanism: a row adds a vector of norm at most radius * clip.
        """
        own, rows, n = self.own, self._rows(board), self._plan.rows
        if not own.is_noisy:
            gradient = clipped_gradient_sum(rows, slopes.values, self._norms, math.inf, self._data.weight) / n
            weights = boards.new_weights(board, own, gradient, 0.0, centre, slopes.variance)
            return Message(own.name, "weights", gradient, weights=weights)
        limit = own.radius * slopes.clip
        sensitivity = clipped_sum(self._plan.relation) * limit
        grid = self._mechanism.grid(sensitivity, rows.shape[1], n)
        shortened = (
            np.clip(slopes.values, -slopes.clip, slopes.clip) * (own.radius / np.maximum(self._norms, own.radius)) ** 2
        )
        total = clipped_gradient_sum(rows, shortened, self._norms, limit, self._data.weight, grid.step)
        gradient = (total + grid.noise(self._rng, total.shape)) / n
        deviation = self._mechanism.deviation(sensitivity) / n
        weights = boards.new_weights(board, own, gradient, deviation, centre, slopes.variance)
        return Message(own.name, "weights", gradient, deviation, weights=weights)


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
