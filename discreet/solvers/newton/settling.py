"""The result of a run: the mean of its iterates, shrunk towards the constant by what is known about their noise.

That is post-processing of released numbers and costs nothing: docs/guarantees/newton.md, step 4. With a log link, one
noisy mean over the rows then moves the intercept: docs/guarantees/counts.md.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid, takes_tensors
from discreet.privacy import mechanisms
from discreet.solvers._shared.clipping import typical_slope
from discreet.solvers.newton.calibration import calibrated
from discreet.solvers.newton.releases import CALIBRATION, GRADIENTS, LABELS
from discreet.solvers.newton.shrinkage import (
    SMALLEST_NOISE,
    Columns,
    Estimate,
    Link,
    NoisyWeights,
    averaged_noise,
    part_of_the_way,
    with_intercept,
)
from discreet.solvers.plan import LABEL_MARGIN, TARGET_MARGIN

FEW_STEPS = 5  # from the constant: they see the curvature of small scores alone
WEAK_NOISE = 0.05  # variance of the noise in scores of a log link, over the usual one, up to which they are believed
EXCESS = 8.0  # of a clipped gradient over its threshold, in usual gradients: counts have long tails
LEAST_LEFT = 0.01  # of the target's variance: nothing is explained completely, whatever the noise says

CALIBRATION_SHARE = 0.05  # of the budget, for the intercept of a log link
LEAST_ERROR, MOST_ERROR = 0.05, 0.5  # of an intercept that follows the released mean: more if scores vary more
LARGEST_MOVE = 3.0  # a factor of 20: what is further away is noise

if TYPE_CHECKING:
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock
    from discreet.problem.losses import Loss
    from discreet.solvers._shared.quadratic_model import QuadraticModel
    from discreet.solvers.newton.descent import Descent


def settled(descent: Descent, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean of the iterates by these weights, shrunk; with a log link the intercept is measured, if planned.

    Guarantee: costs the planned share of the mean curvature, if there is one.
    """
    w = shrunk(descent, w, weights)
    if not descent.plan.problem.loss.log_link or descent.split.shares[LABELS] == 0.0:
        return w
    variance = Columns(descent.metric.matrix, descent.mean_noise).variance_of(w[:-1])
    return calibrated_intercept(descent.scaled, w, variance, descent.split.part(LABELS), descent.run.rng)


