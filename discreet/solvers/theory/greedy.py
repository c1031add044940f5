"""What is proved of greedy coordinate descent: docs/guarantees/utility.md."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet.privacy import mechanisms
from discreet.solvers._shared.clipping import COORDINATE_CLIP, planned_slope
from discreet.solvers.greedy_coordinate_descent.solver import GreedyCoordinateDescent, GreedyPlan
from discreet.solvers.theory.assumptions import UNIT_SCALES, least_gain, planned_ridge, scales_of_clipping
from discreet.solvers.theory.lookup import bound_of
from discreet.theory.bound import Bound
from discreet.theory.greedy_cd import greedy_cd_bound


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
