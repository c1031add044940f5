"""What is proved of private choices of vertices and of points: docs/guarantees/utility.md."""

from __future__ import annotations

from dataclasses import replace

from discreet.privacy import mechanisms
from discreet.problem.constraints import AxisPolytope
from discreet.solvers._shared.clipping import planned_slope
from discreet.solvers.exponential.solver import (
    TARGET_SPREADS,
    ExponentialMechanism,
    ExponentialPlan,
    loss_range,
    unit_set,
)
from discreet.solvers.frank_wolfe.solver import ENTRY_CLIP, FrankWolfe, FrankWolfePlan
from discreet.solvers.theory.assumptions import least_gain, rows_are_counted, scales_of_clipping
from discreet.solvers.theory.lookup import bound_of
from discreet.theory.bound import Bound
from discreet.theory.selections import exponential_bound, frank_wolfe_bound


@bound_of.register(FrankWolfe)
def _(solver: FrankWolfe, plan: FrankWolfePlan, radius: float) -> Bound | None:
    """The bound on the expected excess of the mean loss; None with an intercept, or a private number of rows.

    The radius is that of the set in the L1 norm, whose curvature is at most smoothness (2 radius)^2.
    """
    problem, settings, constraint = plan.problem, plan.settings, plan.problem.constraint
    if problem.fit_intercept or not rows_are_counted(plan):
        return None
    starts_at_zero = isinstance(constraint, AxisPolytope) and constraint.symmetric
    gap = least_gain(plan) if starts_at_zero else None
    if settings.schedule == "constant" and gap is None:
        return None
    relative = plan.mechanism.scale(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
    clip = solver.clip if solver.clip is not None else ENTRY_CLIP.at(relative) * planned_slope(problem)
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


@bound_of.register(ExponentialMechanism)
def _(solver: ExponentialMechanism, plan: ExponentialPlan, radius: float) -> Bound | None:
    """On the mean loss over the region, in expectation, for the largest region: docs/guarantees/utility.md."""
    problem, public = plan.problem, plan.public
    if not rows_are_counted(plan):
        return None
    labels = problem.loss.classification
    margin = solver.largest_margin(problem, unit_set(problem, public.columns), public.columns)
    largest = loss_range(problem.loss, margin, 0.0 if labels else TARGET_SPREADS)
    rate = public.rows * plan.mechanism.rate(mechanisms.clipped_sum(public.relation) * largest)
    bound = exponential_bound(rate, columns=public.columns + problem.fit_intercept, objective="mean")
    clipped = f"rows have margins as those with entries of at most {solver.row_size:g}, and the optimum is in reach"
    target = () if labels else (f"the target has scale 1 and is clipped at {TARGET_SPREADS:g}",)
    return replace(bound, assumptions=(*bound.assumptions, clipped, *target))
