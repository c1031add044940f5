"""Whether a public start is better than none: one noisy number, so that misleading coefficients do little harm.

Sensitivity, proof and the harm that is left: docs/guarantees/public-inputs.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid, takes_tensors
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Sensitivity
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation
    from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock

START_SHARE = 0.05  # of the budget: docs/defaults.md
# A row's loss at the start may be many usual losses; one that the start explains gains less than one.
MOST_LOST, MOST_GAINED = 3.0, 1.0
NOISIEST_CHECK = 0.5  # standard deviation of the noise, in units of the loss, beyond which a check tells too little


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
    outputs = loss.outputs
    labels = np.array([-1.0, 1.0]) if outputs == 1 else np.arange(outputs, dtype=np.float64)
    margins = np.zeros(labels.size) if outputs == 1 else np.zeros((labels.size, outputs))
    return float(loss.value(margins, labels).max())
