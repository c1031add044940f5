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
    from collections.abc import Sequence

    from discreet.data.public import Public
    from discreet.data.rows import Rows
    from discreet.privacy.random.generator import RandomGenerator


FALSE_BINS = 1e-6  # expected number of empty bins that noise alone lifts above the level: one makes a scale too large
DOUBTFUL_BINS = 1e-3  # the same where a false bin does little harm, and for the clearest run of bins
FALSE_ZEROS = 0.01  # how often noise alone looks like zeros in a column far from zero, which then keeps its wide range
TAIL = 4.0  # deviations of the noise that a bin must exceed to lengthen the bulk by an octave
LONGEST_WINDOW = 6  # octaves that are added up to stand out together
MARGIN = math.sqrt(2.0)  # at which entries are clipped at least, in radii of the bulk: room for a tail that is not seen
MOST_MARGIN = 4.0  # and at most: rows that hide further out are too few to be followed by gradients that are clipped
USUAL_SIZE = 0.5  # of values in the bulk, in radii
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

    @classmethod
    def declared(cls, low: FloatArray, high: FloatArray) -> Ranges:
        """Both ranges as declared, in copies of their own."""
        return cls(low.copy(), high.copy(), low.copy(), high.copy())

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.low) & np.isfinite(self.high)

    def cut(self, columns: Sequence[int], low: FloatArray, high: FloatArray, margin: float) -> None:
        """Leave what lies between the ends, in the bulk; the outer range is wider by the margin.

        `margin` counts half lengths of the range between the ends. What was cut before is never widened.
        """
        which = list(columns)
        room = np.minimum((margin - 1.0) * (0.5 * high - 0.5 * low), LARGEST_BOUND)
        ends = (self.low, self.high, low, high), (self.outer_low, self.outer_high, low - room, high + room)
        for own_low, own_high, new_low, new_high in ends:
            own_low[which] = np.clip(new_low, own_low[which], own_high[which])
            own_high[which] = np.clip(new_high, own_low[which], own_high[which])

    def cut_around(
        self, columns: Sequence[int], origin: FloatArray, radius: float, margin: float, unit: FloatArray | float = 1.0
    ) -> None:
        """Leave what is at most the radius away from the origin; each column may have its own unit of length.

        A known range stays as it is where nothing was seen in it, or numbers beyond all bins.
        """
        if not columns or (self.known[columns[0]] and not 0.0 < radius < histograms.LARGEST_RADIUS):
            return
        which = list(columns)
        reach = np.minimum(np.broadcast_to(radius * np.asarray(unit), len(which)), LARGEST_BOUND)
        self.cut(which, origin[which] - reach, origin[which] + reach, margin)


