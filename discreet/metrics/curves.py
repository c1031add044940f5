"""ROC curve, its area, and calibration of a classifier with two classes, from noisy counts of labels and scores.

Section 3 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from discreet._common.types import FloatArray
from discreet.metrics.intervals import Counts, Limits, Test, quantile
from discreet.metrics.released_sums import NoisySums


@dataclass(frozen=True)
class RocPoint:
    """Rates of the rows of each label whose score exceeds a threshold.

    Attributes
    ----------
    threshold : float
        Of `decision_function`.
    false_positive_rate, true_positive_rate : Limits
        Of the rows of the first and of the second label.

    Examples
    --------
    See `evaluate`.
    """

    threshold: float
    false_positive_rate: Limits
    true_positive_rate: Limits


@dataclass(frozen=True)
class CalibrationBin:
    """The share of the second label among rows whose predicted probability lies between two ends.

    Attributes
    ----------
    low, high : float
        The ends of the predicted probability of the second label.
    rows : float
        Number of rows in the bin, with noise.
    observed : Limits
        The share of the second label.

    Examples
    --------
    See `evaluate`.
    """

    low: float
    high: float
    rows: float
    observed: Limits

    @property
    def contradicted(self) -> bool:
        """Whether no probability of the bin agrees with the share observed."""
        return self.observed.low > self.high or self.observed.high < self.low


def roc_points(sums: NoisySums, edges: tuple[float, ...], failure: float) -> tuple[RocPoint, ...]:
    """The ROC curve at the edges of the bins; all its points hold together."""
    counts, bins = Counts.of(sums, "scores"), len(edges) + 1
    negative, positive = (_bins_of(bins, label, np.ones(bins)) for label in (0, 1))
    each = failure / (2 * len(edges))
    points = []
    for place, edge in enumerate(edges):
        above = (np.arange(bins) > place).astype(np.float64)
        rates = [counts.mean(_bins_of(bins, k, above), own, each) for k, own in enumerate((negative, positive))]
        points.append(RocPoint(edge, *rates))
    return tuple(points)


def calibration_bins(sums: NoisySums, edges: tuple[float, ...], failure: float) -> tuple[CalibrationBin, ...]:
    """The calibration curve; all its bins hold together."""
    counts, bins = Counts.of(sums, "scores"), len(edges) + 1
    ends = [0.0, *(float(expit(edge)) for edge in edges), 1.0]
    found = []
    for place in range(bins):
        one = np.eye(bins)[place]
        base = _bins_of(bins, 0, one) + _bins_of(bins, 1, one)
        observed = counts.mean(_bins_of(bins, 1, one), base, failure / bins)
        found.append(CalibrationBin(ends[place], ends[place + 1], float(counts.values @ base), observed))
    return tuple(found)


def area_under_curve(sums: NoisySums, edges: tuple[float, ...], failure: float) -> Limits:
    """The area under the ROC curve: the probability that a positive row has a larger score than a negative one.

    Within a bin the scores are not known. The estimate counts such pairs half; the limits count them as wrong and as
    right, so that they hold for the scores themselves.
    """
    bins, deviations = len(edges) + 1, quantile(failure, sums.laplace)
    negative, positive = sums.of("scores")[:bins], sums.of("scores")[bins : 2 * bins]
    larger = np.tri(bins, k=-1)  # positive in a later bin than negative
    low = _pairs(larger, positive, negative, sums).limits(deviations, 0.0, 1.0)[0]
    high = _pairs(larger + np.eye(bins), positive, negative, sums).limits(deviations, 0.0, 1.0)[1]
    pairs = positive.sum() * negative.sum()
    if not (positive.sum() > 0.0 and negative.sum() > 0.0):
        return Limits(math.nan, 0.0, 1.0, math.inf)
    value = float(positive @ (larger + 0.5 * np.eye(bins)) @ negative / pairs)
    spread = _noise(larger + 0.5 * np.eye(bins) - value, positive, negative, sums.deviation("scores"))
    return Limits(float(np.clip(value, low, high)), low, high, math.sqrt(spread) / float(pairs))


def _pairs(order: FloatArray, positive: FloatArray, negative: FloatArray, sums: NoisySums) -> Test:
    """The test of the share of pairs, one positive and one negative, that `order` counts."""
    deviation = sums.deviation("scores")
    rows = np.maximum(positive, 0.0), np.maximum(negative, 0.0)

    def variance(u: float) -> float:
        others = (order - u) @ negative, (order - u).T @ positive
        drawn = float(rows[0] @ np.square(others[0]) + rows[1] @ np.square(others[1]))
        return drawn + _noise(order - u, positive, negative, deviation)

    return Test(
        statistic=lambda u: float(positive @ (order - u) @ negative),
        variance=variance,
        largest=lambda u: float(
            max(np.abs((order - u) @ negative).max(), np.abs((order - u).T @ positive).max(), deviation)
        ),
    )


def _noise(matrix: FloatArray, positive: FloatArray, negative: FloatArray, deviation: float) -> float:
    """Variance of the noise in positive' matrix negative: of one factor, of the other, and of both."""
    linear = np.square(matrix @ negative).sum() + np.square(matrix.T @ positive).sum()
    return float(deviation**2 * linear + deviation**4 * np.square(matrix).sum())


def _bins_of(bins: int, label: int, chosen: FloatArray) -> FloatArray:
    """The chosen score bins of a label among all bins of the release."""
    where = np.zeros((2, bins))
    where[label] = chosen
    return np.append(where.ravel(), 0.0)


def default_edges(model: Any) -> tuple[float, ...]:
    """Edges of the score bins: log-odds of probabilities from 0.02 to 0.98, or margins from -2 to 2."""
    end = 4.0 if hasattr(model, "predict_proba") else 2.0
    return tuple(np.linspace(-end, end, 17).tolist())
