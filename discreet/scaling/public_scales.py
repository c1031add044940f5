"""What public inputs give: ranges and scales of a public table, and whether a public start is better than none.

The table costs nothing, as no private row is read. The start is checked by one noisy number, so that misleading
coefficients do little harm. Sensitivity, proof and the harm that is left: docs/guarantees/public-inputs.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid, takes_tensors
from discreet.data.validation import LARGEST_BOUND, SMALLEST_BOUND, column_ends
from discreet.privacy import mechanisms
from discreet.problem.losses.scalar import every_label

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicTable
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Sensitivity
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock

# Private values are clipped at this many half-widths of the bulk of the public ones: docs/defaults.md.
PUBLIC_MARGIN = 2.0
TAIL = 0.01  # of the public rows at either end of a column, which do not count as its bulk
UNKNOWN_RADIUS = 1.0  # of a column that is constant in the public table, which most often marks a rare category
START_SHARE = 0.05  # of the budget: docs/defaults.md
# A row's loss at the start may be many usual losses; one that the start explains gains less than one.
MOST_LOST, MOST_GAINED = 3.0, 1.0
NOISIEST_CHECK = 0.5  # standard deviation of the noise, in units of the loss, beyond which a check tells too little


def tells_target(table: PublicTable | None) -> bool:
    """Whether a public table shows how the target of a regression spreads."""
    return table is not None and table.y is not None and bool(np.ptp(table.y) > 0.0)


def with_public_scales(
    scaling: ColumnScaling, public: Public, centred: bool, target: bool, least_spread: float = 0.0,
    target_centred: bool = False,
) -> ColumnScaling:  # fmt: skip
    """The scaling with ranges, centres and widths of the public table, inside the declared bounds.

    No width is below `least_spread` radii of the bulk of its column.
    """
    table = public.table
    assert table is not None
    low, high = bulk(table.X)
    mean, spread = _moments(table.X, centred, table.rows)
    spread = np.maximum(spread, 0.5 * least_spread * (high - low))
    outer_low, outer_high = _outer(low, high)
    if public.low is not None and public.high is not None:
        outer_low, outer_high = (np.clip(end, public.low, public.high) for end in (outer_low, outer_high))
    if public.sparse:  # the entries that are not stored are 0
        outer_low, outer_high = np.minimum(outer_low, 0.0), np.maximum(outer_high, 0.0)
    known = outer_high > outer_low
    lost = target and not tells_target(table) and scaling.frozen.all()  # of a lost target columns can tell nothing
    scaling = replace(
        scaling,
        low=outer_low,
        high=outer_high,
        shift=np.clip(mean, outer_low, outer_high) if centred else mean,
        scale=np.where(known, spread, 1.0),
        second_moment=np.ones(public.columns),
        frozen=~known | lost,
    )
    return (
        _with_public_target(scaling, public, centred or target_centred) if target and tells_target(table) else scaling
    )


def _with_public_target(scaling: ColumnScaling, public: Public, centred: bool) -> ColumnScaling:
    assert public.table is not None
    y = np.clip(np.asarray(public.table.y, dtype=np.float64), -LARGEST_BOUND, LARGEST_BOUND)[:, None]
    (low,), (high,) = _outer(*bulk(y))
    if public.target_low is not None and public.target_high is not None:
        low, high = (min(max(end, public.target_low), public.target_high) for end in (low, high))
    (mean,), (spread,) = _moments(y, centred, public.table.rows)
    # The private mean may well be a deviation away: gradients decide.
    return scaling.with_target(low, high, mean, spread, noise=spread)


def bulk(X: Any) -> tuple[FloatArray, FloatArray]:
    """The ends of the columns without their tails, or of all of a column where nothing else is left.

    The latter is so for rare categories. A constant column gets some room.
    """
    low, high = column_ends(X)
    if not sp.issparse(X):
        inner_low, inner_high = np.quantile(np.clip(X, low, high), [TAIL, 1.0 - TAIL], axis=0)
        wide = inner_high - inner_low >= SMALLEST_BOUND
        low, high = np.where(wide, inner_low, low), np.where(wide, inner_high, high)
    constant = high - low < SMALLEST_BOUND
    return np.where(constant, low - UNKNOWN_RADIUS, low), np.where(constant, high + UNKNOWN_RADIUS, high)


def _outer(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where private values are clipped: far outside the public ones, which may miss or be shifted from them."""
    more = 0.5 * (PUBLIC_MARGIN - 1.0) * (high - low)
    return np.maximum(low - more, -LARGEST_BOUND), np.minimum(high + more, LARGEST_BOUND)


