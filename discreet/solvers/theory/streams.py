"""What is proved of the regret of FTRL: docs/guarantees/utility.md."""

from __future__ import annotations

import math
from dataclasses import replace

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.aggregation import row_norm
from discreet.solvers._shared.clipping import BATCH_CLIP, planned_slope
from discreet.solvers.ftrl.solver import FTRL, FTRLPlan
from discreet.solvers.theory.assumptions import UNIT_SCALES, planned_ridge, scales_of_clipping
from discreet.solvers.theory.lookup import bound_of
from discreet.theory.bound import Bound
from discreet.theory.ftrl import ftrl_bound


@bound_of.register(FTRL)
def _(solver: FTRL, plan: FTRLPlan, radius: float) -> Bound | None:
    """The bound on the expected average regret; None for several outputs, other penalties, a private number of rows."""
    ridge, problem, settings, public = planned_ridge(plan), plan.problem, plan.settings, plan.public
    if ridge is None or problem.loss.outputs > 1:
        return None
    coordinates = public.columns + problem.fit_intercept
    unit = mechanisms.clipped_sum(public.relation)
    noise = plan.mechanism.deviation(unit) * row_norm(solver.aggregation, settings.leaves) / public.rows
    clip = solver.clip
    if clip is None:
        clip = BATCH_CLIP.at(noise) * planned_slope(problem) * math.sqrt(coordinates)
    bound = ftrl_bound(
        settings.leaves,
        coordinates,
        lipschitz=clip,
        noise=plan.mechanism.deviation(unit * clip) / settings.leaf_rows,
        radius=radius,
        regularisation=problem.loss.smoothness * coordinates / solver.step,
        aggregation=solver.aggregation,
        passes=settings.epochs,
        ridge=ridge,
        unpenalised=bool(problem.fit_intercept) and ridge > 0.0,
    )
    assumptions = (bound.assumptions[0], UNIT_SCALES, *scales_of_clipping(plan, solver.clip))
    return replace(bound, assumptions=assumptions)
