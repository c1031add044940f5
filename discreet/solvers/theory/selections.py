"""What is proved of private choices of coordinates, vertices and points: docs/guarantees/utility.md."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet.privacy import mechanisms
from discreet.problem.constraints import AxisPolytope
from discreet.solvers._shared.clipping import COORDINATE_CLIP, planned_slope
from discreet.solvers.exponential.solver import (
    TARGET_SPREADS,
    ExponentialMechanism,
    ExponentialPlan,
    loss_range,
    unit_set,
)
from discreet.solvers.frank_wolfe.solver import ENTRY_CLIP, FrankWolfe, FrankWolfePlan
from discreet.solvers.greedy_coordinate_descent.solver import GreedyCoordinateDescent, GreedyPlan
from discreet.solvers.theory.assumptions import (
    UNIT_SCALES,
    least_gain,
    planned_ridge,
    rows_are_counted,
    scales_of_clipping,
)
from discreet.solvers.theory.lookup import bound_of
from discreet.theory.bound import Bound
from discreet.theory.greedy_cd import greedy_cd_bound
from discreet.theory.selections import exponential_bound, frank_wolfe_bound


@bound_of.register(GreedyCoordinateDescent)
def _(solver: GreedyCoordinateDescent, plan: GreedyPlan, radius: float) -> Bound | None:
    """The bound on the expected excess of the objective; None for other steps, penalties and selections.

    With an l2 penalty the update divides by M_j plus the penalty. Except for the scores of "gs-q" that constant is
    taken for all coordinates, the intercept too, whose noise stays that of its own, smaller one.
    """
    ridge, coordinates = planned_ridge(plan), plan.public.columns + plan.problem.fit_intercept
    plain = solver.selection == "gumbel" and solver.step == 1.0 and solver.least_entry == 0.0
    if ridge is None or not plain or plan.settings.measures_columns:
        return None
    smooth = np.full(coordinates, plan.problem.loss.smoothness)
    if solver.smoothness is not None:
        smooth = np.asarray(solver.smoothness, dtype=np.float64)
    unit = _score_unit(solver.rule, smooth, ridge, plan.problem.fit_intercept)
    if unit is None:
        return None
    noise = _noise(solver, plan, smooth)
    update = smooth + ridge
    reach = math.sqrt(coordinates * float(update.max())) * radius  # of |w|_(M,1) for |w|_2 <= radius
    scale = noise * unit
    gap = min(0.5 * reach**2, least_gain(plan) or math.inf)
    steps = plan.settings.steps
    bound = greedy_cd_bound(steps, coordinates, selection_scale=scale, deviation=noise, gap=gap, radius=2.0 * reach)
    columns = UNIT_SCALES if solver.smoothness is None else "the declared smoothness bounds the curvature of the loss"
    told = (columns, *scales_of_clipping(plan, solver.clip), f"the optimum has a norm of at most {radius:g}")
    extra: tuple[str, ...] = (f"the iterates have a root mean square norm of at most {radius:g} over the runs",)
    if ridge > 0.0 and not plan.problem.fit_intercept:
        convexity = ridge / float(update.max())
        strong = greedy_cd_bound(
            steps, coordinates, selection_scale=scale, deviation=noise, gap=gap, convexity=convexity
        )
        if strong.value < bound.value:
            bound, extra = strong, ()
    return replace(bound, assumptions=(*bound.assumptions[:2], *told, *extra))


def _score_unit(rule: str, smooth: np.ndarray, ridge: float, intercept: bool) -> float | None:
    """What the solver's scores are multiplied by to be those of the theorem, |G_j| / sqrt(M_j + ridge).

    None where no number does it for all coordinates: their ranking is then another one.
    """
    if ridge == 0.0 or rule == "gs-q":  # its scores are those of the theorem, without ridge for the intercept
        return 1.0
    if np.ptp(smooth) > 0.0 or (rule == "gs-r" and intercept):
        return None
    root = math.sqrt(float(smooth[0]) / (float(smooth[0]) + ridge))
    return root if rule == "gs-s" else 1.0 / root


def _noise(solver: GreedyCoordinateDescent, plan: GreedyPlan, smooth: np.ndarray) -> float:
    """The scale of both noises of a step in units of sqrt(M_j); for regressions in units of the target's scale."""
    relative = plan.mechanism.deviation(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
    if solver.clip is not None:
        return relative * solver.clip / math.sqrt(float(smooth.sum()))
    return relative * COORDINATE_CLIP.at(relative) * planned_slope(plan.problem) / math.sqrt(float(smooth[0]))


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
