"""The area under the ROC curve: bins that follow from a look at the scores, and the figure itself.

Section 3 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.metrics import released_sums as released
from discreet.metrics.released_sums import Limits
from discreet.scaling import histograms
from discreet.scaling.learn import Noise

LOOK_SHARE = 0.05  # of the budget, to learn where scores lie
# For the area: docs/guarantees/evaluation.md, section 3.
RANKS_WEIGHT = 0.5  # of the bins within groups, whose noise matters less than that of the groups
GROUPS_FACTOR = 11.5  # of rows over noise, in the number of groups
FEWEST_ROWS = 250.0  # over noise: below, the bins of the curves are as good for the area, and cost nothing
MOST_RANKS = 4096  # bins in all: they widen the interval of the area by 1e-4 at most


def rank_bins(rows: int, deviation: float) -> tuple[int, int]:
    """How many groups of bins the area under the curve gets, and bins in each, for noise of this deviation.

    (0, 0) where it takes the bins of the curves.
    """
    ratio = rows / deviation if deviation > 0.0 else math.inf
    if ratio < FEWEST_ROWS:
        return 0, 0
    groups = round(min((GROUPS_FACTOR * ratio) ** (2.0 / 7.0), math.sqrt(MOST_RANKS)))
    return groups, max(round(min(groups**2 / 9.0, MOST_RANKS / groups)), 2)


@dataclass(frozen=True, eq=False)
class ScoreLook:
    """Rows by the sign and the binary exponent of their score."""

    model: Any
    classes: tuple[Any, ...]

    parts = (released.Part("sizes", histograms.SIGNED_BINS + 1),)

    def contributions(self, X: Any, y: Any) -> dict[str, released.Contribution]:
        """The bin of each row; the last one holds those without a finite score."""
        scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        finite = np.isfinite(scores)
        places = np.where(finite, histograms.signed_bins(np.where(finite, scores, 0.0)), histograms.SIGNED_BINS)
        return {"sizes": released.Contribution(np.ones(scores.size), places)}


def rank_edges(counts: FloatArray, noise: Noise, bins: int, otherwise: Sequence[float]) -> FloatArray:
    """Edges between which, by the counts of a look, about equally many scores lie.

    Counts that do not stand out of the noise are taken for 0; if none does, the edges are spread over other ones.
    """
    seen = counts[: histograms.SIGNED_BINS]
    seen = np.where(seen > noise.doubtful, seen, 0.0)
    if not seen.any():
        return np.linspace(otherwise[0], otherwise[-1], bins - 1)
    below = np.concatenate([[0.0], np.cumsum(seen)])
    kept = np.flatnonzero(seen)
    ends = histograms.signed_ends()
    places = np.ravel(np.column_stack([kept, kept + 1]))
    levels = below[-1] * np.arange(1, bins) / bins
    return np.asarray(np.interp(levels, below[places], ends[places]))


def area_under_curve(sums: released.NoisySums, failure: float) -> Limits:
    """The area under the ROC curve: the chance that a positive row scores above a negative one.

    Within a bin the scores are not known. The estimate counts such pairs half; the limits count them as wrong and as
    right, so that they hold for the scores themselves.
    """
    deviations = released.quantile(failure, sums.laplace)
    lower, middle, upper = (Area(sums, tied) for tied in (0.0, 0.5, 1.0))
    low, high = (area.test.limits(deviations, 0.0, 1.0)[end] for end, area in enumerate((lower, upper)))
    pairs = middle.groups.pairs
    if not (middle.groups.positive.sum() > 0.0 and middle.groups.negative.sum() > 0.0):
        return Limits(math.nan, 0.0, 1.0, math.inf)
    value = middle.statistic(0.0) / pairs
    return Limits(float(np.clip(value, low, high)), low, high, math.sqrt(middle.noise(value)) / pairs)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Noisy counts of both labels in bins of increasing scores, one table after the other: (tables, bins)."""

    positive: FloatArray
    negative: FloatArray
    deviation: float
    tied: float

    @classmethod
    def of(cls, sums: released.NoisySums, name: str, tables: int, tied: float) -> Pairs:
        """What was released for a part; pairs within one bin are in order as often as `tied` says."""
        values = sums.of(name)[:-1].reshape(2, tables, -1)
        return cls(values[1], values[0], sums.deviation(name), tied)

    @property
    def pairs(self) -> float:
        """How many there are in all, if there is one table."""
        return float(self.positive.sum() * self.negative.sum())

    def beside(self, u: float) -> tuple[FloatArray, FloatArray]:
        """For each bin, how many rows of the other label are in order with it, less u times all of its table."""
        negative, positive = self.negative, self.positive
        below = np.cumsum(negative, axis=1) - (1.0 - self.tied) * negative
        above = positive.sum(axis=1, keepdims=True) - np.cumsum(positive, axis=1) + self.tied * positive
        return below - u * negative.sum(axis=1, keepdims=True), above - u * positive.sum(axis=1, keepdims=True)

    def statistic(self, u: float) -> float:
        """Pairs in order, less u times all pairs, within the tables."""
        return float((self.positive * self.beside(u)[0]).sum())

    def noise(self, u: float) -> float:
        """Variance of the noise in the statistic: of one factor, of the other, and of both."""
        tables, bins = self.positive.shape
        some = 0.5 * bins * (bins - 1)
        both = tables * (some * ((1.0 - u) ** 2 + u * u) + bins * (self.tied - u) ** 2)
        linear = math.fsum(float(np.square(part).sum()) for part in self.beside(u))
        return self.deviation**2 * linear + self.deviation**4 * both


@dataclass(frozen=True, eq=False)
class Area:
    """The share of pairs in order: between groups of bins from the counts of groups, within them from those of bins.

    Without such bins those of the curves are the groups.
    """

    sums: released.NoisySums
    tied: float

    @cached_property
    def groups(self) -> Pairs:
        if self.bins is None:
            return Pairs.of(self.sums, "scores", 1, self.tied)
        return Pairs.of(self.sums, "rank_groups", 1, 0.0)

    @cached_property
    def bins(self) -> Pairs | None:
        sizes = {part.name: part.bins for part in self.sums.parts}
        return Pairs.of(self.sums, "ranks", sizes["rank_groups"] // 2, self.tied) if "ranks" in sizes else None

    def statistic(self, u: float) -> float:
        return self.groups.statistic(u) + (0.0 if self.bins is None else self.bins.statistic(0.0))

    def noise(self, u: float) -> float:
        return self.groups.noise(u) + (0.0 if self.bins is None else self.bins.noise(0.0))

    def parts(self, u: float) -> tuple[FloatArray, ...]:
        """What a row adds to the statistic, for rows of either label in each bin."""
        coarse = self.groups.beside(u)
        if self.bins is None:
            return coarse
        return tuple(each.reshape(-1, 1) + fine for each, fine in zip(coarse, self.bins.beside(0.0), strict=True))

    def variance(self, u: float) -> float:
        """Of the statistic: of its noise and of the draw of the rows."""
        finest = self.bins or self.groups
        rows = np.maximum(finest.positive, 0.0), np.maximum(finest.negative, 0.0)
        drawn = math.fsum(float((each * part**2).sum()) for each, part in zip(rows, self.parts(u), strict=True))
        return drawn + self.noise(u)

    @property
    def test(self) -> released.Test:
        """The test of the area."""
        return released.Test(
            statistic=self.statistic,
            variance=self.variance,
            largest=lambda u: float(max(*(np.abs(part).max() for part in self.parts(u)), self.groups.deviation)),
        )
