"""Release the planned scales and build the column scaling from them.

Everything here but the planned releases is post-processing. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data import moments
from discreet.data.public import Public
from discreet.data.rows import TERM_STEP, Rows
from discreet.privacy import mechanisms
from discreet.problem.column_scaling import SMALLEST_SPREAD, ColumnScaling, identity_scaling
from discreet.scaling import ranges
from discreet.scaling.public_scales import public_ranges, with_public_scales
from discreet.scaling.shares import binary
from discreet.scaling.target import cut_target

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.scaling.plan import ScalingPlan

GUESSED_SPREAD = 0.5  # of the radius, for a target whose spread is not learned
LOST_SCALE = 2.0**-64  # of a target that is not found, or constant: nothing but the constant is left of the model


def learn_scaling(scaling_plan: ScalingPlan, data: Rows, public: Public, rng: RandomGenerator) -> ColumnScaling:
    """Release the planned scales and build the column scaling from them.

    Guarantee: reads the rows only through the planned mechanisms; costs exactly `scaling.event`.
    """
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    return _scaling_of(_learn_ranges(scaling_plan, data, public, rng), scaling_plan, public, (data, rng))


def declared_scaling(scaling_plan: ScalingPlan, public: Public) -> ColumnScaling:
    """The column scaling where declared bounds decide it, and nothing is learned."""
    if scaling_plan.learns:
        raise ValueError("these scales will be learned from the rows.")
    if scaling_plan.method == "none":
        return identity_scaling(public.columns)
    return _scaling_of(_declared_ranges(scaling_plan, public), scaling_plan, public, None)


def _scaling_of(
    found: ranges.Ranges, scaling_plan: ScalingPlan, public: Public, source: tuple[Rows, RandomGenerator] | None
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
    target_fields = _target_fields(found, shift, wide, noise * radius) if scaling_plan.target else {}
    if scaling_plan.method == "target":
        return replace(identity_scaling(p), **target_fields)
    scaling = ColumnScaling(
        low=found.outer_low[:p],
        high=found.outer_high[:p],
        shift=shift[:p],
        scale=scale[:p],
        second_moment=np.ones(p),
        frozen=~limits.known[:p] | lost,  # of a target that is not found, columns can tell nothing
        **target_fields,
    )
    if public.table is None:
        return scaling
    return with_public_scales(
        scaling,
        public,
        scaling_plan.centred,
        scaling_plan.target,
        scaling_plan.least_spread or 0.0,
        scaling_plan.target_centred,
    )


def _target_fields(found: ranges.Ranges, shift: FloatArray, scale: FloatArray, noise: FloatArray) -> dict[str, Any]:
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
    counter = ranges.Counter(data, public, rng)
    if scaling_plan.target_plan is not None:
        cut_target(found, scaling_plan.target_plan, counter)
    if scaling_plan.histogram is None:
        return found
    columns = counted_columns(public, scaling_plan.method)
    if scaling_plan.method in ("common", "factor"):
        ranges.cut_together(found, columns, scaling_plan.histogram, counter)
        return found
    far = ranges.cut_around_origin(found, columns, scaling_plan.histogram, counter)
    if scaling_plan.location is not None and scaling_plan.closer is not None:
        ranges.cut_around_means(found, far, scaling_plan.location, scaling_plan.closer, counter)
    return found


def _declared_ranges(scaling_plan: ScalingPlan, public: Public) -> ranges.Ranges:
    columns = public.columns + scaling_plan.target
    low, high = np.full(columns, -np.inf), np.full(columns, np.inf)
    if public.table is not None:
        low[: public.columns], high[: public.columns] = public_ranges(public.table)
    if public.low is not None and public.high is not None:
        either = public.declared if public.table is not None else np.ones(public.columns, dtype=bool)
        low[: public.columns][either], high[: public.columns][either] = public.low[either], public.high[either]
    if scaling_plan.target and public.target_low is not None and public.target_high is not None:
        low[-1], high[-1] = public.target_low, public.target_high
    return ranges.Ranges.declared(low, high)


def _limits_between(low: FloatArray, high: FloatArray, scaling_plan: ScalingPlan) -> moments.Limits:
    """The ranges with their centres and radii.

    A range that excludes zero is centred (the intercept takes up the shift); one that includes zero is not, since
    most indicator columns are mostly zero. The target is always centred, if there is an intercept.
    """
    centre = np.zeros(low.size)
    apart = _centred(scaling_plan, low.size) & ((low > 0.0) | (high < 0.0))
    if scaling_plan.target_centred:
        apart[-1] = True
    centre[apart] = 0.5 * low[apart] + 0.5 * high[apart]
    return moments.Limits(low, high, centre, np.maximum(high - centre, centre - low))


def _centred(scaling_plan: ScalingPlan, size: int) -> npt.NDArray[np.bool_]:
    """Which columns are centred, the target being the last one if there is one."""
    which = np.full(size, scaling_plan.centred)
    if scaling_plan.target:
        which[-1] = scaling_plan.target_centred
    return which


def counted_columns(public: Public, method: str) -> list[int]:
    """The columns whose ends are looked for.

    All but those that are declared to lie between 0 and 1; by the methods that learn what is missing, and no more, only
    those without declared bounds.
    """
    counted = ~public.declared if method in ("completed", "common") else ~binary(public)
    return np.flatnonzero(counted).tolist()


def _learn_moments(
    limits: moments.Limits,
    measured: slice,
    mechanism: mechanisms.Additive,
    centred: bool,
    public: Public,
    source: tuple[Rows, RandomGenerator],
) -> tuple[FloatArray, FloatArray, float]:
    """Means, spreads and the means' noise (in units of the radius) of the measured columns, from one joint release."""
    sums = moments.moment_sums(source[0], limits, measured, rounded=mechanism.multiplier > 0.0)
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
