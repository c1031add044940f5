"""What the learning of scales will release, in words, with the sensitivities that its draws use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.planned_release import PlannedRelease, planned_releases
from discreet.scaling.learn import counted_columns
from discreet.scaling.start_check import check_sensitivity

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.scaling.plan import ScalingPlan

COUNT = "rows per count"
RANGE = "of a column's half-width"


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