def shrunk(descent: Descent, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean of the iterates shrunk output by output; weights with bounds are left as they are."""
    scaled = descent.scaled
    terms = scaled.penalty_terms
    free = np.isneginf(terms.low).all() and np.isposinf(terms.high).all()
    if not descent.plan.is_noisy or not free:
        return w
    origin = np.zeros_like(w) if scaled.origin is None else scaled.origin
    outputs = zip(np.atleast_2d(w), descent.models, constants(descent), np.atleast_2d(origin), strict=True)
    found = [settled_output(descent, *output, noise_of(descent, output[1], output[0], weights)) for output in outputs]
    return np.reshape(found, w.shape)


def settled_output(
    descent: Descent, w: FloatArray, model: QuadraticModel, constant: Estimate | None, origin: FloatArray,
    noise: FloatArray,
) -> FloatArray:  # fmt: skip
    """The weights of one output, shrunk towards a public start or, without one, towards the constant."""
    problem, labels = descent.scaled.problem, descent.scaled.problem.loss.classification
    usual = usual_margin(descent)
    if not problem.fit_intercept:
        return origin + NoisyWeights(w - origin, noise).expected(usual)
    columns = Columns(descent.metric.matrix, descent.mean_noise)
    few = labels and descent.scaled.outputs == 1 and descent.plan.settings.steps <= FEW_STEPS
    damped = few and constant is not None and descent.scaled.origin is None
    slopes = NoisyWeights(w[:-1] - origin[:-1], noise[:-1, :-1])

    def completed(short: FloatArray) -> FloatArray:
        short = origin[:-1] + short
        slopes = columns.undamped(short) if damped else short
        if problem.loss.log_link:
            slopes = within_belief(slopes, noise[:-1, :-1], columns, usual)
        return with_intercept(w, slopes, noise, columns, constant, link_of(problem.loss), clipping_bias(descent))

    if descent.split.shares[CALIBRATION] == 0.0:
        return completed(slopes.expected(usual))
    signal, nothing = slopes.expected_signal(usual)
    return calibrated(descent, completed(signal), columns, nothing)


def within_belief(slopes: FloatArray, noise: FloatArray, columns: Columns, usual: float) -> FloatArray:
    """Slopes of a log link, shortened until their scores vary no more than usual, unless the noise is weak.

    Predictions grow with the exponential of a score, and so does what noise does to the steps: a threshold that was
    learned too large leaves scores that no model has.
    """
    variance, doubt = columns.variance_of(slopes), float(np.trace(noise @ columns.moment[:-1, :-1]))
    most = usual**2 * max(1.0, WEAK_NOISE * usual**2 / max(doubt, SMALLEST_NOISE))
    return slopes * math.sqrt(min(1.0, most / max(variance, SMALLEST_NOISE)))


def clipping_bias(descent: Descent) -> float:
    """How far clipped gradients may have moved the intercept of a log link.

    Counts are skewed: nearly all of the gradients that are clipped pull the mean up. Their share is known in advance.
    """
    if not descent.scaled.problem.loss.log_link:
        return 0.0
    clipped = descent.clipped_rows / descent.scaled.rows if descent.plan.settings.learns_norm_bounds else 0.5
    return min(1.0, EXCESS * clipped * descent.scaled.scaling.target_scale)


def usual_margin(descent: Descent) -> float:
    """The standard deviation that scores usually have: those of a log link are logarithms, without a unit."""
    loss = descent.scaled.problem.loss
    if loss.classification:
        return LABEL_MARGIN
    return TARGET_MARGIN * (1.0 if loss.log_link else descent.scaled.scaling.target_scale)


def link_of(loss: Loss) -> Link:
    """How predictions follow from scores."""
    if loss.classification:
        return "logit"
    return "log" if loss.log_link else "identity"


def slope_variance(descent: Descent, w: FloatArray) -> float:
    """The mean square of the slopes: of labels that are even, or of what the weights leave of a target."""
    scaled = descent.scaled
    if scaled.problem.loss.classification:
        return 0.25
    whole = typical_slope(scaled.problem, scaled.scaling) ** 2
    if not scaled.problem.fit_intercept:
        return whole
    explained = Columns(descent.metric.matrix, descent.mean_noise).variance_of(w[:-1])
    return max(whole - explained, LEAST_LEFT * whole)


def noise_of(descent: Descent, model: QuadraticModel, w: FloatArray, weights: FloatArray) -> FloatArray:
    """The covariance of the noise in the mean of the iterates of one output, that of sampled rows included."""
    scaled, metric, curvature = descent.scaled, descent.metric, descent.curvature
    bound = float(np.trace(model.matrix) / np.trace(metric.unwhitened(curvature.matrix)))
    sensitivity = mechanisms.clipped_sum(descent.relation) * descent.clip
    parts = (descent.split.part(GRADIENTS + t) for t in range(weights.size))
    steps = np.array([part.deviation(sensitivity) for part in parts]) / scaled.rows
    variances = averaged_noise(curvature.progress, steps, weights)
    # The rows are a sample: their mean gradient varies, and the steps have followed it part of the way.
    followed = part_of_the_way(curvature.progress, weights) ** 2 * curvature.model / curvature.progress
    variances = (variances + slope_variance(descent, w) / scaled.rows * followed) / (bound * curvature.model) ** 2
    penalised = model.matrix + np.diag(scaled.penalty_terms.l2)
    shortened = np.linalg.solve(penalised, model.matrix)  # what the penalty leaves of every step
    back = shortened @ (metric.vectors / np.sqrt(metric.values)) @ curvature.vectors
    return np.asarray((back * variances) @ back.T)


def constants(descent: Descent) -> list[Estimate | None]:
    """The constant's score for each output; that of a target which was centred at its noisy mean is 0."""
    if descent.constant is not None:
        pairs = zip(descent.constant.value, descent.constant.deviation, strict=True)
        return [Estimate(float(value), float(deviation) ** 2) for value, deviation in pairs]
    if descent.scaled.problem.loss.classification:
        return [None] * descent.scaled.outputs
    return [Estimate(0.0, descent.scaled.scaling.target_noise**2)]


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

    Clipping moves the intercept of skewed targets far more than noise does. At the optimum of either deviance, with the
    target in units of its mean, the mean curvature is 1, and an intercept that is too low or too high by t makes it
    exp(-t) or exp(t) times as large.

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
