"""Private scales: where each column lives and how wide it is, learned with a share of the budget.

Releases that are each optional and fixed in advance by public facts:

1. histograms that show where the values of each column end, also inside declared bounds (extents.py);
2. the mean and the second moment of each column, clipped to that range.

Everything else here is post-processing. The target of a regression is treated as one more column.
Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import accounting, extents, mechanisms, summaries
from discreet.data import Data, Public
from discreet.frame import Frame, plain_frame

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.randomness import RandomStream

FloatArray = npt.NDArray[np.float64]

DEFAULT_SHARE = 0.1  # of the budget, as in the papers
NOISIEST_HISTOGRAM = 1 / 12  # noise deviation per bin, as a fraction of the rows
NOISIEST_MOMENT = 1 / 5  # noise deviation of a moment, as a fraction of the squared radius
HISTOGRAM, LOCATION, CLOSER, MOMENTS = 7, 2, 4, 7  # how the share is divided between the releases that are made
SMALLEST_SPREAD = 1e-7  # of the radius: a constant column must not be divided by zero
GUESSED_SPREAD = 0.5  # of the radius, for a target whose spread is not learned


@dataclass(frozen=True)
class Scaling:
    """Which scales will be learned, by which mechanisms; decided from public facts alone.

    `method` is one of
      "declared"  bounds were given, nothing is learned about the columns;
      "moments"   bounds were given, centres and widths inside them are learned;
      "narrowed"  bounds were given: where values end inside them, centres and widths are learned;
      "columns"   nothing was given: radius, centre and width of each column are learned;
      "common"    too little data for that: one radius for all columns is learned;
      "none"      the columns are used as they are.
    """

    method: str
    histogram: mechanisms.Additive | None
    location: mechanisms.Additive | None
    closer: mechanisms.Additive | None
    moments: mechanisms.Additive | None
    centred: bool
    target: bool
    learns_target: bool

    @property
    def event(self) -> Any:
        parts = (self.histogram, self.location, self.closer, self.moments)
        return accounting.compose([part.event for part in parts if part is not None])

    @property
    def measures_columns(self) -> bool:
        """Whether moments are learned for every column, not only for the target."""
        return self.method in ("moments", "narrowed", "columns")

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "histogram_multiplier": _multiplier(self.histogram),
            "location_multiplier": _multiplier(self.location),
            "closer_multiplier": _multiplier(self.closer),
            "moments_multiplier": _multiplier(self.moments),
            "centred": self.centred,
            "learns_target": self.learns_target,
        }


def plan_scaling(public: Public, budget: Budget, share: float | None, centred: bool, target: bool) -> Scaling:
    """Decide what to learn from public facts: the data is not an argument.

    `centred` asks for centred columns (an intercept takes up the shift); `target` says that the loss is a
    regression, whose target needs a scale as well.
    """
    share = DEFAULT_SHARE if share is None else share
    if not 0.0 <= share < 1.0:
        raise ValueError(f"scale_share must be at least 0 and below 1 (or None); got {share!r}.")
    learns_target = target and not public.target_bounded
    if share == 0.0 and (learns_target or not public.bounded):
        missing = "y_bounds" if public.bounded else "bounds"
        raise ValueError(f"scale_share=0 needs {missing}=(low, high); declare them or leave scale_share=None.")
    method = _method(public, budget, share, target)
    needs_histogram = learns_target or method in ("narrowed", "columns", "common")
    needs_moments = learns_target or method in ("moments", "narrowed", "columns")
    centred = centred and not public.sparse
    # One histogram for several columns shows no place: there is nothing to look at more closely.
    places = centred and (learns_target or method in ("narrowed", "columns"))
    weights = {
        "histogram": HISTOGRAM * needs_histogram,
        "location": LOCATION * places,
        "closer": CLOSER * places,
        "moments": MOMENTS * needs_moments,
    }
    whole = sum(weights.values())
    return Scaling(
        method=method,
        **{name: mechanisms.additive(budget, share * part / whole) if part else None for name, part in weights.items()},
        centred=centred,
        target=target,
        learns_target=learns_target,
    )


def _multiplier(part: mechanisms.Additive | None) -> float | None:
    return None if part is None else part.multiplier


def unscaled(target: bool) -> Scaling:
    """Learn nothing and use the columns as they are."""
    return Scaling("none", None, None, None, None, centred=False, target=target, learns_target=False)


def _method(public: Public, budget: Budget, share: float, target: bool) -> str:
    """The most that can be learned with noise small against the number of rows."""
    if share == 0.0:
        return "declared"
    columns = public.columns + target
    counts = mechanisms.additive(budget, share * HISTOGRAM / (HISTOGRAM + LOCATION + CLOSER + MOMENTS))
    if counts.deviation(mechanisms.one_hot_counts(public.relation, columns)) <= NOISIEST_HISTOGRAM * public.rows:
        return "narrowed" if public.bounded else "columns"
    if not public.bounded:
        return "common"
    alone = 1.0 if not target or public.target_bounded else MOMENTS / (HISTOGRAM + LOCATION + CLOSER + MOMENTS)
    moments = mechanisms.additive(budget, share * alone)
    if moments.deviation(mechanisms.bounded_moments(public.relation, columns)) <= NOISIEST_MOMENT * public.rows:
        return "moments"
    return "declared"


def learn_frame(scaling: Scaling, data: Data, public: Public, rng: RandomStream) -> Frame:
    """Release the planned scales and build the frame from them.

    Guarantee: reads the rows only through the planned mechanisms; costs exactly `scaling.event`.
    """
    if scaling.method == "none":
        return plain_frame(public.columns)
    found = _learn_extents(scaling, data, public, rng)
    limits = _limits_between(found.low, found.high, scaling)
    mean, spread = np.zeros(limits.size), np.ones(limits.size)
    if scaling.target:
        spread[-1] = GUESSED_SPREAD
    if scaling.moments is not None:
        measured = slice(0 if scaling.measures_columns else public.columns, limits.size)
        mean[measured], spread[measured] = _learn_moments(limits, measured, scaling, data, public, rng)
    radius = np.where(limits.known, limits.radius, 1.0)
    shift = limits.centre + mean * radius if scaling.centred else limits.centre
    scale = radius * spread
    p = public.columns
    return Frame(
        low=found.outer_low[:p],
        high=found.outer_high[:p],
        shift=np.where(limits.known, shift, limits.low if scaling.centred else 0.0)[:p],  # what is constant becomes 0
        scale=scale[:p],
        second_moment=np.ones(p),
        frozen=~limits.known[:p],
        **_target_fields(found, shift, scale) if scaling.target else {},
    )


def _target_fields(found: extents.Extents, shift: FloatArray, scale: FloatArray) -> dict[str, float]:
    return {
        "target_low": float(found.outer_low[-1]),
        "target_high": float(found.outer_high[-1]),
        "target_shift": float(shift[-1]),
        "target_scale": float(scale[-1]),
    }


def _learn_extents(scaling: Scaling, data: Data, public: Public, rng: RandomStream) -> extents.Extents:
    """Declared ranges, narrowed or completed by the planned histograms."""
    found = _declared_extents(scaling, public)
    if scaling.histogram is not None:
        counter = extents.Counter(data, public, rng)
        far = extents.first_look(found, _histogram_groups(scaling, public), scaling.histogram, counter)
        if scaling.location is not None and scaling.closer is not None:
            extents.closer_look(found, far, scaling.location, scaling.closer, counter)
    return found


def _declared_extents(scaling: Scaling, public: Public) -> extents.Extents:
    columns = public.columns + scaling.target
    low, high = np.full(columns, -np.inf), np.full(columns, np.inf)
    if public.low is not None and public.high is not None:
        low[: public.columns], high[: public.columns] = public.low, public.high
    if scaling.target and public.target_low is not None and public.target_high is not None:
        low[-1], high[-1] = public.target_low, public.target_high
    return extents.Extents.declared(low, high)


def _limits_between(low: FloatArray, high: FloatArray, scaling: Scaling) -> summaries.Limits:
    """The ranges with their centres and radii.

    A range that excludes zero is centred (the intercept takes up the shift); one that includes zero is not, since
    most indicator columns are mostly zero. The target is always centred.
    """
    centre = np.zeros(low.size)
    if scaling.centred:
        apart = (low > 0.0) | (high < 0.0)
        if scaling.target:
            apart[-1] = True
        centre[apart] = 0.5 * low[apart] + 0.5 * high[apart]
    return summaries.Limits(low, high, centre, np.maximum(high - centre, centre - low))


def _histogram_groups(scaling: Scaling, public: Public) -> list[range]:
    """Each group of columns shares one histogram: its rows are counted by their largest entry."""
    p = public.columns
    groups: list[range] = []
    if scaling.method in ("narrowed", "columns"):
        groups += [range(j, j + 1) for j in range(p)]
    elif scaling.method == "common":
        groups += [range(p)]
    return groups + ([range(p, p + 1)] if scaling.learns_target else [])


def _learn_moments(
    limits: summaries.Limits, measured: slice, scaling: Scaling, data: Data, public: Public, rng: RandomStream
) -> tuple[FloatArray, FloatArray]:
    """Means and spreads (in units of the radius) of the measured columns, from one joint release."""
    assert scaling.moments is not None
    sums = summaries.moment_sums(data, limits, measured)
    sensitivity = mechanisms.bounded_moments(public.relation, sums.shape[1])
    sums += scaling.moments.noise(rng, sensitivity, sums.shape)
    noise = scaling.moments.deviation(sensitivity) / public.rows
    mean = np.clip(sums[0] / public.rows, -1.0, 1.0)
    square = np.clip(sums[1] / public.rows, 0.0, 1.0)
    if scaling.centred:
        square -= mean**2
    else:
        mean = np.zeros_like(mean)
    # Below twice the noise the estimate says only "small": the floor keeps the steps safe (within 2/M).
    return mean, np.sqrt(np.maximum(square, 2.0 * noise + SMALLEST_SPREAD**2))
