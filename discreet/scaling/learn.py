"""Release the planned scales and build the column scaling from them.

Everything here but the planned releases is post-processing. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data import moments
from discreet.data.public import Public
from discreet.data.rows import TERM_STEP, Rows
from discreet.privacy import mechanisms
from discreet.problem.column_scaling import SMALLEST_SPREAD, ColumnScaling, identity_scaling
from discreet.scaling import ranges

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator
from discreet.scaling.plan import ScalingPlan

GUESSED_SPREAD = 0.5  # of the radius, for a target whose spread is not learned


def learn_scaling(scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator) -> ColumnScaling:
    """Release the planned scales and build the column scaling from them.

    Guarantee: reads the rows only through the planned mechanisms; costs exactly `scaling.event`.
    """
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    return _scaling_of(_learn_ranges(scaling_plan, data, public, rng), scaling_plan, public, (data, rng))


def declared_scaling(scaling_plan: ScalingPlan, public: Public) -> ColumnScaling:
    """The column scaling where declared bounds decide it, and nothing is learned."""
    if scaling_plan.histogram is not None or scaling_plan.moments is not None:
        raise ValueError("these scales will be learned from the rows.")
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    return _scaling_of(_declared_ranges(scaling_plan, public), scaling_plan, public, None)


def _scaling_of(
    found: ranges.Ranges, scaling_plan: ScalingPlan, public: Public, source: tuple[Rows, RandomGenerator] | None
) -> ColumnScaling:
    """The column scaling for these ranges; moments, if planned, are released from the source."""
    limits, noise = _limits_between(found.low, found.high, scaling_plan), np.inf
    mean, spread = np.zeros(limits.size), np.ones(limits.size)
    if scaling_plan.target:
        spread[-1] = GUESSED_SPREAD
    if scaling_plan.moments is not None and source is not None:
        measured = slice(0 if scaling_plan.measures_columns else public.columns, limits.size)
        mean[measured], spread[measured], noise = _learn_moments(
            limits, measured, scaling_plan, source[0], public, source[1]
        )
    radius = np.where(limits.known, limits.radius, 1.0)
    shift = limits.centre + mean * radius if scaling_plan.centred else limits.centre
    scale = radius * spread
    p = public.columns
    return ColumnScaling(
        low=found.outer_low[:p],
        high=found.outer_high[:p],
        shift=np.where(limits.known, shift, limits.low if scaling_plan.centred else 0.0)[
            :p
        ],  # what is constant becomes 0
        scale=scale[:p],
        second_moment=np.ones(p),
        frozen=~limits.known[:p],
        **_target_fields(found, shift, scale, noise * radius) if scaling_plan.target else {},
    )


def _target_fields(found: ranges.Ranges, shift: FloatArray, scale: FloatArray, noise: FloatArray) -> dict[str, float]:
    return {
        "target_low": float(found.outer_low[-1]),
        "target_high": float(found.outer_high[-1]),
        "target_shift": float(shift[-1]),
        "target_scale": float(scale[-1]),
        "target_noise": float(noise[-1]),
    }


def _learn_ranges(scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator) -> ranges.Ranges:
    """Declared ranges, narrowed or completed by the planned histograms."""
    found = _declared_ranges(scaling_plan, public)
    if scaling_plan.histogram is not None:
        counter = ranges.Counter(data, public, rng)
        far = ranges.cut_around_origin(found, histogram_groups(scaling_plan, public), scaling_plan.histogram, counter)
        if scaling_plan.location is not None and scaling_plan.closer is not None:
            ranges.cut_around_means(found, far, scaling_plan.location, scaling_plan.closer, counter)
    return found


def _declared_ranges(scaling_plan: ScalingPlan, public: Public) -> ranges.Ranges:
    columns = public.columns + scaling_plan.target
    low, high = np.full(columns, -np.inf), np.full(columns, np.inf)
    if public.low is not None and public.high is not None:
        low[: public.columns], high[: public.columns] = public.low, public.high
    if scaling_plan.target and public.target_low is not None and public.target_high is not None:
        low[-1], high[-1] = public.target_low, public.target_high
    return ranges.Ranges.declared(low, high)


def _limits_between(low: FloatArray, high: FloatArray, scaling_plan: ScalingPlan) -> moments.Limits:
    """The ranges with their centres and radii.

    A range that excludes zero is centred (the intercept takes up the shift); one that includes zero is not, since
    most indicator columns are mostly zero. The target is always centred.
    """
    centre = np.zeros(low.size)
    if scaling_plan.centred:
        apart = (low > 0.0) | (high < 0.0)
        if scaling_plan.target:
            apart[-1] = True
        centre[apart] = 0.5 * low[apart] + 0.5 * high[apart]
    return moments.Limits(low, high, centre, np.maximum(high - centre, centre - low))


def histogram_groups(scaling_plan: ScalingPlan, public: Public) -> list[range]:
    """Each group of columns shares one histogram: its rows are counted by their largest entry."""
    p = public.columns
    groups: list[range] = []
    if scaling_plan.method in ("narrowed", "columns"):
        groups += [range(j, j + 1) for j in range(p)]
    elif scaling_plan.method == "common":
        groups += [range(p)]
    return groups + ([range(p, p + 1)] if scaling_plan.learns_target else [])


def _learn_moments(
    limits: moments.Limits, measured: slice, scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator
) -> tuple[FloatArray, FloatArray, float]:
    """Means, spreads and the means' noise (in units of the radius) of the measured columns, from one joint release."""
    assert scaling_plan.moments is not None
    sums = moments.moment_sums(data, limits, measured, rounded=scaling_plan.moments.multiplier > 0.0)
    sensitivity = mechanisms.bounded_moments(public.relation, sums.shape[1]).rounded(TERM_STEP, sums.size)
    sums = scaling_plan.moments.release(rng, sums, sensitivity)
    noise = scaling_plan.moments.deviation(sensitivity) / public.rows
    mean = np.clip(sums[0] / public.rows, -1.0, 1.0)
    square = np.clip(sums[1] / public.rows, 0.0, 1.0)
    if scaling_plan.centred:
        square -= mean**2
    else:
        mean = np.zeros_like(mean)
    # Below twice the noise the estimate says only "small": the floor keeps the steps safe (within 2/M).
    return mean, np.sqrt(np.maximum(square, 2.0 * noise + SMALLEST_SPREAD**2)), noise
