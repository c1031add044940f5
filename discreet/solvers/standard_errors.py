"""The noise of a coefficient that a plan lets expect, by the type of its solver; docs/plans.md."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from discreet.privacy import mechanisms
from discreet.solvers._shared.clipping import COORDINATE_CLIP, GRADIENT_CLIP, averaged_noise, planned_slope
from discreet.solvers._shared.full_batch import FullBatchPlan
from discreet.solvers.coordinate_descent import CoordinateDescent, CoordinateDescentPlan
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.newton.planning import GRADIENTS, LONG_RESIDUALS, NewtonPlan, first_slope
from discreet.solvers.newton.solver import Newton, weights_of_iterates
from discreet.solvers.output_perturbation import OutputPerturbation, OutputPerturbationPlan
from discreet.solvers.plan import Plan
from discreet.solvers.screened import Screened, ScreenedPlan
from discreet.solvers.sufficient_statistics import (
    MOMENT,
    SufficientStatistics,
    SufficientStatisticsPlan,
    moment_sensitivity,
)


@singledispatch
def standard_error_of(solver: Any, plan: Plan) -> float | None:
    """The noise of a coefficient of a scaled column, in target scales for regressions; None: not predicted."""
    return None


@standard_error_of.register(GradientDescent)
def _(solver: GradientDescent, plan: FullBatchPlan) -> float | None:
    """Each step moves by `step` / columns of the way in every direction, and its noise fades as slowly."""
    if solver.clip is not None and not plan.problem.loss.classification:
        return None
    columns, public, mechanism = _coordinates(plan), plan.public, plan.mechanism
    level = mechanism.deviation(mechanisms.clipped_sum(public.relation)) / public.rows
    clip = solver.clip or GRADIENT_CLIP.at(level) * planned_slope(plan.problem) * math.sqrt(columns)
    noise = mechanism.deviation(mechanisms.clipped_sum(public.relation, columns) * clip) / public.rows
    steps = plan.settings.steps
    kept = steps - steps // 2 if solver.average else 1
    return noise / plan.problem.loss.smoothness * averaged_noise(steps, kept, 1.0 - solver.step / columns)


@standard_error_of.register(CoordinateDescent)
def _(solver: CoordinateDescent, plan: CoordinateDescentPlan) -> float | None:
    """Each visit goes all the way to the minimum of its coordinate; the visits of the last loop are averaged."""
    if solver.smoothness is not None or (solver.clip is not None and not plan.problem.loss.classification):
        return None
    level = plan.mechanism.deviation(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
    usual = COORDINATE_CLIP.at(level) * planned_slope(plan.problem)
    clip = usual if solver.clip is None else solver.clip / math.sqrt(_coordinates(plan))
    visits = max(1, round(plan.settings.passes / min(plan.settings.outer, plan.settings.steps)))
    kept = averaged_noise(visits, visits if solver.average else 1, 1.0 - solver.step)
    return level * clip / plan.problem.loss.smoothness * kept


@standard_error_of.register(Newton)
def _(solver: Newton, plan: NewtonPlan) -> float | None:
    """Every step goes all the way to the minimum; those of the second half are averaged by their shares."""
    if plan.settings.is_constant or (solver.clip is not None and not plan.problem.loss.classification):
        return None
    usual = math.sqrt(_coordinates(plan)) * planned_slope(plan.problem)
    learned = 1.0 if plan.problem.loss.classification else LONG_RESIDUALS
    clip = solver.clip or usual * (learned if plan.settings.learns_norm_bounds else first_slope(plan.problem))
    sensitivity = mechanisms.clipped_sum(plan.public.relation) * clip
    parts = (plan.mechanism.part(GRADIENTS + t) for t in range(plan.settings.steps))
    noise = np.array([part.deviation(sensitivity) for part in parts])
    noise = noise / (plan.public.rows * plan.problem.loss.usual_curvature)  # of each step, in the metric
    return float(np.linalg.norm(weights_of_iterates(solver, plan) * noise))


@standard_error_of.register(OutputPerturbation)
def _(solver: OutputPerturbation, plan: OutputPerturbationPlan) -> float | None:
    """That of its one release."""
    return solver._releases(plan)[0].deviation if plan.problem.loss.classification else None


@standard_error_of.register(SufficientStatistics)
def _(solver: SufficientStatistics, plan: SufficientStatisticsPlan) -> float:
    """Noise of the moments with the target, and as much again from those among the columns."""
    radius = solver.radius or math.sqrt(_coordinates(plan) + 1)
    return plan.mechanism.part(MOMENT).deviation(moment_sensitivity(plan) * radius**2)


@standard_error_of.register(Screened)
def _(solver: Screened, plan: ScreenedPlan) -> float | None:
    """The root mean square over all columns; those that are not chosen have a coefficient of 0."""
    fit = solver.fit_plan(plan)
    return fit.standard_error and fit.standard_error * math.sqrt(_coordinates(fit) / _coordinates(plan))


def _coordinates(plan: Plan) -> int:
    return plan.public.columns + plan.problem.fit_intercept
