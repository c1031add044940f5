"""Private scales: where the values of each column lie and how widely they spread, learned with a share of the budget.

Releases that are each optional and fixed in advance by public facts:

1. histograms that show where the values of each column end, also inside declared bounds (ranges.py);
2. the mean and the second moment of each column, clipped to that range.

Everything else here is post-processing. The target of a regression is treated as one more column.
Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.data.public import Public
from discreet.privacy import accounting, mechanisms

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget


# Where these come from: docs/defaults.md.
DEFAULT_SHARE = 0.1  # of the budget, as in the papers
NOISIEST_HISTOGRAM = 1 / 12  # noise deviation per bin, as a fraction of the rows
NOISIEST_MOMENT = 1 / 5  # noise deviation of a moment, as a fraction of the squared radius
HISTOGRAM, LOCATION, CLOSER, MOMENTS = 7, 2, 4, 7  # how the share is divided between the releases that are made


@dataclass(frozen=True)
class ScalingPlan:
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


def plan_scaling(public: Public, budget: Budget, share: float | None, centred: bool, target: bool) -> ScalingPlan:
    """Decide what to learn from public facts: the data is not an argument.

    `centred` asks for centred columns (an intercept takes up the shift); `target` says that the loss is a
    regression, whose target needs a scale as well.
    """
    share = DEFAULT_SHARE if share is None else share
    if not isinstance(share, (int, float)) or not 0.0 <= share < 1.0:
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
    return ScalingPlan(
        method=method,
        **{name: mechanisms.additive(budget, share * part / whole) if part else None for name, part in weights.items()},
        centred=centred,
        target=target,
        learns_target=learns_target,
    )


def _multiplier(part: mechanisms.Additive | None) -> float | None:
    return None if part is None else part.multiplier


def unscaled(target: bool) -> ScalingPlan:
    """Learn nothing and use the columns as they are."""
    return ScalingPlan("none", None, None, None, None, centred=False, target=target, learns_target=False)


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
