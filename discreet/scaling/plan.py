"""Private scales: where the values of each column lie and how widely they spread, learned with a share of the budget.

Releases that are each optional and fixed in advance by public facts:

1. histograms that show where the values of each column end, also inside declared bounds;
2. the mean and the second moment of each column, clipped to that range;
3. the same for the target of a regression, with a share of its own;
4. with a public start, whether it is better than none (public_scales.py).

How much of the budget they get follows from public facts alone: a tenth by default, more where that is what makes the
target, or the columns, stand out of the noise; at most half for the target, and half of what that leaves for the
columns. Split into halves, an error a / s + b / (1 - s) is at most twice that of the best s, whatever a and b are.

Everything else is post-processing (learn.py). Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.data.public import Public
from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.release import PlannedRelease, ReleasePlan, planned_releases
from discreet.scaling.public_scales import check_sensitivity, tells_target

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget

# Where these come from: docs/defaults.md.
DEFAULT_SHARE = 0.1  # of the budget, as in the papers
MOST_SHARE = 0.5  # of the budget for the target, of what that leaves for the columns: as much as for all that follows
NEARLY_ALL = 1.0 - 1e-6  # of the budget: sums of shares are rounded
TARGET_PART = 0.25  # of the usual share, for the target at least
NOISIEST_HISTOGRAM = 1 / 12  # noise deviation per bin, as a fraction of the rows
NOISIEST_TARGET = 1 / 20  # the same for the histogram of the target, at most
CLEAR_TARGET, CLEAR_SHARE = 1 / 40, 0.25  # the same where it takes no more than this share of the budget
NOISIEST_MOMENT = 1 / 5  # noise deviation of a moment, as a fraction of the squared radius
SEEN_BY_TEMPLATES, LEAST_SOFT, MOST_SOFT = 1 / 5, 0.05, 0.15  # noise of a bin over the rows; shares for the counts
SOFT_MEAN = 0.2  # of a share for templates: the means
HISTOGRAM, LOCATION, CLOSER, MOMENTS = 7, 2, 4, 7  # how a share is divided between the releases that are made
NAMES = ("histogram", "location", "closer", "moments")
COUNT = "rows per count"
RANGE = "of a column's half-width"


class Shares(NamedTuple):
    """What is learned about the columns, and the share of the budget of each release; 0: it is not made."""

    method: str
    columns: dict[str, float]
    target: dict[str, float]


def share_out(
    public: Public, budget: Budget, share: float | None, centred: bool, target: bool, target_centred: bool | None = None
) -> Shares:
    """Decide what can be learned; a share that was asked for is spent, and no more."""
    usual = DEFAULT_SHARE if share is None else share
    for_target, of_target = 0.0, _parts(False, False, False, False)
    if target and not tells_target(public.table):
        for_target, of_target = _target(
            public, budget, usual, MOST_SHARE * (share or 1.0), centred if target_centred is None else target_centred
        )
    if share is None:
        least, most = (1.0 - TARGET_PART * target) * usual, MOST_SHARE * (1.0 - for_target)
    else:
        least = most = share - for_target
    method, for_columns = ("public", 0.0)
    if public.table is None:
        method, for_columns = _columns(public, budget, least, most, _parts(True, centred, centred, True)["histogram"])
    ends = method in ("narrowed", "columns", "common", "factor")
    # One histogram for several columns shows no place: there is nothing to look at more closely.
    looks = centred and method in ("narrowed", "columns")
    measured = method in ("moments", "narrowed", "columns")
    if method == "factor":
        part = _parts(True, looks, looks, True)["moments"]
        measured = _quiet_moments(public, budget, part * for_columns, public.columns)
    own = _parts(ends, looks, looks, measured)
    if method == "soft":
        own |= {"histogram": 1.0 - SOFT_MEAN * centred, "location": SOFT_MEAN * centred}
    return Shares(
        method,
        {name: for_columns * part for name, part in own.items()},
        {name: for_target * part for name, part in of_target.items()},
    )


def share_out_to_target(public: Public, budget: Budget) -> dict[str, float]:
    """The shares of the releases about the target, if nothing else is learned."""
    parts = _parts(True, True, True, True)
    if public.target_bounded:
        parts = _parts(False, False, False, True)
    elif target_share(public, budget) > parts["histogram"]:
        parts = _parts(True, False, False, True)
    return {name: NEARLY_ALL * part for name, part in parts.items()}


def target_share(public: Public, budget: Budget) -> float:
    """The share of the budget with which the histogram of the target shows where it lies; above 1: none will do."""
    return _needed(budget, mechanisms.one_hot_counts(public.relation, 1), NOISIEST_TARGET * public.rows)


def hides_target(public: Public, budget: Budget) -> bool:
    """Whether the most that a target may get beside a model is too little to find it, or to know its mean."""
    if not public.target_bounded:
        return target_share(public, budget) > MOST_SHARE * _parts(True, True, True, True)["histogram"]
    half = mechanisms.additive(budget, MOST_SHARE).deviation(mechanisms.bounded_moments(public.relation, 1))
    return half > NOISIEST_TARGET * public.rows


def binary(public: Public) -> np.ndarray:
    """Which columns are declared to lie between 0 and 1 exactly: indicators, which are not narrowed.

    None counts as one where `narrows_indicators` says so.
    """
    if public.narrows_indicators or public.low is None or public.high is None:
        return np.zeros(public.columns, dtype=bool)
    return np.asarray((public.low == 0.0) & (public.high == 1.0))


def _parts(*made: bool) -> dict[str, float]:
    """The part of each release in a share, if it is made."""
    weights = np.array([HISTOGRAM, LOCATION, CLOSER, MOMENTS]) * np.array(made)
    return dict(zip(NAMES, (weights / max(weights.sum(), 1)).tolist(), strict=True))


def _target(public: Public, budget: Budget, usual: float, most: float, centred: bool) -> tuple[float, dict[str, float]]:
    """The share for the target, and how it is divided.

    As much as its histogram needs, but not less than a part of the usual share. A target that is not found is worse
    than any noise in the coefficients: the share grows to its end even where that may not be enough, and there is no
    closer look then. Up to a quarter of the budget it may also grow to show targets that spread over many octaves.
    """
    parts, least = _parts(True, centred, centred, True), TARGET_PART * usual
    needed = target_share(public, budget)
    if public.target_bounded and needed > least * parts["histogram"]:
        return least, _parts(False, False, False, _quiet_moments(public, budget, least, 1))
    if needed > most * parts["histogram"]:
        return most, _parts(True, False, False, True)
    clear = _needed(budget, mechanisms.one_hot_counts(public.relation, 1), CLEAR_TARGET * public.rows)
    wanted = min(clear / parts["histogram"], CLEAR_SHARE / MOST_SHARE * most)
    return max(needed / parts["histogram"], wanted, least), parts


def _columns(public: Public, budget: Budget, usual: float, most: float, part: float) -> tuple[str, float]:
    """The most that can be learned with noise small against the number of rows, and the share for it."""
    counted, missing = int((~binary(public)).sum()), int((~public.declared).sum())
    if public.bounded and counted == 0:
        quiet = _quiet_moments(public, budget, usual, public.columns)
        return ("moments", usual) if quiet else ("declared", 0.0)
    counts = mechanisms.one_hot_counts(public.relation, max(counted, 1))
    needed = _needed(budget, counts, NOISIEST_HISTOGRAM * public.rows)
    if needed / part <= (most if public.bounded else min(most, max(usual, MOST_SOFT))):
        return "narrowed" if public.bounded else "columns", max(usual, needed / part)
    if missing and public.start is None:  # which needs columns as they are: a guess would clip what it says
        missed = mechanisms.one_hot_counts(public.relation, missing)
        share = usual if usual == most else _soft_share(public, budget, missed, most)
        if _needed(budget, missed, public.rows) <= share * (1.0 - SOFT_MEAN):
            return "soft", share
    if not public.bounded:
        return "common", usual
    together = mechanisms.additive(budget, usual).deviation(mechanisms.one_hot_counts(public.relation, 1))
    return ("factor", usual) if together <= NOISIEST_HISTOGRAM * public.rows else ("declared", 0.0)


def _soft_share(public: Public, budget: Budget, counts: Sensitivity, most: float) -> float:
    """The share for counts that templates are held against, and for means: noise hides a part of a column at most."""
    needed = _needed(budget, counts, SEEN_BY_TEMPLATES * public.rows)
    return min(min(max(needed, LEAST_SOFT), MOST_SOFT) / (1.0 - SOFT_MEAN), most)


def _quiet_moments(public: Public, budget: Budget, share: float, columns: int) -> bool:
    """Whether means and mean squares of so many columns are of use with this share."""
    sensitivity = mechanisms.bounded_moments(public.relation, columns)
    return mechanisms.additive(budget, share).deviation(sensitivity) <= NOISIEST_MOMENT * public.rows


def _needed(budget: Budget, sensitivity: Sensitivity, deviation: float) -> float:
    """The share of the budget with which noise has this deviation; above 1 where the budget is too small."""
    whole = mechanisms.additive(budget, 1.0)
    excess = whole.deviation(sensitivity) / deviation
    return excess if isinstance(whole, mechanisms.Laplace) else excess**2


@dataclass(frozen=True)
class ScalingPlan:
    """Which scales will be learned, by which mechanisms; decided from public facts alone.

    `method` is one of
      "declared"  bounds were given, nothing is learned about the columns;
      "moments"   bounds were given, centres and widths inside them are learned;
      "narrowed"  bounds were given: where values end inside them, centres and widths are learned;
      "factor"    bounds were given, too little data for that: one factor by which all are too wide is learned,
                  and centres and widths if their noise allows it;
      "columns"   not all bounds were given: radius, centre and width of each column are learned, inside those that
                  were;
      "soft"      too little data for that: bounds that were given are kept; the other columns get the centre and width
                  of public templates that fit noisy counts, and fade as far as none does;
      "common"    noise hides the counts of all rows: one radius for all columns without bounds is learned;
      "public"    ranges, centres and widths of the columns come from a public table;
      "none"      the columns are used as they are;
      "target"    the same, but the target is learned.
    `target` says that there is a regression target; `target_plan` is None where nothing is learned about it.
    """

    method: str
    histogram: mechanisms.Additive | None
    location: mechanisms.Additive | None
    closer: mechanisms.Additive | None
    moments: mechanisms.Additive | None
    centred: bool
    target: bool
    target_plan: ReleasePlan | None = None  # of the range, the mean and the spread of the target
    # True for sparse tables, whose columns keep their zeros.
    only_target_centred: bool | None = field(default=None, metadata={"digest": "if given"})
    least_spread: float | None = field(default=None, metadata={"digest": "if given"})  # of public columns, in radii
    start_check: mechanisms.Additive | None = field(default=None, metadata={"digest": "if given"})

    @property
    def parts(self) -> dict[str, mechanisms.Additive | None]:
        """The releases of scales by name, in their order."""
        own = {name: getattr(self, name) for name in NAMES}
        return own | {f"target_{name}": getattr(self.target_plan, name, None) for name in NAMES}

    @property
    def event(self) -> Any:
        parts = (*self.parts.values(), self.start_check)
        return accounting.compose(list(map(attrgetter("event"), filter(None, parts))))

    @property
    def learns(self) -> bool:
        """Whether any scale is learned from the rows."""
        return any(part is not None for part in self.parts.values())

    @property
    def learns_target(self) -> bool:
        return self.target_plan is not None

    @property
    def target_centred(self) -> bool:
        return self.target and (self.centred or bool(self.only_target_centred))

    @property
    def measures_columns(self) -> bool:
        """Whether moments are learned for every column."""
        return self.moments is not None

    def warnings(self, public: Public) -> list[str]:
        """Say what public facts tell about the scales before they are learned."""
        told = []
        if self.method == "common":
            told.append(
                f"{public.rows} {public.unit}s are too few to learn a scale for each of "
                f"{int((~public.declared).sum())} columns privately, so one common scale is used; if limits of the "
                "columns are known, pass them as bounds=(low, high), which gives each column its own scale."
            )
        if self.target_plan is not None and self.target_plan.histogram is not None and not public.target_bounded:
            counts = self.target_plan.histogram.deviation(mechanisms.one_hot_counts(public.relation, 1))
            if counts > NOISIEST_TARGET * public.rows * (1.0 + 1e-9):
                told.append(
                    f"{public.rows} {public.unit}s are too few to be sure to find privately where the target lies, and "
                    "the model predicts 0 if it is not found; pass y_bounds=(low, high), use more "
                    f"{public.unit}s or a larger epsilon."
                )
        return told

    def to_dict(self) -> dict[str, Any]:
        multipliers = {
            f"{name}_multiplier": None if part is None else part.multiplier
            for name, part in (self.parts | {"start_check": self.start_check}).items()
        }
        return {
            "method": self.method,
            **multipliers,
            "centred": self.centred,
            "target_centred": self.target_centred,
            "learns_target": self.learns_target,
        }


def plan_scaling(public: Public, budget: Budget, share: float | None, centred: bool, target: bool) -> ScalingPlan:
    """Decide what to learn from public facts: the data is not an argument.

    `centred` asks for centred columns (an intercept takes up the shift); `target` says that the loss is a
    regression, whose target needs a scale as well. `share` of the budget is spent; by default a tenth, and more where
    that lets the target or the columns stand out of the noise.
    """
    if share is not None and (not isinstance(share, (int, float)) or not 0.0 <= share < 1.0):
        raise ValueError(f"scale_share must be at least 0 and below 1 (or None); got {share!r}.")
    learns_target = target and not public.target_bounded and not tells_target(public.table)
    known = public.bounded or public.table is not None
    if share == 0.0 and (learns_target or not known):
        missing = "y_bounds" if known else "bounds"
        which = " of every column" if public.partly_bounded else ""
        raise ValueError(f"scale_share=0 needs {missing}=(low, high){which}; declare them or leave scale_share=None.")
    target_centred = centred and target
    only_target = True if target_centred and public.sparse else None
    centred = centred and not public.sparse
    least_spread = None if public.table is None else _least_spread(public, budget, share)
    if share == 0.0:
        method = "declared" if public.table is None else "public"
        return ScalingPlan(method, None, None, None, None, centred, target, None, only_target, least_spread)
    found = share_out(public, budget, share, centred, target, target_centred)
    own, of_target = (
        {name: mechanisms.additive(budget, part) if part else None for name, part in parts.items()}
        for parts in (found.columns, found.target)
    )
    moments = of_target.pop("moments")
    target_plan = None if moments is None else _of_target(public, budget, of_target | {"moments": moments})
    return ScalingPlan(
        found.method,
        **own,
        centred=centred,
        target=target,
        target_plan=target_plan,
        only_target_centred=only_target,
        least_spread=least_spread,
    )


def _least_spread(public: Public, budget: Budget, share: float | None) -> float:
    """How narrow a public column may be, in radii: no narrower than private moments could tell, had they been learned.

    To lift a narrow column further, such as a rare category, only magnifies the noise of the steps.
    """
    part = MOMENTS / (HISTOGRAM + LOCATION + CLOSER + MOMENTS)
    alone = mechanisms.additive(budget, (share or DEFAULT_SHARE) * part)
    noise = alone.deviation(mechanisms.bounded_moments(public.relation, public.columns)) / public.rows
    return math.sqrt(min(1.0, 2.0 * noise))


def facts_for_scales(public: Public, log_link: bool) -> Public:
    """The facts from which scales are planned.

    The mean of counts is far below the largest one that a person would declare, and noise in proportion to the latter
    would hide it. Where it lies is looked for as if nothing was declared; what is found stays within what was.
    """
    return replace(public, target_low=None, target_high=None) if log_link else public


def plan_target(public: Public, budget: Budget) -> ScalingPlan:
    """Spend the whole budget on the mean of the target; the columns are used as they are."""
    found = share_out_to_target(public, budget)
    parts = {name: mechanisms.additive(budget, part) if part else None for name, part in found.items()}
    moments = parts.pop("moments")
    assert moments is not None
    target_plan = _of_target(public, budget, parts | {"moments": moments})
    return ScalingPlan("target", None, None, None, None, False, True, target_plan, only_target_centred=True)


def _of_target(public: Public, budget: Budget, parts: Mapping[str, mechanisms.Additive | None]) -> ReleasePlan:
    return ReleasePlan("scales of the target", public, budget, parts)


def unscaled(target: bool) -> ScalingPlan:
    """Learn nothing and use the columns as they are."""
    return ScalingPlan("none", None, None, None, None, centred=False, target=target)


def counted_columns(public: Public, method: str) -> list[int]:
    """The columns whose ends are looked for.

    All but those that are declared to lie between 0 and 1; by the methods that learn what is missing, and no more, only
    those without declared bounds.
    """
    counted = ~public.declared if method in ("soft", "common") else ~binary(public)
    return np.flatnonzero(counted).tolist()


def scaling_releases(scaling_plan: ScalingPlan, public: Public) -> list[PlannedRelease]:
    """List the releases in the order in which they are made.

    The closer look is at those columns only that turn out to lie far from zero; their noise is told for the case that
    all do.
    """
    together = scaling_plan.method in ("common", "factor")
    groups = 1 if together else len(counted_columns(public, scaling_plan.method))
    told = {
        "target_histogram": ("scales: histogram of where the target lies", _counts(public, 1), COUNT),
        "target_location": ("scales: location of a target far from 0", _means(public, 1), RANGE),
        "target_closer": ("scales: closer histogram of it", _counts(public, 1), COUNT),
        "histogram": ("scales: histograms of where values end", _counts(public, groups), COUNT),
        "location": ("scales: location of columns far from 0", _means(public, groups), RANGE),
        "closer": ("scales: closer histograms of these", _counts(public, groups), COUNT),
        "moments": ("scales: means and mean squares", _moments(public, public.columns), RANGE),
        "target_moments": ("scales: mean and mean square of the target", _moments(public, 1), RANGE),
    }
    check = check_sensitivity(public.relation) * (1.0 / public.rows)
    told["start_check"] = ("check of the public start", check, "of a usual loss, on the mean")
    parts = scaling_plan.parts | {"start_check": scaling_plan.start_check}
    return [
        release
        for name, (what, sensitivity, unit) in told.items()
        if (mechanism := parts[name]) is not None
        for release in planned_releases(what, mechanism.event, public.relation, sensitivity, unit)
    ]


def _counts(public: Public, groups: int) -> Sensitivity:
    return mechanisms.one_hot_counts(public.relation, groups)


def _means(public: Public, columns: int) -> Sensitivity:
    return mechanisms.bounded_values(public.relation, columns) * (1.0 / public.rows)


def _moments(public: Public, columns: int) -> Sensitivity:
    return mechanisms.bounded_moments(public.relation, columns) * (1.0 / public.rows)