def _moments(X: Any, centred: bool, rows: int) -> tuple[FloatArray, FloatArray]:
    """Means (0 unless centred) and spreads; that of a constant column is so large that steps stay safe."""
    low, high = column_ends(X)
    unit = np.maximum(np.maximum(np.abs(low), np.abs(high)), SMALLEST_BOUND)  # squares must not overflow
    if sp.issparse(X):
        scaled = X @ sp.diags_array(1.0 / unit)
        mean = np.asarray(scaled.mean(axis=0), dtype=np.float64).ravel()
        variance = np.asarray(scaled.multiply(scaled).mean(axis=0), dtype=np.float64).ravel() - mean**2
    else:
        scaled = np.clip(X, low, high) / unit
        mean, variance = scaled.mean(axis=0), scaled.var(axis=0)
    # Two different values among so many have at least this spread, whatever rounding says.
    spread = np.maximum(unit * np.sqrt(np.maximum(variance, 0.0)), 0.5 * (high - low) / np.sqrt(rows))
    unknown = high - low < SMALLEST_BOUND
    if not centred:
        spread, unknown, mean = np.hypot(spread, unit * mean), unit <= SMALLEST_BOUND, np.zeros_like(mean)
    return mean * unit, np.where(unknown, UNKNOWN_RADIUS, spread)


def plan_start_check(public: Public, budget: Budget) -> mechanisms.Additive | None:
    """The noise of the check; None where rows are too few for it: the start is then trusted."""
    if budget.is_infinite:
        return None
    mechanism = mechanisms.additive(budget, START_SHARE)
    noise = mechanism.deviation(check_sensitivity(public.relation, public.rounded_rows)) / public.rows
    return mechanism if noise <= NOISIEST_CHECK else None


def check_sensitivity(relation: Relation, rows: int = 1) -> Sensitivity:
    """How far the sum of the gains can move, in usual losses, if so many rows may change, their weights being one's."""
    return mechanisms.bounded_between(relation, -MOST_LOST, MOST_GAINED).rounded(rows * MOST_LOST * TERM_STEP, 1)


def start_is_better(
    scaled: BlockwiseProblem, mechanism: mechanisms.Additive, relation: Relation, rng: RandomGenerator, rows: int = 1
) -> bool:
    """Whether the loss at the public start is lower than at the point nearest to zero, by a noisy sum over the rows.

    Guarantee: reads the rows only through one sum of bounded numbers, which costs one event of the mechanism.
    """
    return bool(mechanism.release(rng, total_gain(scaled), check_sensitivity(relation, rows))[0] > 0.0)


def total_gain(scaled: BlockwiseProblem) -> FloatArray:
    """The sum that is released, before its noise. Not private."""
    points = scaled.nearest_to_zero(), scaled.start()
    return scaled.sum(partial(_gains, points=points, unit=_usual_loss(scaled)))


@takes_tensors
def _gains(block: ScaledBlock, points: tuple[FloatArray, FloatArray], unit: float) -> FloatArray:
    """The weighted sum of how much lower the rows' losses are at the second point, in usual losses, within limits."""
    loss = block.loss
    with np.errstate(over="ignore", invalid="ignore"):
        at_zero, at_start = (loss.value(block.margins(w), block.y) for w in points)
        gains = (at_zero - at_start) / unit
    bounded = np.clip(np.nan_to_num(gains, nan=-MOST_LOST), -MOST_LOST, MOST_GAINED) / MOST_LOST
    if block.weight is not None:
        bounded *= block.weight
    return np.array([MOST_LOST * on_term_grid(bounded).sum()])


def _usual_loss(scaled: BlockwiseProblem) -> float:
    """The loss of a label at 0; of a real target, that of a residual of one standard deviation."""
    loss = scaled.problem.loss
    if loss.log_link:  # their losses rise from that of the mean about as squares do
        return 0.5 * scaled.scaling.target_scale**2
    if not loss.classification:
        return float(loss.value(np.zeros(1), np.array([scaled.scaling.target_scale]))[0])
    return float(loss.value(*every_label(loss)).max())