class Levels(NamedTuple):
    """What counts must exceed to be believed: one bin anywhere, runs of 1, 2, ... bins, one bin next to the bulk."""

    sure: float
    windows: tuple[float, ...]
    tail: float


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise in some number of bins."""

    mechanism: mechanisms.Additive
    sensitivity: mechanisms.Sensitivity
    bins: int

    @property
    def doubtful(self) -> float:
        return self.level(DOUBTFUL_BINS)

    def levels(self, known: bool, tail: float = TAIL) -> Levels:
        """Inside a known range a false bin does little harm. `tail` counts deviations."""
        sure = self.doubtful if known else self.level(FALSE_BINS)
        return Levels(sure, self.windows(), tail * self.mechanism.deviation(self.sensitivity))

    def windows(self, counts: int = 1, kinds: int = 1) -> tuple[float, ...]:
        """The levels for runs of bins, each the sum of so many counts; runs of several kinds share the false ones."""
        lengths = range(1, LONGEST_WINDOW + 1)
        return tuple(self.level(DOUBTFUL_BINS / (kinds * LONGEST_WINDOW), counts * length) for length in lengths)

    def margin(self, rows: int) -> float:
        """How far beyond the bulk entries are clipped, in radii: less where more rows may hide in the noise.

        A bin hides up to as many rows as its level. Clipped at this margin, they add no more to the mean square than
        the bulk has, whose values are usually half as large as the radius.
        """
        return min(max(MARGIN, USUAL_SIZE * math.sqrt(rows / self.level(FALSE_BINS))), MOST_MARGIN)

    def level(self, false_bins: float, entries: int = 1) -> float:
        """What a sum of so many counts must exceed, if so many of all bins may do so falsely."""
        return self.mechanism.level(self.sensitivity, false_bins / self.bins, entries)


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

    def relative_counts(
        self, origin: FloatArray, unit: FloatArray, mechanism: mechanisms.Additive
    ) -> tuple[FloatArray, Noise]:
        """One noisy histogram for all columns, each in its own unit, and its noise.

        Guarantee: costs one event of the mechanism.
        """
        counts = histograms.relative_counts(self.data, origin, unit)
        sensitivity = mechanisms.one_hot_counts(self.public.relation, 1)
        counts = mechanism.release(self.rng, counts, sensitivity)
        return counts, Noise(mechanism, sensitivity, counts.size)

    def means(self, ranges: Ranges, columns: list[int], mechanism: mechanisms.Additive) -> FloatArray:
        """The means of some columns, clipped to their ranges; the middle of the range for the others.

        Guarantee: costs one event of the mechanism.
        """
        known = np.zeros(ranges.low.size, dtype=bool)
        known[columns] = True
        limits = moments.limits_between(np.where(known, ranges.low, 0.0), np.where(known, ranges.high, 0.0))
        rounded = mechanism.multiplier > 0.0
        sums = moments.moment_sums(self.data, limits, slice(0, limits.size), rounded=rounded)[0, columns]
        sums = mechanism.release(self.rng, sums, mechanisms.bounded_values(self.public.relation, len(columns)))
        mean = limits.centre.copy()
        mean[columns] += limits.radius[columns] * sums / self.public.rows
        return np.clip(mean, ranges.low, ranges.high)


def cut_around_origin(
    ranges: Ranges, columns: list[int], mechanism: mechanisms.Additive, counter: Counter
) -> dict[int, float]:
    """Cut each column to where its values end, seen from the point nearest to zero.

    Returns the columns that lie far from there, with the distance from which on rows were seen.
    """
    groups = [range(j, j + 1) for j in columns]
    origin = np.clip(0.0, ranges.low, ranges.high)
    if mechanism.multiplier == 0.0:
        _cut_exactly(ranges, groups, origin, counter)
        return {}
    counts, noise = counter.counts(groups, origin, mechanism)
    zeros = mechanism.level(noise.sensitivity, FALSE_ZEROS)
    known, margin = ranges.known, noise.margin(counter.public.rows)
    radii = [histograms.radius_of(row, *noise.levels(known[j])) for row, j in zip(counts, columns, strict=True)]
    far = {
        j: histograms.nearest(row, radius, noise.doubtful, zeros)
        for j, row, radius in zip(columns, counts, radii, strict=True)
        if radius > 0.0 and histograms.upper_octaves(row, radius) >= FAR * row[row > noise.doubtful].sum()
    }
    alone = [k for k, j in enumerate(columns) if not known[j]]
    lent = histograms.fill_missing_radii([radii[k] for k in alone], counts[alone])
    for k, radius in zip(alone, lent, strict=True):
        radii[k] = radius
    for j, radius in zip(columns, radii, strict=True):
        ranges.cut_around([j], origin, radius, margin)
    return far


def cut_together(ranges: Ranges, columns: list[int], mechanism: mechanisms.Additive, counter: Counter) -> None:
    """Cut these columns by one radius, in which rows count by the largest of their entries there.

    Where bounds are declared it counts in the lengths of the ranges. Either all of the columns have bounds or none.
    """
    origin = np.clip(0.0, ranges.low, ranges.high)
    p = counter.public.columns
    if mechanism.multiplier == 0.0:
        alone = [range(p)] if len(columns) == p else [range(j, j + 1) for j in columns]
        _cut_exactly(ranges, alone, origin, counter)
        return
    known = bool(ranges.known[columns].all())
    unit = np.full(p, np.inf)
    unit[columns] = np.maximum(ranges.high - origin, origin - ranges.low)[columns] if known else 1.0
    unit[unit == 0.0] = np.inf
    counts, noise = counter.relative_counts(origin, unit, mechanism)
    radius = histograms.radius_of(counts[0], *noise.levels(known))
    lengths = np.where(np.isfinite(unit), unit, 0.0)[columns]
    ranges.cut_around(columns, origin, radius, noise.margin(counter.public.rows), lengths)


def _cut_exactly(ranges: Ranges, groups: list[range], origin: FloatArray, counter: Counter) -> None:
    """Cut unknown ranges to the largest entries. Not private: for infinite budgets only."""
    for group, radius in zip(groups, histograms.largest(counter.data, groups, origin), strict=True):
        if len(group) and not ranges.known[group.start]:
            ranges.cut_around(group, origin, min(radius, LARGEST_BOUND), 1.0)


def cut_around_means(
    ranges: Ranges,
    far: dict[int, float],
    location: mechanisms.Additive,
    histogram: mechanisms.Additive,
    counter: Counter,
    tail: float = TAIL,
) -> None:
    """Cut the columns that lie far from zero once more, seen from their noisy means.

    Rows that the first look has shown closer to the old origin stay inside, also if the second does not show them.
    """
    if not far:
        return
    start = np.clip(0.0, ranges.low, ranges.high)
    origin = counter.means(ranges, list(far), location)
    counts, noise = counter.counts([range(j, j + 1) for j in far], origin, histogram)
    margin = noise.margin(counter.public.rows)
    for (j, near), row in zip(far.items(), counts, strict=True):
        radius = histograms.radius_of(row, *noise.levels(known=True, tail=tail))
        if not 0.0 < radius < histograms.LARGEST_RADIUS:
            continue
        low, high = origin[j] - radius, origin[j] + radius
        if math.isfinite(near):
            seen = start[j] + math.copysign(near, origin[j] - start[j])
            low, high = min(low, seen), max(high, seen)
        ranges.cut([j], np.array([low]), np.array([high]), margin)
