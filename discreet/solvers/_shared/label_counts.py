"""Noisy counts of the labels, and what they tell of their shares: the best constant, where models of labels start.

Sensitivities and derivation: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import exact_weights, takes_tensors
from discreet.privacy.relation import Relation
from discreet.problem.losses import ClassWeighted, Logistic, Multinomial

if TYPE_CHECKING:
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import ScaledBlock

GRID = 2_000  # shares over which a posterior is summed: docs/defaults.md


def counts_labels(problem: Problem) -> bool:
    """Whether shares of labels tell the best constant."""
    loss = problem.loss.loss if isinstance(problem.loss, ClassWeighted) else problem.loss
    weighted_out = isinstance(problem.loss, ClassWeighted) and min(problem.loss.weights) == 0.0
    return isinstance(loss, (Logistic, Multinomial)) and problem.fit_intercept and not weighted_out


def label_shares(
    noisy: FloatArray, deviation: float, rows: int, relation: Relation, weighted: bool
) -> tuple[FloatArray, FloatArray, float]:
    """The shares of the labels, as noisy counts have them, their standard deviations, and the number of rows by weight.

    That is the public one, or else the sum of the noisy counts.
    """
    if relation is Relation.REPLACE and not weighted:  # neighbours have weights both or neither
        return *shares_of_all(noisy, deviation, rows), float(rows)
    total = noisy_total(noisy, deviation, math.inf if relation is Relation.ADD_REMOVE else rows)
    return *noisy_shares(noisy, deviation, total), total


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
def counted_labels(block: ScaledBlock) -> FloatArray:
    """The counts of the labels, and whether rows have weights."""
    return np.append(label_counts(block), float(block.weight is not None))


def label_counts(block: ScaledBlock) -> FloatArray:
    """The weighted number of rows of each label: every row is in exactly one bin."""
    outputs = block.loss.outputs
    label = (block.y > 0.0).astype(np.int64) if outputs == 1 else block.y.astype(np.int64)
    return np.bincount(label, weights=exact_weights(block.weight), minlength=max(outputs, 2)).astype(np.float64)
