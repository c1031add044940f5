"""Where the target of a regression lies and how widely it spreads, from noisy counts and moments of its own.

The first look counts rows by sign and binary exponent. A target that lies apart from zero gets a second look from its
mean, as columns do. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.scaling import histograms, ranges

if TYPE_CHECKING:
    from discreet.privacy.release import ReleasePlan

TARGET_TAIL = 2.5  # deviations of the noise that a bin must exceed to lengthen the bulk of a target by an octave


def cut_target(found: ranges.Ranges, plan: ReleasePlan, counter: ranges.Counter) -> None:
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
            found.cut_around([p], origin, min(radius, ranges.LARGEST_BOUND), 1.0)
        return
    counts = histograms.signed_target_counts(counter.data)
    sensitivity = mechanisms.one_hot_counts(counter.public.relation, 1)
    counts = plan.histogram.release(counter.rng, counts, sensitivity)
    noise = ranges.Noise(plan.histogram, sensitivity, counts.size)
    low, high = signed_range(counts[0], noise)
    if found.known[p] and min(high, found.high[p]) <= max(low, found.low[p]):
        return
    found.cut([p], np.array([low]), np.array([high]), noise.margin(counter.public.rows))
    apart = 0.0 < low < high or low < high < 0.0
    if plan.location is not None and plan.closer is not None and apart and found.low[p] < found.high[p]:
        ranges.cut_around_means(found, {p: math.inf}, plan.location, plan.closer, counter, TARGET_TAIL)


def signed_range(noisy_counts: FloatArray, noise: ranges.Noise) -> tuple[float, float]:
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
    sure = noise.level(ranges.FALSE_BINS)
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
    if ends and noisy_counts[zero] > ranges.TAIL * deviation:
        ends.append(0.0)
    return (min(ends), max(ends)) if ends else (0.0, 0.0)
