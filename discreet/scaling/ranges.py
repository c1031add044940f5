"""Where the values of each column end, from noisy counts: unknown ranges are found, declared ones cut to the bulk.

Two looks. The first counts rows by the binary exponent of their distance from a public origin. Columns that turn out to
lie far from it, compared with their spread (years, temperatures, coordinates), get a second look from their own mean.
Everything else here is post-processing. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data import moments
from discreet.data.validation import LARGEST_BOUND
from discreet.privacy import mechanisms
from discreet.scaling import histograms

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Rows
    from discreet.privacy.random.generator import RandomGenerator


FALSE_BINS = 1e-6  # expected number of empty bins that noise alone lifts above the level: one makes a scale too large
DOUBTFUL_BINS = 1e-3  # the same where a false bin does little harm: the fullest one, or one inside declared bounds
DOUBTFUL_TARGETS = 1e-2  # the same for the fullest bin of a target: without one there is no model at all
COLUMN_TAIL, TARGET_TAIL = 4.0, 2.0  # deviations of the noise that a bin must exceed to lengthen the bulk by an octave
# Entries are clipped at a multiple of the radius of the bulk: room for a tail that is not seen. It is larger inside
# declared bounds, since these exclude impossible values already.
MARGIN, DECLARED_MARGIN = math.sqrt(2.0), 4.0
FAR = 0.7  # of the rows within the upper two octaves of distances: the column lies far from its origin


@dataclass(frozen=True, eq=False)
class Ranges:
    """Two ranges of each column, the target being one more; infinite where nothing is known. Cut in place.

    `low` and `high` are the ends of the bulk, for which scales are made; entries are clipped at the outer ones.
    """

    low: FloatArray
    high: FloatArray
    outer_low: FloatArray
    outer_high: FloatArray
    margin: FloatArray

    @classmethod
    def declared(cls, low: FloatArray, high: FloatArray) -> Ranges:
        """Both ranges as declared, in copies of their own."""
        margin = np.where(np.isfinite(low), DECLARED_MARGIN, MARGIN)
        return cls(low.copy(), high.copy(), low.copy(), high.copy(), margin)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.low)

    def cut(self, columns: range, origin: FloatArray, radius: float) -> None:
        """Leave what is at most the radius, and the margin, away from the origin, which lies inside.

        A known range stays as it is where nothing was seen in it, or numbers beyond all bins.
        """
        which = slice(columns.start, columns.stop)
        if self.known[columns.start] and not 0.0 < radius < histograms.LARGEST_RADIUS:
            return
        outer = self.margin[which] * radius
        for low, high, reach in ((self.low, self.high, radius), (self.outer_low, self.outer_high, outer)):
            low[which] = np.maximum(low[which], origin[which] - reach)
            high[which] = np.minimum(high[which], origin[which] + reach)


class Levels(NamedTuple):
    """What a count must exceed to be believed: anywhere, where a false one does little harm, next to the bulk."""

    sure: float
    doubtful: float
    tail: float


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise in some number of bins."""

    mechanism: mechanisms.Additive
    sensitivity: mechanisms.Sensitivity
    bins: int

    @property
    def doubtful(self) -> float:
        return self._level(DOUBTFUL_BINS / self.bins)

    def levels(self, known: bool, target: bool) -> Levels:
        """Inside a known range a false bin does little harm. A target that is lost or cut biases all predictions, a
        column that is cut only bounds what its extremes can do.
        """
        deviation = self.mechanism.deviation(self.sensitivity)
        if target:
            sure, doubtful = (self._level(rate / histograms.BINS) for rate in (FALSE_BINS, DOUBTFUL_TARGETS))
            return Levels(doubtful if known else sure, doubtful, TARGET_TAIL * deviation)
        sure = self.doubtful if known else self._level(FALSE_BINS / self.bins)
        return Levels(sure, self.doubtful, COLUMN_TAIL * deviation)

    def _level(self, probability: float) -> float:
        return self.mechanism.level(self.sensitivity, probability)


@dataclass(frozen=True, eq=False)
class Counter:
    """Counts rows of one table by their distance from an origin, with noise."""

    data: Rows
    public: Public
    rng: RandomGenerator

    def counts(
        self, groups: list[range], origin: FloatArray, mechanism: mechanisms.Additive
    ) -> tuple[FloatArray, Noise]:
        """One noisy histogram for each group of columns, and its noise.

        Guarantee: costs one event of the mechanism.
        """
        counts = histograms.exponent_counts(self.data, groups, origin)
        sensitivity = mechanisms.one_hot_counts(self.public.relation, len(groups))
        counts = mechanism.release(self.rng, counts, sensitivity)
        return counts, Noise(mechanism, sensitivity, counts.size)

    def means(self, ranges: Ranges, columns: list[int], mechanism: mechanisms.Additive) -> FloatArray:
        """The means of some columns, clipped to their ranges; the middle of the range for the others.

        Guarantee: costs one event of the mechanism.
        """
        limits = moments.limits_between(ranges.low, ranges.high)
        rounded = mechanism.multiplier > 0.0
        sums = moments.moment_sums(self.data, limits, slice(0, limits.size), rounded=rounded)[0, columns]
        sums = mechanism.release(self.rng, sums, mechanisms.bounded_values(self.public.relation, len(columns)))
        mean = limits.centre.copy()
        mean[columns] += limits.radius[columns] * sums / self.public.rows
        return np.clip(mean, ranges.low, ranges.high)


def cut_around_origin(
    ranges: Ranges, groups: list[range], mechanism: mechanisms.Additive, counter: Counter
) -> list[int]:
    """Cut all groups to where their values end, seen from the point nearest to zero; returns the columns that lie far.

    Columns of a group share one histogram, in which rows count by their largest entry.
    """
    origin = np.clip(0.0, ranges.low, ranges.high)
    if mechanism.multiplier == 0.0:
        for group, radius in zip(groups, histograms.largest(counter.data, groups, origin), strict=True):
            if not ranges.known[group.start]:
                ranges.cut(group, origin, min(radius, LARGEST_BOUND))
        return []
    counts, noise = counter.counts(groups, origin, mechanism)
    known = ranges.known
    p = counter.public.columns
    radii = [
        histograms.radius_of(row, *noise.levels(known[group.start], group.start == p))
        for row, group in zip(counts, groups, strict=True)
    ]
    far = [
        group.start
        for group, row, radius in zip(groups, counts, radii, strict=True)
        if len(group) == 1
        and radius > 0.0
        and histograms.upper_octaves(row, radius) >= FAR * row[row > noise.doubtful].sum()
    ]
    alone = [k for k, group in enumerate(groups) if len(group) == 1 and group.start < p and not known[group.start]]
    lent = histograms.fill_missing_radii([radii[k] for k in alone], counts[alone])
    for k, radius in zip(alone, lent, strict=True):
        radii[k] = radius
    for group, radius in zip(groups, radii, strict=True):
        ranges.cut(group, origin, radius)
    return far


def cut_around_means(
    ranges: Ranges,
    far: list[int],
    location: mechanisms.Additive,
    histogram: mechanisms.Additive,
    counter: Counter,
) -> None:
    """Cut the columns that lie far from zero once more, seen from their noisy means."""
    if not far:
        return
    origin = counter.means(ranges, far, location)
    counts, noise = counter.counts([range(j, j + 1) for j in far], origin, histogram)
    for j, row in zip(far, counts, strict=True):
        radius = histograms.radius_of(row, *noise.levels(known=True, target=j == counter.public.columns))
        ranges.cut(range(j, j + 1), origin, radius)
