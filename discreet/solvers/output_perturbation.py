"""Output perturbation: minimise to a certified distance, then add noise once.

Rows are clipped to a public norm and every coordinate gets an l2 penalty, so that one row can move the minimiser
only so far. Theorem and proof: docs/guarantees/output-perturbation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import OutputNoise
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import until_optimal
from discreet.solvers._shared.minimisers import (
    MinimiserRelease,
    calibrated_output_noise,
    clip_rows,
    default_ridge,
    minimising_steps,
    minimum_within,
    radius_of,
    restarts_for,
    row_curvature,
    unbounded_slope,
)
from discreet.solvers.base import Capabilities, Run
from discreet.solvers.plan import COEFFICIENT, Plan, Settings

TOLERANCE = 1e-3  # how much the error of the minimiser may add to the sensitivity


@dataclass(frozen=True)
class OutputPerturbationSettings(Settings):
    """The strongly convex problem whose minimiser is released."""

    row_norm: float  # to which rows are shortened; infinite without noise
    ridge: float  # least l2 penalty of a coordinate
    steps: int  # the most that the minimiser may need


OutputPerturbationPlan = Plan[OutputNoise, OutputPerturbationSettings]


@dataclass(frozen=True)
class OutputPerturbation(MinimiserRelease[OutputNoise, OutputPerturbationSettings]):
    """Minimise as well as one can, then add noise to the result, once.

    Parameters
    ----------
    row_norm : float, optional
        Norm to which rows are clipped, in units of the root of the number of (scaled) columns.
    ridge : float, optional
        Least l2 penalty of a coordinate, intercept included, in the solver's (scaled) columns. The default weighs
        its bias against the noise, which falls with it; both are public.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "output-perturbation"
    capabilities = Capabilities(pure=True)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        reason = super().why_incompatible(problem, budget) or unbounded_slope(problem)
        if reason is not None:
            return reason
        if problem.penalty.strong_convexity == 0.0:
            return "it needs an l2 penalty (alpha > 0 and l1_ratio < 1), without which one row can move the optimum far"
        if not problem.separable and problem.penalty.penalty_terms(1).l1.any():
            return "it has no form for an l1 penalty together with a constraint that is not separable"
        return None

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[OutputNoise, OutputPerturbationSettings]:
        mechanism = calibrated_output_noise(scaling_plan, budget, public)
        if budget.is_infinite:
            return mechanism, OutputPerturbationSettings(math.inf, 0.0, 0)
        radius = radius_of(problem, public, budget, self.row_norm)
        ridge = self.ridge or default_ridge(problem, public, radius, mechanism)
        gradient = perturbations.gradient_sum(public.relation, problem.loss, radius)
        steepness = problem.loss.lipschitz * radius
        distance = _distance(gradient.l2, public.rows, ridge)
        limit = restarts_for(row_curvature(problem.loss, radius), ridge, steepness, distance)
        return mechanism, OutputPerturbationSettings(radius, ridge, limit.steps)

    def _releases(self, plan: OutputPerturbationPlan) -> list[PlannedRelease]:
        dimension = plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)
        event, sensitivity = plan.mechanism.event, self.planned_sensitivity(plan)
        return planned_releases("minimiser", event, plan.public.relation, sensitivity, COEFFICIENT, dimension)

    def planned_sensitivity(self, plan: OutputPerturbationPlan) -> mechanisms.Sensitivity:
        """How far the minimiser can move if no l2 penalty exceeds the planned ridge."""
        return sensitivity_of(plan, plan.settings.ridge)[0] * (1.0 / math.sqrt(plan.settings.ridge))

    def _descend(self, scaled: ScaledProblem, plan: OutputPerturbationPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, minimising_steps(scaled))
        mechanism, settings = plan.mechanism, plan.settings
        scaled = clip_rows(scaled, settings.row_norm, settings.ridge)
        sensitivity, distance = sensitivity_of(plan, float(scaled.penalty_terms.l2.min()))
        root = np.sqrt(scaled.penalty_terms.l2)
        minimum = minimum_within(scaled, settings.row_norm, distance)
        w = mechanism.release(run.rng, minimum * root, sensitivity) / root
        # How many steps it took depends on the rows: the number that is reported is the one that was planned.
        run.report(settings.steps, settings.steps, scaled, w)
        return w, settings.steps


def sensitivity_of(plan: OutputPerturbationPlan, convexity: float) -> tuple[mechanisms.Sensitivity, float]:
    """How far the found minimum can move in the norm of the penalty, and how far from the minimiser it may be."""
    rows = plan.public.rows
    gradient = perturbations.gradient_sum(plan.public.relation, plan.problem.loss, plan.settings.row_norm)
    distance = _distance(gradient.l2, rows, convexity)
    return perturbations.minimiser(gradient, convexity, rows, distance), distance


def _distance(gradient: float, rows: int, convexity: float) -> float:
    """An error of the minimiser that adds the tolerated part to its sensitivity, in the norm of the penalty."""
    return 0.5 * TOLERANCE * gradient / (rows * math.sqrt(convexity))
