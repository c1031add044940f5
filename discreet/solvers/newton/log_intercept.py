"""The intercept of a log link at the end of a run, from one noisy mean over the rows.

Clipping moves the intercept of skewed targets far more than noise does. At the optimum of either deviance, with the
target in units of its mean, the mean curvature is 1, and an intercept that is too low or too high by t makes it exp(-t)
or exp(t) times as large. Sensitivity and proof: docs/guarantees/counts.md.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid, takes_tensors
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock

# Where these come from: docs/defaults.md.
CALIBRATION_SHARE = 0.05  # of the budget
LEAST_ERROR, MOST_ERROR = 0.05, 0.5  # of an intercept that follows the released mean: more if scores vary more
LARGEST_MOVE = 3.0  # a factor of 20: what is further away is noise


def mean_curvature(
    scaled: BlockwiseProblem, w: FloatArray, mechanism: Gaussian, rng: RandomGenerator
) -> tuple[float, float] | None:
    """The mean over the rows of the curvature of their loss, and the standard deviation of its noise.

    None with weights, whose sum is not the public number of rows. It is planned only where all rows are there
    (`replace`), and there neighbours have weights both or neither.

    Guarantee: reads the rows only through one sum of numbers between 0 and 1, which costs one event of the mechanism.
    """
    bound, sensitivity = scaled.problem.loss.smoothness, mechanisms.bounded_fractions(1).rounded(TERM_STEP, 1)
    total, weighted = scaled.sum(partial(_curvature_sum, w=w, bound=bound))
    if weighted:
        return None
    released = float(mechanism.release(rng, np.array([total]), sensitivity)[0])
    return bound * released / scaled.rows, bound * mechanism.deviation(sensitivity) / scaled.rows


@takes_tensors
def _curvature_sum(block: ScaledBlock, w: FloatArray, bound: float) -> FloatArray:
    """The sum of the rows' curvatures, in units of their bound, and whether rows have weights."""
    part = np.clip(np.nan_to_num(block.loss.curvature(block.margins(w), block.y)) / bound, 0.0, 1.0)
    return np.array([on_term_grid(part).sum(), float(block.weight is not None)])


def calibrated_intercept(
    scaled: BlockwiseProblem, w: FloatArray, variance: float, mechanism: Gaussian, rng: RandomGenerator
) -> FloatArray:
    """The weights with the intercept, the last of them, moved to where the mean curvature is 1, as far as it is told.

    `variance` is that of the scores: so wrong may the rule be by which the intercept follows from the released mean.

    Guarantee: costs one event of the mechanism; everything else is post-processing.
    """
    measured = mean_curvature(scaled, w, mechanism, rng)
    if measured is None:
        return w
    found, noise = measured
    level = max(found, noise)
    doubt = (noise / level) ** 2 + min(scaled.scaling.target_noise, 1.0) ** 2
    error = min(LEAST_ERROR + variance, MOST_ERROR)
    believed = error**2 / (error**2 + doubt)
    # The curvature of counts grows with the intercept, that of amounts falls.
    missing = -math.log(level) if scaled.problem.loss.target_power else math.log(level)
    moved = w.copy()
    moved[-1] += float(np.clip(believed * missing, -LARGEST_MOVE, LARGEST_MOVE))
    return moved
