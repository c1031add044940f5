"""What the learning of scales will release, in words, with the sensitivities that its draws use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.planned_release import PlannedRelease, planned_releases
from discreet.scaling.learn import histogram_groups

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
    relation = public.relation
    groups = len(histogram_groups(scaling_plan, public))
    measured = (public.columns if scaling_plan.measures_columns else 0) + scaling_plan.target
    counts = mechanisms.one_hot_counts(relation, groups)
    means = mechanisms.bounded_values(relation, groups) * (1.0 / public.rows)
    moments = mechanisms.bounded_moments(relation, measured) * (1.0 / public.rows)
    parts: list[tuple[str, mechanisms.Additive | None, Sensitivity, str]] = [
        ("scales: histograms of where values end", scaling_plan.histogram, counts, COUNT),
        ("scales: location of columns far from 0", scaling_plan.location, means, RANGE),
        ("scales: closer histograms of these", scaling_plan.closer, counts, COUNT),
        ("scales: means and mean squares", scaling_plan.moments, moments, RANGE),
    ]
    return [
        release
        for what, mechanism, sensitivity, unit in parts
        if mechanism is not None
        for release in planned_releases(what, mechanism.event, relation, sensitivity, unit)
    ]
