"""Gaussian noise on sums over random samples of the rows: the mechanism draws the sample as well as the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import IndexArray
from discreet.privacy import accounting
from discreet.privacy.mechanisms.additive import (
    Gaussian,
    NoisyGrid,
    PricedByMultiplier,
    noise_scale,
    noisy_grid,
)
from discreet.privacy.mechanisms.sensitivity import clipped_sum
from discreet.privacy.random.generator import PoissonSample, RandomGenerator
from discreet.privacy.relation import Relation


@dataclass(frozen=True)
class PoissonGaussian(PricedByMultiplier):
    """Gaussian noise on the clipped sum over a Poisson sample of the rows, `count` times.

    The multiplier is the standard deviation over the clipping norm C, not over the distance: the
    accountant's pair for the replace relation already shifts by +C on one side and -C on the other.

    Guarantee: the dominating pairs of docs/guarantees/sgd.md, composed as privacy-loss distributions.
    """

    multiplier: float
    rate: float
    count: int

    def _cost(self) -> Any:
        return accounting.poisson_event(self.rate, self.multiplier, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on a sum."""
        return noise_scale(self.multiplier, clip)

    def batches(self, rng: RandomGenerator, rows: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """Every row joins the batch of every step independently, with probability `rate`: (indptr, indices)."""
        return rng.poisson_batches(rows, self.rate, steps)

    def sample(self, rng: RandomGenerator, rows: int) -> PoissonSample:
        """The same batches as a sample that is known by its key, for rows that are not at hand all at once."""
        return rng.poisson_sample(rows, self.rate)

    def grid(self, clip: float, entries: int, rows: float = 1) -> NoisyGrid:
        """The grid and the noise of one sum; rounding makes the longest contribution sqrt(entries) / 2 steps longer."""
        return noisy_grid("normal", self.multiplier, clip, 0.5 * math.sqrt(entries), rows)


@dataclass(frozen=True)
class FixedSizeGaussian(PricedByMultiplier):
    """Gaussian noise on the clipped sum over a batch of fixed size drawn without replacement, `count` times.

    Whatever the relation, the row that leaves the batch is replaced by another one, so the pair shifts by
    2C: the multiplier is the standard deviation over 2C. Refused for add/remove, where n is private.

    Guarantee: the dominating pair of docs/guarantees/sgd.md, composed as a privacy-loss distribution.
    """

    multiplier: float
    rows: int
    batch: int
    count: int

    def _cost(self) -> Any:
        return accounting.fixed_size_event(self.rows, self.batch, self.multiplier, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on a sum."""
        return noise_scale(self.multiplier, 2.0 * clip)

    def batches(self, rng: RandomGenerator, rows: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """A uniformly random set of `batch` rows for every step: (indptr, indices)."""
        if rows != self.rows:
            raise ValueError(f"the mechanism is priced for {self.rows} rows, but the table has {rows}.")
        indptr = np.arange(steps + 1, dtype=np.int64) * self.batch
        if self.batch == 1:
            return indptr, rng.integers(rows, steps)
        indices = np.empty((steps, self.batch), dtype=np.int64)
        for chosen in indices:
            chosen[:] = rng.permutation(rows)[: self.batch]
        return indptr, indices.ravel()

    def grid(self, clip: float, entries: int, rows: float = 1) -> NoisyGrid:
        """The grid and the noise of one sum, in which one rounded contribution may take the place of another."""
        return noisy_grid("normal", self.multiplier, 2.0 * clip, math.sqrt(entries), rows)


@dataclass(frozen=True)
class AnchoredGaussian:
    """Gaussian noise on `anchors` sums over all rows and, after each of them, on `steps` sums over Poisson samples.

    One multiplier for both: it is that of the full sums (`full`), and `ratio` times it is that of the sampled
    sums (`sampled`), so that a calibration moves the two together.

    Guarantee: the product of the pairs of the two parts (docs/guarantees/svrg.md).
    """

    multiplier: float
    ratio: float
    rate: float
    anchors: int
    steps: int

    @property
    def full(self) -> Gaussian:
        """The mechanism of the sums over all rows."""
        return Gaussian(self.multiplier, self.anchors)

    @property
    def sampled(self) -> PoissonGaussian:
        """The mechanism of the sums over Poisson samples."""
        return PoissonGaussian(self.ratio * self.multiplier, self.rate, self.anchors * self.steps)

    @property
    def event(self) -> Any:
        return accounting.compose([self.full.event, self.sampled.event])


def anchored_ratio(relation: Relation, rate: float, steps: int, share: float) -> float:
    """The ratio at which the full sums take about this share of the squared Gaussian cost.

    A sampled sum of sensitivity D costs about (rate * D / multiplier)^2 when the noise is large. It is a rule of thumb
    for dividing the budget: the accountant prices the whole, whatever the ratio.
    """
    return clipped_sum(relation).l2 * rate * math.sqrt(steps * share / (1.0 - share))
