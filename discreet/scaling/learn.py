"""Learn the planned scales: where the values of each column and of the target end, their centres and their widths.

Ends come from noisy counts, in two looks: the first counts rows by the binary exponent of their distance from a public
origin. Columns that turn out to lie far from it, compared with their spread (years, temperatures, coordinates), get a
second look from their own mean. Unknown ranges are found, declared ones cut to the bulk. Everything here but the
planned releases is post-processing. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import TERM_STEP, Limits, Rows, limits_between, moment_sums
from discreet.data.validation import LARGEST_BOUND
from discreet.privacy import mechanisms
from discreet.problem.column_scaling import SMALLEST_SPREAD, ColumnScaling, identity_scaling
from discreet.scaling import histograms, templates
from discreet.scaling.plan import counted_columns
from discreet.scaling.public_scales import bulk, with_public_scales

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.release import ReleasePlan
    from discreet.scaling.plan import ScalingPlan

FALSE_BINS = 1e-6  # expected number of empty bins that noise alone lifts above the level: one makes a scale too large
DOUBTFUL_BINS = 1e-3  # the same where a false bin does little harm, and for the clearest run of bins
FALSE_ZEROS = 0.01  # how often noise alone looks like zeros in a column far from zero, which then keeps its wide range
TAIL = 4.0  # deviations of the noise that a bin must exceed to lengthen the bulk by an octave
LONGEST_WINDOW = 6  # octaves that are added up to stand out together
MARGIN = math.sqrt(2.0)  # at which entries are clipped at least, in radii of the bulk: room for a tail that is not seen
MOST_MARGIN = 4.0  # and at most: rows that hide further out are too few to be followed by gradients that are clipped
USUAL_SIZE = 0.5  # of values in the bulk, in radii
FAR = 0.7  # of the rows within the upper two octaves of distances: the column lies far from its origin
TARGET_TAIL = 2.5  # deviations of the noise that a bin must exceed to lengthen the bulk of a target by an octave
GUESSED_SPREAD = 0.5  # of the radius, for a target whose spread is not learned
OPEN_COLUMN = 1e60  # of a scaled column, beyond which entries are clipped where ranges are open: norms must be finite
OPEN_TARGET = 64.0  # of its range, beyond which a target is clipped where ranges are open: its gradient is, long before
LOST_SCALE = 2.0**-64  # of a target that is not found, or constant: nothing but the constant is left of the model


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

    def noisy(self, counts: FloatArray, groups: int, mechanism: mechanisms.Additive) -> tuple[FloatArray, Noise]:
        """Counts with noise, and its law; every row has added its weight to one bin in each of so many groups.

        Guarantee: costs one event of the mechanism.
        """
        sensitivity = mechanisms.one_hot_counts(self.public.relation, groups)
        counts = mechanism.release(self.rng, counts, sensitivity)
        return counts, Noise(mechanism, sensitivity, counts.size)

    def means(self, ranges: Ranges, columns: list[int], mechanism: mechanisms.Additive) -> FloatArray:
        """The means of some columns, clipped to their ranges; the middle of the range for the others.

        Guarantee: costs one event of the mechanism.
        """
        known = np.zeros(ranges.low.size, dtype=bool)
        known[columns] = True
        limits = limits_between(np.where(known, ranges.low, 0.0), np.where(known, ranges.high, 0.0))
        rounded = mechanism.multiplier > 0.0
        sums = moment_sums(self.data, limits, slice(0, limits.size), rounded=rounded)[0, columns]
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
    counts = histograms.exponent_counts(counter.data, groups, origin)
    counts, noise = counter.noisy(counts, len(groups), mechanism)
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
    counts, noise = counter.noisy(histograms.relative_counts(counter.data, origin, unit), 1, mechanism)
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
    counts = histograms.exponent_counts(counter.data, [range(j, j + 1) for j in far], origin)
    counts, noise = counter.noisy(counts, len(far), histogram)
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


def cut_target(found: Ranges, plan: ReleasePlan, counter: Counter) -> None:
    """Cut the range of the target, which is the last one, to its bulk.

    Where nothing stands out of the noise, a declared range stays and an unknown one becomes the point 0.
    """
    p = counter.public.columns
    if plan.histogram is None:
        return
    if plan.histogram.multiplier == 0.0:
        if not found.known[p]:
            origin = np.zeros(p + 1)
            radius = histograms.largest(counter.data, [range(p, p + 1)], origin)[0]
            found.cut_around([p], origin, min(radius, LARGEST_BOUND), 1.0)
        return
    counts, noise = counter.noisy(histograms.signed_target_counts(counter.data), 1, plan.histogram)
    low, high = signed_range(counts[0], noise)
    if found.known[p] and min(high, found.high[p]) <= max(low, found.low[p]):
        return
    found.cut([p], np.array([low]), np.array([high]), noise.margin(counter.public.rows))
    apart = 0.0 < low < high or low < high < 0.0
    if plan.location is not None and plan.closer is not None and apart and found.low[p] < found.high[p]:
        cut_around_means(found, {p: math.inf}, plan.location, plan.closer, counter, TARGET_TAIL)


def signed_range(noisy_counts: FloatArray, noise: Noise) -> tuple[float, float]:
    """From the lower end of the first bin that belongs to the bulk to the upper end of the last; (0, 0) if none does.

    These belong to it: every bin that stands out beyond doubt; the clearest run of adjacent exponents, of one sign
    or of both, if it stands out; and their neighbours that pass a lower level.
    """
    zero = histograms.BINS - 1
    negative, positive = noisy_counts[zero - 1 :: -1], noisy_counts[zero + 1 :]
    sides = {(-1,): (negative, 1), (1,): (positive, 1), (-1, 1): (negative + positive, 2)}
    runs = {
        signs: histograms.clearest_window(counts, noise.windows(doubled, 3))
        for signs, (counts, doubled) in sides.items()
    }
    signs = max(runs, key=lambda signs: runs[signs][0])
    deviation = noise.mechanism.deviation(noise.sensitivity)
    sure = noise.level(FALSE_BINS)
    found = [(signs, runs[signs][1], runs[signs][2])] if runs[signs][0] > 0.0 else []
    for sign, counts in ((-1, negative), (1, positive)):
        found += [((sign,), int(place), int(place)) for place in np.flatnonzero(counts > sure)]
    ends: list[float] = []
    for signs, first, last in found:
        counts, doubled = sides[signs]
        tail = TARGET_TAIL * math.sqrt(doubled) * deviation
        nearer = first - int(np.argmin(np.append(counts[:first][::-1] > tail, False)))  # down to the first that fails
        end = histograms.end_of_bulk(counts, last, noise.windows(doubled, 3), tail)
        both = 0.5 * histograms.upper_end(nearer), histograms.upper_end(end)
        ends += [sign * end for sign in signs for end in both]
    if ends and noisy_counts[zero] > TAIL * deviation:
        ends.append(0.0)
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def learn_scaling(scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator) -> ColumnScaling:
    """Release the planned scales and build the column scaling from them.

    Guarantee: reads the rows only through the planned mechanisms; costs exactly `scaling.event`.
    """
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    found = _learn_ranges(scaling_plan, data, public, rng)
    scaling = _scaling_of(found, scaling_plan, public, (data, rng))
    if scaling_plan.method != "soft":
        return scaling
    return templates.with_templates(scaling, scaling_plan, found, Counter(data, public, rng))


def declared_scaling(scaling_plan: ScalingPlan, public: Public) -> ColumnScaling:
    """The column scaling where declared bounds decide it, and nothing is learned."""
    if scaling_plan.learns:
        raise ValueError("these scales will be learned from the rows.")
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    return _scaling_of(_declared_ranges(scaling_plan, public), scaling_plan, public, None)


def _scaling_of(
    found: Ranges, scaling_plan: ScalingPlan, public: Public, source: tuple[Rows, RandomGenerator] | None
) -> ColumnScaling:
    """The column scaling for these ranges; moments, if planned, are released from the source."""
    limits = _limits_between(found.low, found.high, scaling_plan)
    mean, spread, noise = np.zeros(limits.size), np.ones(limits.size), np.full(limits.size, np.inf)
    p = public.columns
    if scaling_plan.target:
        spread[-1] = GUESSED_SPREAD
    if source is not None:
        of_target = None if scaling_plan.target_plan is None else scaling_plan.target_plan.moments
        columns = slice(0, p), scaling_plan.moments, scaling_plan.centred
        target = slice(p, p + 1), of_target, scaling_plan.target_centred
        for measured, mechanism, centred in (columns, target):
            if mechanism is not None:
                found_moments = _learn_moments(limits, measured, mechanism, centred, public, source)
                mean[measured], spread[measured], noise[measured] = found_moments
    radius = np.where(limits.known & np.isfinite(limits.radius), limits.radius, 1.0)
    # What is constant becomes 0.
    constant = np.where(_centred(scaling_plan, limits.size), limits.low, 0.0)
    shift = np.where(limits.known, limits.centre, constant) + np.where(limits.known, mean, 0.0) * radius
    scale = radius * spread
    lost = scaling_plan.target and not limits.known[-1]
    wide = np.where(limits.known, scale, LOST_SCALE)
    scaling = identity_scaling(p)
    if scaling_plan.method != "target":
        frozen = ~limits.known[:p] | lost  # of a target that is not found, columns can tell nothing
        low, high = found.outer_low[:p], found.outer_high[:p]
        scaling = ColumnScaling(low, high, shift[:p], scale[:p], np.ones(p), frozen)
    if scaling_plan.target:
        deviation = noise[-1] * radius[-1]
        scaling = scaling.with_target(found.outer_low[-1], found.outer_high[-1], shift[-1], wide[-1], deviation)
    if scaling_plan.method == "target" or public.table is None:
        return scaling
    least, target_centred = scaling_plan.least_spread or 0.0, scaling_plan.target_centred
    return with_public_scales(scaling, public, scaling_plan.centred, scaling_plan.target, least, target_centred)


def opened(scaling: ColumnScaling, public: Public) -> ColumnScaling:
    """The same scaling, with entries clipped at declared bounds only.

    For solvers whose every release bounds rows by itself. A target that was not found stays so; without declared
    bounds any other is clipped far beyond its range, so that it keeps its unit.
    """
    far = np.minimum(OPEN_COLUMN * scaling.scale, LARGEST_BOUND)
    low, high = (np.clip(scaling.shift + side, -LARGEST_BOUND, LARGEST_BOUND) for side in (-far, far))
    if public.low is not None and public.high is not None:
        low, high = np.maximum(public.low, low), np.minimum(public.high, high)
    scaling = replace(scaling, low=low, high=high)
    ends = scaling.target_low, scaling.target_high
    if ends[0] == ends[1] or not np.isfinite(ends).all():
        return scaling
    width = OPEN_TARGET * (ends[1] - ends[0])
    ends = max(ends[0] - width, -LARGEST_BOUND), min(ends[1] + width, LARGEST_BOUND)
    if public.target_low is not None and public.target_high is not None:
        ends = public.target_low, public.target_high
    return replace(scaling, target_low=float(ends[0]), target_high=float(ends[1]))


def _learn_ranges(scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator) -> Ranges:
    """Declared ranges, narrowed or completed by the planned histograms."""
    found = _declared_ranges(scaling_plan, public)
    counter = Counter(data, public, rng)
    if scaling_plan.target_plan is not None:
        cut_target(found, scaling_plan.target_plan, counter)
    if scaling_plan.histogram is None:
        return found
    if scaling_plan.method == "soft":
        return found
    columns = counted_columns(public, scaling_plan.method)
    if scaling_plan.method in ("common", "factor"):
        cut_together(found, columns, scaling_plan.histogram, counter)
        return found
    far = cut_around_origin(found, columns, scaling_plan.histogram, counter)
    if scaling_plan.location is not None and scaling_plan.closer is not None:
        cut_around_means(found, far, scaling_plan.location, scaling_plan.closer, counter)
    return found


def _declared_ranges(scaling_plan: ScalingPlan, public: Public) -> Ranges:
    columns = public.columns + scaling_plan.target
    low, high = np.full(columns, -np.inf), np.full(columns, np.inf)
    if public.table is not None:
        low[: public.columns], high[: public.columns] = bulk(public.table.X)
    if public.low is not None and public.high is not None:
        either = public.declared if public.table is not None else np.ones(public.columns, dtype=bool)
        low[: public.columns][either], high[: public.columns][either] = public.low[either], public.high[either]
    if scaling_plan.target and public.target_low is not None and public.target_high is not None:
        low[-1], high[-1] = public.target_low, public.target_high
    return Ranges.declared(low, high)


def _limits_between(low: FloatArray, high: FloatArray, scaling_plan: ScalingPlan) -> Limits:
    """The ranges with their centres and radii.

    A range that excludes zero is centred (the intercept takes up the shift); one that includes zero is not, since
    most indicator columns are mostly zero. The target is always centred, if there is an intercept.
    """
    centre = np.zeros(low.size)
    apart = _centred(scaling_plan, low.size) & ((low > 0.0) | (high < 0.0))
    if scaling_plan.target_centred:
        apart[-1] = True
    centre[apart] = 0.5 * low[apart] + 0.5 * high[apart]
    return Limits(low, high, centre, np.maximum(high - centre, centre - low))


def _centred(scaling_plan: ScalingPlan, size: int) -> npt.NDArray[np.bool_]:
    """Which columns are centred, the target being the last one if there is one."""
    which = np.full(size, scaling_plan.centred)
    if scaling_plan.target:
        which[-1] = scaling_plan.target_centred
    return which


def _learn_moments(
    limits: Limits,
    measured: slice,
    mechanism: mechanisms.Additive,
    centred: bool,
    public: Public,
    source: tuple[Rows, RandomGenerator],
) -> tuple[FloatArray, FloatArray, float]:
    """Means, spreads and the means' noise (in units of the radius) of the measured columns, from one joint release."""
    sums = moment_sums(source[0], limits, measured, rounded=mechanism.multiplier > 0.0)
    sensitivity = mechanisms.bounded_moments(public.relation, sums.shape[1])
    sensitivity = sensitivity.rounded(public.rounded_rows * TERM_STEP, sums.size)
    sums = mechanism.release(source[1], sums, sensitivity)
    noise = mechanism.deviation(sensitivity) / public.rows
    mean = expected_mean(sums[0] / public.rows, noise)
    square = np.clip(sums[1] / public.rows, 0.0, 1.0)
    if centred:
        square -= mean**2
    else:
        mean = np.zeros_like(mean)
    # Below twice the noise the estimate says only "small": the floor keeps the steps safe (within 2/M).
    return mean, np.sqrt(np.maximum(square, 2.0 * noise + SMALLEST_SPREAD**2)), noise


def expected_mean(noisy: FloatArray, deviation: float) -> FloatArray:
    """The means of numbers in [-1, 1] given their noisy values, all numbers there being equally likely before."""
    from scipy.special import log_ndtr

    if deviation == 0.0:
        return np.clip(noisy, -1.0, 1.0)
    size = np.abs(noisy)
    below, above = (-1.0 - size) / deviation, (1.0 - size) / deviation
    inside = log_ndtr(above) + np.log1p(-np.exp(log_ndtr(below) - log_ndtr(above)))
    log_root = 0.5 * math.log(2.0 * math.pi)
    push = np.exp(-0.5 * below**2 - log_root - inside) - np.exp(-0.5 * above**2 - log_root - inside)
    return np.asarray(np.copysign(np.clip(size + deviation * push, 0.0, 1.0), noisy))
