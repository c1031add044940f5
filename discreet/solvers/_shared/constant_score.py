"""The best constant score of a table, released with noise: where a model starts, and where it falls back to.

Every entry of a gradient has the noise that all columns together need; counts of labels have their own alone.
Sensitivity and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import exact_weights, takes_tensors
from discreet.privacy import mechanisms
from discreet.privacy.relation import Relation
from discreet.problem.losses import ClassWeighted, Logistic, Multinomial

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock
    from discreet.problem.problem import Problem

# Where these come from: docs/defaults.md.
SPREAD = 0.03  # of the noisy share of a label: a constant's log-loss is then within 2 % for shares of a tenth and more
LEAST_SHARE = 0.01  # of the budget
GRID = 2_000  # shares over which the posterior mean is summed


@dataclass(frozen=True, eq=False)
class ConstantScore:
    """The score of a constant for each output, and the standard deviation that the noise gives it.

    `total` is the number of rows, by weight: the public one, or else the sum of the noisy counts.
    """

    value: FloatArray
    deviation: FloatArray
    total: float


def counts_labels(problem: Problem) -> bool:
    """Whether shares of labels tell the best constant."""
    loss = problem.loss.loss if isinstance(problem.loss, ClassWeighted) else problem.loss
    weighted_out = isinstance(problem.loss, ClassWeighted) and min(problem.loss.weights) == 0.0
    return isinstance(loss, (Logistic, Multinomial)) and problem.fit_intercept and not weighted_out


def wanted_share(public: Public, budget: Budget) -> float:
    """The share of the budget with which the noisy share of a label has the wanted spread; above 1: none will do."""
    counts = mechanisms.one_hot_counts(public.relation, 1)
    alone = mechanisms.additive(budget, 1.0).deviation(counts) / (math.sqrt(2.0) * public.rows)
    return max(LEAST_SHARE, (alone / SPREAD) ** 2)


def learn_label_scores(
    scaled: BlockwiseProblem, mechanism: Gaussian, relation: Relation, rng: RandomGenerator
) -> ConstantScore:
    """The log-odds of two labels, or the centred logarithms of the shares of several.

    Guarantee: reads the labels only through one histogram of them, which costs one event of the mechanism.
    """
    sensitivity = mechanisms.one_hot_counts(relation, 1)
    counted = scaled.sum(_counted)
    noisy, deviation = mechanism.release(rng, counted[:-1], sensitivity), mechanism.deviation(sensitivity)
    if relation is Relation.REPLACE and counted[-1] == 0.0:  # neighbours have weights both or neither
        total = float(scaled.rows)
        shares, spreads = shares_of_all(noisy, deviation, scaled.rows)
    else:
        total = noisy_total(noisy, deviation, math.inf if relation is Relation.ADD_REMOVE else scaled.rows)
        shares, spreads = noisy_shares(noisy, deviation, total)
    expected = np.array([expected_share(*pair, noisy.size) for pair in zip(shares, spreads, strict=True)])
    expected /= expected.sum()
    loss = scaled.problem.loss
    # Class weights have the best constant of labels that occur so much more often.
    logs = np.log(expected) + (np.log(loss.weights) if isinstance(loss, ClassWeighted) else 0.0)
    if noisy.size == 2:
        odds = float(logs[1] - logs[0])
        return ConstantScore(np.array([odds]), spreads[1:] / (expected[1] * expected[0]), total)
    return ConstantScore(logs - logs.mean(), spreads / expected, total)


def shares_of_all(counts: FloatArray, deviation: float, rows: int) -> tuple[FloatArray, FloatArray]:
    """The shares of noisy counts that sum to the number of rows but for their noise, and their deviations."""
    excess = (float(counts.sum()) - rows) / counts.size
    spread = deviation / rows * math.sqrt(1.0 - 1.0 / counts.size)
    return (counts - excess) / rows, np.full(counts.size, spread)


def noisy_total(counts: FloatArray, deviation: float, most: float) -> float:
    """What noisy counts sum to; without noise it is `most` at most.

    Weights may make the sum smaller. Whether there are any must not decide: a row that is left out is one of weight 0.
    """
    return min(max(float(counts.sum()), deviation), most)


def noisy_shares(counts: FloatArray, deviation: float, total: float) -> tuple[FloatArray, FloatArray]:
    """The shares of noisy counts in a noisy total, and their standard deviations."""
    inside = np.clip(counts / total, 0.0, 1.0)
    return counts / total, deviation / total * np.sqrt((1.0 - inside) ** 2 + (counts.size - 1) * inside**2)


def expected_share(noisy: float, spread: float, labels: int = 2) -> float:
    """The mean of a share given its noisy value, if all shares of so many labels were equally likely before."""
    grid = (np.arange(GRID) + 0.5) / GRID
    exponent = -0.5 * ((grid - noisy) / spread) ** 2 + (labels - 2) * np.log1p(-grid)
    weights = np.exp(exponent - exponent.max())
    return float((grid * weights).sum() / weights.sum())


@takes_tensors
def _counted(block: ScaledBlock) -> FloatArray:
    """The counts of the labels, and whether rows have weights."""
    return np.append(label_counts(block), float(block.weight is not None))


def label_counts(block: ScaledBlock) -> FloatArray:
    """The weighted number of rows of each label: every row is in exactly one bin."""
    outputs = block.loss.outputs
    label = (block.y > 0.0).astype(np.int64) if outputs == 1 else block.y.astype(np.int64)
    return np.bincount(label, weights=exact_weights(block.weight), minlength=max(outputs, 2)).astype(np.float64)
