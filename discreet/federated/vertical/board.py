"""The public board: all messages of all holders, in the planned order. Whoever wants may read all of it.

From it alone are computed: clips, the linear part of the slopes, and the new weights of a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.federated.vertical.plan import SLOPE_CLIP, Kind, Turn, VerticalSchedule, has_linear_slopes
from discreet.privacy.release import ReleasePlan
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.penalties import PenaltyTerms
from discreet.scaling.second_moment import noise_edge
from discreet.solvers._shared.minimisers import QuadraticModel

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


NOISE_CLIP = 2.0  # per-person numbers are clipped at so many deviations of their noise beyond their own clip
MARGIN_CLIP = 2.0  # margins are clipped at so many of their standard deviations
CLEAR = 1.0  # standard deviations of the noise that are left out of what a gradient is taken to say
ROUNDING = 1e-14  # of the trace of an exact second moment: lifts eigenvalues that are 0, as those of equal columns


@dataclass(frozen=True, eq=False)
class PerPerson:
    """One number per person, made of messages on the board, with the variance of its noise and a bound of the rest."""

    values: FloatArray
    variance: float
    bound: float

    @property
    def clip(self) -> float:
        """Where the numbers are clipped before they enter a sum."""
        return self.bound + NOISE_CLIP * math.sqrt(self.variance)


def margins_of_others(board: Board, but: str, before: Message | None = None) -> list[Message]:
    """The latest margins of all holders without labels but one."""
    others = [holder.name for holder in board.plan.holders if not holder.has_labels and holder.name != but]
    return [message for name in others if (message := board.latest(name, "margins", before)) is not None]


def sum_of_margins(board: Board, but: str) -> PerPerson:
    """The sum of these margins; all 0 before the first sweep."""
    messages = margins_of_others(board, but)
    values = sum((message.array for message in messages), np.zeros(board.plan.rows))
    return PerPerson(values, sum(m.deviation**2 for m in messages), sum(m.clip for m in messages))


def believed_part(board: Board, margins: PerPerson) -> float:
    """The part of the others' margins that goes through the slope of the loss; the rest enters linearly.

    It is the variance of the margins over that variance and the noise's: 1 without noise. Where slopes are linear
    anyway it does not matter, and 0 lets the label holder send its own part only.
    """
    if has_linear_slopes(board.plan.problem):
        return 0.0
    if margins.variance == 0.0:
        return 1.0
    spread = (margins.bound / MARGIN_CLIP) ** 2
    return spread / (spread + margins.variance)


def slope_clip(board: Board) -> float:
    """Where slopes are clipped: at the bound of the loss, or at a multiple of the target's released scale."""
    loss, labels = board.plan.problem.loss, board.plan.holders[-1]
    if not labels.is_noisy:
        return math.inf
    if loss.classification and math.isfinite(loss.lipschitz):
        return loss.lipschitz
    return min(loss.lipschitz, SLOPE_CLIP * board.required(labels.name, "scales").scaling.target_scale)


def margin_clip(board: Board, holder: ReleasePlan) -> float:
    """Where a holder's margins are clipped: at a multiple of their standard deviation, read from the board."""
    if not holder.is_noisy:
        return math.inf
    w, moments = board.weights(holder.name), board.required(holder.name, "moments").array
    return MARGIN_CLIP * math.sqrt(max(0.0, float(w @ moments @ w)))


def slopes_for(board: Board, holder: str) -> PerPerson:
    """The slopes at the margins of all other holders, for a holder without labels, up to its own part.

    The label holder's latest slopes, and what the others' margins have changed since, linearly.
    """
    plan = board.plan
    slopes = board.required(plan.holders[-1].name, "slopes")
    curvature, part = plan.problem.loss.smoothness, slopes.believed
    values, variance, bound = slopes.array.copy(), slopes.deviation**2, slopes.clip
    then = {message.sender: message for message in margins_of_others(board, holder, before=slopes)}
    for message in margins_of_others(board, holder):
        old = then.get(message.sender)
        same = old is message
        values += curvature * (message.array - (part * old.array if old is not None else 0.0))
        old_variance = 0.0 if old is None or same else (part * old.deviation) ** 2
        variance += curvature**2 * (((1.0 - part * same) * message.deviation) ** 2 + old_variance)
        bound += curvature * message.clip
    return PerPerson(values, variance, bound)


