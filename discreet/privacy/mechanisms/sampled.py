"""Gaussian noise on sums over random samples of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.privacy import accounting
from discreet.privacy.mechanisms.additive import Gaussian, event_unless_noiseless
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class PoissonGaussian:
    """Gaussian noise on the clipped sum over a Poisson sample of the rows, `count` times.

    The multiplier is the standard deviation over the clipping norm C, not over the distance: the
    accountant's pair for the replace relation already shifts by +C on one side and -C on the other.

    Guarantee: the dominating pairs of docs/guarantees/sgd.md, composed as privacy-loss distributions.
    """

    multiplier: float
    rate: float
    count: int

    @property
    def event(self) -> Any:
        def event(multiplier: float, count: int) -> Any:
            return accounting.poisson_event(self.rate, multiplier, count)

        return event_unless_noiseless(self.multiplier, event, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on the sum."""
        return self.multiplier * clip


@dataclass(frozen=True)
class FixedSizeGaussian:
    """Gaussian noise on the clipped sum over a batch of fixed size drawn without replacement.

    Whatever the relation, the row that leaves the batch is replaced by another one, so the pair shifts by
    2C: the multiplier is the standard deviation over 2C. Refused for add/remove, where n is private.
    """

    multiplier: float
    rows: int
    batch: int
    count: int

    @property
    def event(self) -> Any:
        def event(multiplier: float, count: int) -> Any:
            return accounting.fixed_size_event(self.rows, self.batch, multiplier, count)

        return event_unless_noiseless(self.multiplier, event, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on the sum."""
        return self.multiplier * 2.0 * clip


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
        return Gaussian(self.multiplier, self.anchors)

    @property
    def sampled(self) -> PoissonGaussian:
        return PoissonGaussian(self.ratio * self.multiplier, self.rate, self.anchors * self.steps)

    @property
    def event(self) -> Any:
        return accounting.compose([self.full.event, self.sampled.event])


def anchored_ratio(relation: Relation, rate: float, steps: int, share: float) -> float:
    """The ratio at which the full sums take about this share of the squared Gaussian cost.

    A sampled sum costs about (rate * factor / multiplier)^2 when the noise is large. It is a rule of thumb for
    dividing the budget: the accountant prices the whole, whatever the ratio.
    """
    return relation.factor * rate * math.sqrt(steps * share / (1.0 - share))
