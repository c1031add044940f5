"""The public board: all messages of all holders, in the planned order. Whoever wants may read all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.federated.vertical.plan import VerticalSchedule
from discreet.federated.vertical.schedule import Kind, Turn
from discreet.privacy.release import ReleasePlan
from discreet.problem.column_scaling import ColumnScaling

LARGEST = 1e100  # of all numbers on the board: sums of their squares are finite


@dataclass(frozen=True, eq=False)
class Message:
    """What a holder tells the world in one turn.

    Attributes
    ----------
    sender : str
    kind : {"scales", "moments", "weights", "slopes", "margins"}
    values : array or ColumnScaling
        The scaling; the mean second moment (q, q); the mean gradient (q,); one number per person (n,).
    deviation : float
        Standard deviation of the noise of an entry (of a diagonal entry, for moments); 0 for scales.
    clip : float
        Slopes and margins lie in [-clip, clip] before the noise.
    believed : float
        For slopes: the part of the others' margins that went through the slope of the loss.
    weights : array of shape (q,), optional
        For "weights": the new weights of the block in scaled columns, the label holder's intercept last; a function of
        this message and of those before it.
    """

    sender: str
    kind: Kind
    values: FloatArray | ColumnScaling
    deviation: float = 0.0
    clip: float = 0.0
    believed: float = 0.0
    weights: FloatArray | None = None

    @property
    def array(self) -> FloatArray:
        """The values of every message but a scaling."""
        assert not isinstance(self.values, ColumnScaling)
        return self.values

    @property
    def scaling(self) -> ColumnScaling:
        """The values of a "scales" message."""
        assert isinstance(self.values, ColumnScaling)
        return self.values

    def same_as(self, other: Message) -> bool:
        """Whether two messages have the same values, to the last digit."""
        return digest_of(self.values) == digest_of(other.values)


class Board:
    """Messages in the order of the plan's schedule; they can be added and read, not changed.

    Parameters
    ----------
    plan : VerticalSchedule
    """

    def __init__(self, plan: VerticalSchedule) -> None:
        self.plan = plan
        self._messages: list[Message] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._messages)

    @property
    def turn(self) -> Turn | None:
        """Who is to send what next; None at the end."""
        done = len(self._messages)
        return self.plan.schedule[done] if done < len(self.plan.schedule) else None

    def add(self, message: Message) -> None:
        """Put a message on the board if it is the sender's turn and the message has the right form."""
        turn = self.turn
        if turn is None or (message.sender, message.kind) != (turn.holder, turn.kind):
            raise ValueError(f"it is the turn of {turn}, not of a {message.kind!r} message by {message.sender!r}.")
        self._messages.append(_checked(message, self.plan.holder(message.sender), self.plan))

    def latest(self, sender: str, kind: Kind, before: Message | None = None) -> Message | None:
        """Return the last message of this kind, or the last one that was sent before another message."""
        end = len(self._messages) if before is None else self._messages.index(before)
        return next((m for m in reversed(self._messages[:end]) if (m.sender, m.kind) == (sender, kind)), None)

    def required(self, sender: str, kind: Kind) -> Message:
        """Return the last message of this kind; an error if there is none."""
        found = self.latest(sender, kind)
        if found is None:
            raise ValueError(f"holder {sender!r} has sent no {kind!r} yet.")
        return found

    def weights(self, holder: str, before: Message | None = None) -> FloatArray:
        """Return the latest weights of a holder's block in scaled columns; zeros before the first."""
        found = self.latest(holder, "weights", before)
        if found is None or found.weights is None:
            return np.zeros(block_size(self.plan, self.plan.holder(holder)))
        return found.weights


def block_size(plan: VerticalSchedule, holder: ReleasePlan) -> int:
    """The number of weights of a holder: its columns, and the intercept at the label holder."""
    return holder.public.columns + (holder.has_labels and plan.problem.fit_intercept)


def _checked(message: Message, holder: ReleasePlan, plan: VerticalSchedule) -> Message:
    """The message with read-only arrays; its shapes and numbers are checked, as other holders rely on them."""
    if message.kind == "scales":
        if not isinstance(message.values, ColumnScaling) or message.values.columns != holder.public.columns:
            raise ValueError(f"the scales of holder {holder.name!r} must be a scaling of its columns.")
        return message
    size = block_size(plan, holder)
    shape = {"moments": (size, size), "weights": (size,)}.get(message.kind, (plan.rows,))
    values = _read_only(message.array, shape, message)
    numbers = (message.deviation, message.clip, message.believed)
    if not all(0.0 <= number <= LARGEST for number in numbers) or not message.believed <= 1.0:
        raise ValueError(f"the {message.kind} of holder {holder.name!r} have an invalid deviation, clip or part.")
    weights = None if message.weights is None else _read_only(message.weights, (size,), message)
    return replace(message, values=values, weights=weights)


def _read_only(values: FloatArray, shape: tuple[int, ...], message: Message) -> FloatArray:
    copy = np.array(values, dtype=np.float64)
    if copy.shape != shape or not (np.abs(copy) <= LARGEST).all():  # false for NaN
        raise ValueError(f"the {message.kind} of {message.sender!r} must be finite and of shape {shape}.")
    copy.flags.writeable = False
    return copy
