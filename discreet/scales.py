"""Private scales: where each column lives and how wide it is, learned with a share of the budget.

Two releases, both optional, both fixed in advance by public facts:

1. a histogram of the binary exponents of |x| for each column whose bounds were not declared, which shows
   where the column's values end (its radius);
2. the mean and the second moment of each column, clipped to its radius.

Everything else here is post-processing. The target of a regression is treated as one more column.
Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import accounting, mechanisms, summaries
from discreet.data import Data, Public
from discreet.frame import Frame, plain_frame

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.randomness import RandomStream

FloatArray = npt.NDArray[np.float64]

DEFAULT_SHARE = 0.1  # of the budget, as in the papers
NOISIEST_HISTOGRAM = 1 / 20  # noise deviation per bin, as a fraction of the rows
NOISIEST_MOMENT = 1 / 20  # noise deviation of a moment, as a fraction of the squared radius
FALSE_BINS = 1e-6  # expected number of empty bins that noise alone lifts above the threshold: one gives an absurd scale
DOUBTFUL_BINS = 1e-3  # the same for the fullest bin, where no bin passes that threshold
SMALLEST_SPREAD = 1e-7  # of the radius: a constant column must not be divided by zero
GUESSED_SPREAD = 0.5  # of the radius, for a target whose spread is not learned


@dataclass(frozen=True)
class Scaling:
    """Which scales will be learned, by which mechanisms; decided from public facts alone.

    `method` is one of
      "declared"  bounds were given, nothing is learned about the columns;
      "moments"   bounds were given, centres and widths inside them are learned;
      "columns"   nothing was given: radius, centre and width of each column are learned;
      "common"    too little data for that: one radius for all columns is learned;
      "none"      the columns are used as they are.
    """

    method: str
    histogram: mechanisms.Additive | None
    moments: mechanisms.Additive | None
    centred: bool
    target: bool
    learns_target: bool

    @property
    def event(self) -> Any:
        return accounting.compose([part.event for part in (self.histogram, self.moments) if part is not None])

    @property
    def measures_columns(self) -> bool:
        """Whether moments are learned for every column, not only for the target."""
        return self.method in ("moments", "columns")

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "histogram_multiplier": None if self.histogram is None else self.histogram.multiplier,
            "moments_multiplier": None if self.moments is None else self.moments.multiplier,
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
    needs_histogram = learns_target or not public.bounded
    needs_moments = learns_target or method in ("moments", "columns")
    part = mechanisms.additive(budget, share / (needs_histogram + needs_moments or 1)) if share > 0.0 else None
    return Scaling(
        method=method,
        histogram=part if needs_histogram else None,
        moments=part if needs_moments else None,
        centred=centred and not public.sparse,
        target=target,
        learns_target=learns_target,
    )


def unscaled(target: bool) -> Scaling:
    """Learn nothing and use the columns as they are."""
    return Scaling("none", None, None, centred=False, target=target, learns_target=False)


def _method(public: Public, budget: Budget, share: float, target: bool) -> str:
    """The most that can be learned with noise small against the number of rows."""
    if share == 0.0:
        return "declared"
    part = mechanisms.additive(budget, share / 2)
    columns = public.columns + target
    counts_noise = part.deviation(mechanisms.one_hot_counts(public.relation, columns))
    moment_noise = part.deviation(mechanisms.bounded_moments(public.relation, columns))
    if public.bounded:
        return "moments" if moment_noise <= NOISIEST_MOMENT * public.rows else "declared"
    return "columns" if counts_noise <= NOISIEST_HISTOGRAM * public.rows else "common"


def learn_frame(scaling: Scaling, data: Data, public: Public, rng: RandomStream) -> Frame:
    """Release the planned scales and build the frame from them.

    Guarantee: reads the rows only through the planned mechanisms; costs exactly `scaling.event`.
    """
    if scaling.method == "none":
        return plain_frame(public.columns)
    limits = _declared_limits(scaling, public)
    if scaling.histogram is not None:
        _learn_radii(limits, scaling, data, public, rng)
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
        low=limits.low[:p],
        high=limits.high[:p],
        shift=np.where(limits.known, shift, 0.0)[:p],
        scale=scale[:p],
        second_moment=np.ones(p),
        frozen=~limits.known[:p],
        **_target_fields(limits, shift, scale) if scaling.target else {},
    )


def _target_fields(limits: summaries.Limits, shift: FloatArray, scale: FloatArray) -> dict[str, float]:
    return {
        "target_low": float(limits.low[-1]),
        "target_high": float(limits.high[-1]),
        "target_shift": float(shift[-1]),
        "target_scale": float(scale[-1]),
    }


def _declared_limits(scaling: Scaling, public: Public) -> summaries.Limits:
    """Limits from declared bounds; a radius of 0 marks what is not known yet."""
    columns = public.columns + scaling.target
    low, high = np.full(columns, -np.inf), np.full(columns, np.inf)
    if public.low is not None and public.high is not None:
        low[: public.columns], high[: public.columns] = public.low, public.high
    if scaling.target and public.target_low is not None and public.target_high is not None:
        low[-1], high[-1] = public.target_low, public.target_high
    declared = np.isfinite(low)
    centre, radius = np.zeros(columns), np.zeros(columns)
    # A range that excludes zero is centred (the intercept takes up the shift); one that includes zero is
    # not, since most indicator columns are mostly zero. The target is always centred.
    apart = (low > 0.0) | (high < 0.0)
    if scaling.target:
        apart[-1] = declared[-1]
    if scaling.centred:
        centre[apart] = 0.5 * (low[apart] + high[apart])
    radius[declared] = np.maximum(high - centre, centre - low)[declared]
    return summaries.Limits(low, high, centre, radius)


def _learn_radii(limits: summaries.Limits, scaling: Scaling, data: Data, public: Public, rng: RandomStream) -> None:
    """Fill in the radii that were not declared, from one joint release of exponent histograms."""
    assert scaling.histogram is not None
    groups = _histogram_groups(scaling, public)
    radii = _noisy_radii(groups, scaling.histogram, data, public, rng)
    for group, radius in zip(groups, radii, strict=True):
        columns = slice(group.start, group.stop)
        limits.radius[columns] = radius
        limits.low[columns], limits.high[columns] = -radius, radius


def _noisy_radii(
    groups: list[range], histogram: mechanisms.Additive, data: Data, public: Public, rng: RandomStream
) -> list[float]:
    if histogram.multiplier == 0.0:
        return summaries.largest(data, groups)
    counts = summaries.exponent_counts(data, groups)
    sensitivity = mechanisms.one_hot_counts(public.relation, len(groups))
    counts += histogram.noise(rng, sensitivity, counts.shape)
    threshold, doubtful = (histogram.level(sensitivity, rate / counts.size) for rate in (FALSE_BINS, DOUBTFUL_BINS))
    return [summaries.radius_of(row, threshold, doubtful) for row in counts]


def _histogram_groups(scaling: Scaling, public: Public) -> list[range]:
    """Each group of columns shares one histogram: its rows are counted by their largest entry."""
    p = public.columns
    groups: list[range] = []
    if scaling.method == "columns":
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
