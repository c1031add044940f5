"""What the theorem on Frank-Wolfe says of a planned run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.privacy import mechanisms
from discreet.problem.constraints import AxisPolytope
from discreet.solvers._shared.clipping import planned_slope
from discreet.solvers._shared.noise_rules import NoiseRule
from discreet.solvers._shared.planned_penalty import least_gain, rows_are_counted, scales_of_clipping

if TYPE_CHECKING:
    from discreet.solvers.frank_wolfe.solver import FrankWolfe, FrankWolfePlan
    from discreet.theory.bound import Bound


def planned_bound(solver: FrankWolfe, plan: FrankWolfePlan, radius: float, rule: NoiseRule) -> Bound | None:
    """The bound on the expected excess of the mean loss; None with an intercept, or a private number of rows.

    The radius is that of the set in the L1 norm, whose curvature is at most smoothness (2 radius)^2.
    """
    from discreet.theory.frank_wolfe import frank_wolfe_bound

    problem, settings, constraint = plan.problem, plan.settings, plan.problem.constraint
    if problem.fit_intercept or not rows_are_counted(plan):
        return None
    starts_at_zero = isinstance(constraint, AxisPolytope) and constraint.symmetric
    gap = least_gain(plan) if starts_at_zero else None
    if settings.schedule == "constant" and gap is None:
        return None
    relative = plan.mechanism.scale(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
    clip = solver.clip if solver.clip is not None else rule.at(relative) * planned_slope(problem)
    bound = frank_wolfe_bound(
        settings.steps,
        settings.vertices,
        selection_scale=relative * clip * radius,
        curvature=problem.loss.smoothness * (2.0 * radius) ** 2,
        schedule="constant" if settings.schedule == "constant" else "2/(t+2)",
        gap=gap,
    )
    extra = (
        "the scaled columns have a mean square of at most 1",
        f"in scaled columns the vertices have L1 norms of at most {radius:g}",
        *scales_of_clipping(plan, solver.clip),
    )
    return replace(bound, assumptions=bound.assumptions + extra)
