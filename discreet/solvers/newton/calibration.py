"""What noisy counts by label tell: the best constant score at the start, the scale of the scores at the end.

Gradients of many columns have the noise of all of them; counts have their own alone. Those of the labels say where a
model starts, and where it falls back to. Shrinkage that knows nothing but the noise of the gradients must doubt strong
signals as much as weak ones; the scores are one column, and a few counts of them by label tell whether they separate
the labels, and how sharply. Sensitivities and derivation: docs/guarantees/newton.md, step 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr, stdtr

from discreet._common.types import FloatArray
from discreet.data.rows import exact_weights, takes_tensors
from discreet.privacy import mechanisms
from discreet.problem.losses import ClassWeighted
from discreet.solvers._shared.label_counts import counted_labels, expected_share, label_shares

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation
    from discreet.problem.penalties import PenaltyTerms
    from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
    from discreet.solvers.newton.descent import Descent
    from discreet.solvers.newton.solver import Columns

# Where these come from: docs/defaults.md.
LABEL_SPREAD = 0.03  # of the noisy share of a label: a constant's log-loss is within 2 % for shares of a tenth and more
LEAST_SHARE = 0.01  # of the budget
# Of the bins, in deviations of the scores.
EDGES = np.array([-4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0])
BEYOND = 2.0  # how far beyond the outermost edges their bins are taken to lie
FREEDOM = 4.0  # scores are expected to follow Student's distribution of this degree: tails are longer than normal ones
SCALES = np.append(0.0, 2.0 ** np.arange(-2.0, 4.25, 0.25))  # by which scores may be multiplied
SPREAD = 0.7  # of the logarithm of the scale before the counts are seen: a factor of two
MISFIT = 0.01  # how far the share of a label in a bin may be from that of a logistic curve
LEVERAGE = 2.5  # the noise of the mean of score times label, over that of the share of a bin: see the derivation
ACCURATE = 0.04  # the noise of that mean that is wanted; it is 0.4 where scores decide everything
TOLERATED = 0.01  # of the expected log-loss and penalty, which another scale must save
LEAST_CHECK, MOST_CHECK = 0.01, 0.15  # of the budget
NOISIEST_CHECK = 0.45  # of the budget: counts that would need more are not made
LEAST_SIZE = 1e-3  # of the expected rows of a bin, below which their noisy number does not fall
SMALLEST_PRIOR = 1e-300  # a probability that is 0 has no logarithm
HALVINGS = 60  # of the interval in which an intercept lies


@dataclass(frozen=True, eq=False)
class ConstantScore:
    """The score of a constant for each output, and the standard deviation that the noise gives it.

    `total` is the number of rows, by weight: the public one, or else the sum of the noisy counts.
    """

    value: FloatArray
    deviation: FloatArray
    total: float


def wanted_share(public: Public, budget: Budget) -> float:
    """The share of the budget with which the noisy share of a label has the wanted spread; above 1: none will do."""
    counts = mechanisms.one_hot_counts(public.relation, 1)
    alone = mechanisms.additive(budget, 1.0).deviation(counts) / (math.sqrt(2.0) * public.rows)
    return max(LEAST_SHARE, (alone / LABEL_SPREAD) ** 2)


def learn_label_scores(
    scaled: BlockwiseProblem, mechanism: Gaussian, relation: Relation, rng: RandomGenerator
) -> ConstantScore:
    """The log-odds of two labels, or the centred logarithms of the shares of several.

    Guarantee: reads the labels only through one histogram of them, which costs one event of the mechanism.
    """
    sensitivity = mechanisms.one_hot_counts(relation, 1)
    counted = scaled.sum(counted_labels)
    noisy, deviation = mechanism.release(rng, counted[:-1], sensitivity), mechanism.deviation(sensitivity)
    shares, spreads, total = label_shares(noisy, deviation, scaled.rows, relation, weighted=counted[-1] != 0.0)
    expected = np.array([expected_share(*pair, noisy.size) for pair in zip(shares, spreads, strict=True)])
    expected /= expected.sum()
    loss = scaled.problem.loss
    # Class weights have the best constant of labels that occur so much more often.
    logs = np.log(expected) + (np.log(loss.weights) if isinstance(loss, ClassWeighted) else 0.0)
    if noisy.size == 2:
        odds = float(logs[1] - logs[0])
        return ConstantScore(np.array([odds]), spreads[1:] / (expected[1] * expected[0]), total)
    return ConstantScore(logs - logs.mean(), spreads / expected, total)


def check_share(public: Public, budget: Budget) -> float:
    """The share of the budget for counts of the scores by label; 0 where they would say too little."""
    counts = mechanisms.one_hot_counts(public.relation, 1)
    noise = LEVERAGE * mechanisms.additive(budget, 1.0).deviation(counts) / public.rows
    wanted = (noise / ACCURATE) ** 2
    return 0.0 if wanted > NOISIEST_CHECK else min(max(wanted, LEAST_CHECK), MOST_CHECK)


def with_best_scale(descent: Descent, part: Gaussian, w: FloatArray, columns: Columns, nothing: float) -> FloatArray:
    """The weights, intercept last, multiplied by the scale that noisy counts of their scores by label speak for.

    `nothing` is the probability that the columns tell nothing.

    Guarantee: reads the rows only through one histogram, which costs one event of `part`.
    """
    mean, deviation = columns.mean_of(w), math.sqrt(columns.variance_of(w[:-1]))
    if deviation == 0.0 or descent.constant is None:
        return w
    sensitivity = mechanisms.one_hot_counts(descent.relation, 1)
    counts = descent.scaled.sum(partial(score_counts, w=w, mean=mean, deviation=deviation))
    noisy = part.release(descent.run.rng, counts, sensitivity)
    total, constant = descent.constant.total, float(descent.constant.value[0])
    seen = ScoreCounts(noisy.reshape(-1, 2), part.deviation(sensitivity), total, mean + deviation * CENTRES)
    # The objective divides the losses by the public number of rows, and these counts by their own.
    penalties = penalties_of(descent.scaled.penalty_terms, w) * (descent.scaled.rows / total)
    scale, shift = seen.best_scale(nothing, constant, penalties)
    found = scale * w
    found[-1] += shift
    return found


@takes_tensors
def score_counts(block: ScaledBlock, w: FloatArray, mean: float, deviation: float) -> FloatArray:
    """The weighted number of rows for each bin of scores and each label: every row is in exactly one of them."""
    with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a single row
        scores = np.nan_to_num((block.margins(w) - mean) / deviation)
    place = np.zeros(scores.size, dtype=np.int8)
    for edge in EDGES:  # few of them: faster than a search for each score
        place += scores > edge
    cell = 2 * place + (block.y > 0.0)
    return np.bincount(cell, weights=exact_weights(block.weight), minlength=2 * CENTRES.size).astype(np.float64)


def penalties_of(terms: PenaltyTerms, w: FloatArray) -> FloatArray:
    """What the penalty is at each scale of the weights."""
    return np.asarray(SCALES * float(terms.l1 @ np.abs(w)) + 0.5 * SCALES**2 * float(terms.l2 @ w**2))


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Noisy numbers of rows by bin of scores (first axis) and label; `deviation` is that of the noise.

    `rows` is the number of all of them, by weight. Where rows have weights, or the public number is an estimate, it is
    another one than that: shares of a wrong number would pass for labels that the scores tell less about, or more.
    """

    counts: FloatArray
    deviation: float
    rows: float
    scores: FloatArray

    def best_scale(self, nothing: float, constant: float, penalties: FloatArray | float = 0.0) -> tuple[float, float]:
        """The scale of the scores, and what is added to them then, with the least expected log-loss and penalty.

        Scale 0, which has the probability `nothing` before the counts are seen, predicts the constant. Scores that are
        nearly as good as they are stay so: bins are coarse, and many steps have found the scale better than they can.
        """
        sizes, doubt = self._sizes()
        shifts = level_shifts(self.scores, sizes / self.rows)
        shifts[0] = constant
        scores = shifts[:, None] + SCALES[:, None] * self.scores
        curves = expit(scores)
        believed = self._posterior(curves, sizes, doubt, nothing)
        truth = self._likely_shares(believed @ curves, sizes)
        losses = truth * np.logaddexp(0.0, -scores) + (1.0 - truth) * np.logaddexp(0.0, scores)
        expected = losses @ (sizes / self.rows) + penalties
        best = int(np.argmin(expected))
        if expected[SCALES == 1.0][0] <= (1.0 + TOLERATED) * expected[best]:
            return 1.0, 0.0
        return float(SCALES[best]), float(shifts[best])

    @property
    def _noise(self) -> float:
        """The variance of the noise in the sum, and in the difference, of the two counts of a bin."""
        return 2.0 * self.deviation**2

    @property
    def _differences(self) -> FloatArray:
        """How many more rows of each bin have label 1 than label 0: its noise is independent of that of their sum."""
        return np.asarray(self.counts[:, 1] - self.counts[:, 0])

    def _sizes(self) -> tuple[FloatArray, FloatArray]:
        """How many rows each bin has, and the variance of that: expected ones as far as the noise hides the counted."""
        expected = self.rows * EXPECTED
        trust = expected**2 / (expected**2 + self._noise)
        found = np.maximum(expected + trust * (self.counts.sum(axis=1) - expected), LEAST_SIZE * expected)
        return found * (self.rows / found.sum()), trust * self._noise

    def _posterior(self, curves: FloatArray, sizes: FloatArray, doubt: FloatArray, nothing: float) -> FloatArray:
        """The probability of each scale, given the differences; `curves` are the shares of label 1 that it predicts."""
        ahead = 2.0 * curves - 1.0
        variance = self._noise + 4.0 * sizes * curves * (1.0 - curves) + doubt * ahead**2
        likelihood = -0.5 * ((self._differences - sizes * ahead) ** 2 / variance + np.log(variance)).sum(axis=1)
        prior = np.exp(-0.5 * (np.log(SCALES[1:]) / SPREAD) ** 2)
        prior = np.append(nothing, (1.0 - nothing) * prior / prior.sum())
        # Compared before they are exponentiated: the likeliest of all scales may have no prior.
        likely = likelihood + np.log(np.maximum(prior, SMALLEST_PRIOR))
        posterior = np.exp(likely - likely.max())
        return np.asarray(posterior / posterior.sum())

    def _likely_shares(self, curve: FloatArray, sizes: FloatArray) -> FloatArray:
        """The mean share of label 1 in each bin, given that on the curve and the noisy counted one.

        No curve is exact. Scores that are far off cost so much that a small doubt about them must count.
        """
        noise = self._noise / (4.0 * sizes**2) + 0.25 / sizes
        trust = MISFIT**2 / (MISFIT**2 + noise)
        counted = 0.5 + self._differences / (2.0 * sizes)
        return mean_within_one(curve + trust * (counted - curve), np.sqrt(trust * noise))


def level_shifts(scores: FloatArray, masses: FloatArray) -> FloatArray:
    """What is to be added to the scores times each scale, so that the mean prediction stays what it is at scale 1."""
    share = float(masses @ expit(scores))
    scaled = SCALES[:, None] * scores
    high = np.abs(scaled).max() + np.abs(scores).max() + 1.0
    low, high = np.full(SCALES.size, -high), np.full(SCALES.size, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = expit(middle[:, None] + scaled) @ masses < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def mean_within_one(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """The mean of normal numbers, given that they lie between 0 and 1."""
    low, high = -mean / deviation, (1.0 - mean) / deviation
    # In the tail that keeps digits.
    inside = np.where(low > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    densities = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.clip(mean + deviation * densities / np.maximum(inside, 1e-12), 0.0, 1.0))


CENTRES = np.concatenate([[EDGES[0] - BEYOND], 0.5 * (EDGES[1:] + EDGES[:-1]), [EDGES[-1] + BEYOND]])
EXPECTED = np.diff(np.concatenate([[0.0], stdtr(FREEDOM, EDGES), [1.0]]))  # part of the rows in each bin
