"""Private scales: where the values of each column lie and how widely they spread, learned with a share of the budget.

Releases that are each optional and fixed in advance by public facts:

1. histograms that show where the values of each column end, also inside declared bounds (ranges.py);
2. the mean and the second moment of each column, clipped to that range;
3. the same for the target of a regression, with a share of its own (target.py);
4. with a public start, whether it is better than none (start_check.py).

Everything else here is post-processing. Sensitivities and proofs: docs/guarantees/scales.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from discreet.data.public import Public
from discreet.privacy import accounting, mechanisms
from discreet.privacy.release import ReleasePlan
from discreet.scaling import shares
from discreet.scaling.public_scales import tells_target

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget


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
      "completed" some bounds were given, too little data for that: they are kept, the radius of each other column is
                  learned, and centres and widths of all if their noise allows it;
      "common"    too little data for that: one radius for all columns without bounds is learned;
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
        own = {name: getattr(self, name) for name in shares.NAMES}
        return own | {f"target_{name}": getattr(self.target_plan, name, None) for name in shares.NAMES}

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
            if counts > shares.NOISIEST_TARGET * public.rows * (1.0 + 1e-9):
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
    that lets the target or the columns stand out of the noise (shares.py).
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
    found = shares.share_out(public, budget, share, centred, target, target_centred)
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
    part = shares.MOMENTS / (shares.HISTOGRAM + shares.LOCATION + shares.CLOSER + shares.MOMENTS)
    alone = mechanisms.additive(budget, (share or shares.DEFAULT_SHARE) * part)
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
    found = shares.share_out_to_target(public, budget)
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