def new_weights(
    board: Board, holder: ReleasePlan, gradient: FloatArray, deviation: float, centre: FloatArray, variance: float
) -> FloatArray:
    """The weights of a block that minimise its quadratic model, with a ridge against the noise.

    Parameters
    ----------
    board : Board
    holder : ReleasePlan
    gradient : array
        The mean gradient of the block, with noise.
    deviation : float
        Standard deviation of that noise.
    centre : array
        The weights at which the gradient was taken.
    variance : float
        Of the noise in the slopes of which the gradient was made.
    """
    plan = board.plan
    moments = board.required(holder.name, "moments")
    lift = _lift(moments)
    matrix = plan.problem.loss.smoothness * (moments.array + lift * np.eye(centre.size))
    ridge = noise_ridge(matrix, gradient, deviation, plan.problem.loss.smoothness, variance / plan.rows)
    if ridge == math.inf:
        return centre
    ridged = matrix + ridge * np.eye(centre.size)
    model = QuadraticModel(ridged, penalty_of(board, holder))
    return model.minimise(np.ascontiguousarray(ridged @ centre - gradient), centre)


def noise_ridge(matrix: FloatArray, gradient: FloatArray, deviation: float, curvature: float, variance: float) -> float:
    """The ridge around the centre that makes the minimiser a posterior mean; infinite if all may be noise.

    Model: gradient = -matrix d + e, covariance of e = variance (matrix / curvature) + deviation^2 I, and the entries of
    d, how far the weights are from the centre, have one variance. It is estimated from |gradient|^2, less the mean of
    |e|^2 and CLEAR of its standard deviations (exact for equal eigenvalues).
    """
    noise = variance * float(np.trace(matrix)) / curvature + deviation**2 * gradient.size
    if noise == 0.0:
        return 0.0
    excess = float(gradient @ gradient) - noise * (1.0 + CLEAR * math.sqrt(2.0 / gradient.size))
    spread = excess / float(np.sum(matrix**2))
    mean_eigenvalue = float(np.trace(matrix)) / gradient.size
    return (variance / curvature + deviation**2 / mean_eigenvalue) / spread if spread > 0.0 else math.inf


def penalty_of(board: Board, holder: ReleasePlan) -> PenaltyTerms:
    """The penalty of a holder's weights in scaled columns; none on the intercept."""
    plan = board.plan
    own = slice(holder.first, holder.first + holder.public.columns)
    whole = plan.problem.penalty_terms(sum(part.public.columns for part in plan.holders))
    scaling = board.required(holder.name, "scales").scaling
    inner = scaling.penalty_terms(PenaltyTerms(*(np.asarray(term)[own] for term in whole)))
    extra = block_size(plan, holder) - holder.public.columns
    ends = (0.0, 0.0, -np.inf, np.inf)
    return PenaltyTerms(*(np.append(term, np.full(extra, end)) for term, end in zip(inner, ends, strict=True)))


def _lift(moments: Message) -> float:
    """What lifts the smallest eigenvalue of noisy moments to the size of their noise."""
    if moments.deviation == 0.0:
        return ROUNDING * float(np.trace(moments.array)) or 1.0  # rows that are all 0 have no gradient either
    edge = noise_edge(moments.array.shape[0], moments.deviation)
    return max(0.0, edge - float(np.linalg.eigvalsh(moments.array)[0]))


def centre_of(plan: VerticalSchedule, board: Board, holder: ReleasePlan) -> FloatArray:
    """The weights at which the slopes on the board were taken, as far as they went through the loss."""
    slopes = board.required(plan.holders[-1].name, "slopes")
    return slopes.believed * board.weights(holder.name, before=slopes)
