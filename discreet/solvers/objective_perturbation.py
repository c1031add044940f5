"""Objective perturbation: add a random linear term to the objective, then minimise it.

A little noise is added to the result as well, so that the proof needs no exact minimiser. Theorem and proof:
docs/guarantees/objective-perturbation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import ObjectiveNoise
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import until_optimal
from discreet.solvers._shared.minimisers import (
    MinimiserRelease,
    clip_rows,
    minimising_steps,
    minimum_within,
    radius_of,
    restarts_for,
    row_curvature,
    unbounded_slope,
    with_linear_term,
)
from discreet.solvers.base import Capabilities, Run, calibrated
from discreet.solvers.plan import Plan, Settings

DETERMINANT_SHARE = 0.1  # of epsilon, for the ratio of the determinants,
MOST_DETERMINANT = 3.0  # but no more than this: the ridge is then a twentieth of the curvature over the rows
TOLERANCE = 1e-6  # error of the minimiser, as a fraction of what the noise moves it


@dataclass(frozen=True)
class ObjectivePerturbationSettings(Settings):
    """The strongly convex problem that gets a random linear term."""

    row_norm: float  # to which rows are shortened; infinite without noise
    ridge: float  # least l2 penalty of a coordinate
    determinant_epsilon: float  # what the Hessian determinants of neighbours cost
    steps: int  # the most that the minimiser may need


ObjectivePerturbationPlan = Plan[ObjectiveNoise, ObjectivePerturbationSettings]


@dataclass(frozen=True)
class ObjectivePerturbation(MinimiserRelease[ObjectiveNoise, ObjectivePerturbationSettings]):
    """Minimise the objective plus a random linear term.

    Parameters
    ----------
    row_norm : float, optional
        Norm to which rows are clipped, in units of the root of the number of (scaled) columns.
    ridge : float, optional
        Least l2 penalty of a coordinate, intercept included, in the solver's (scaled) columns. The guarantee needs
        one; the default is what a tenth of epsilon asks for.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "objective-perturbation"
    capabilities = Capabilities(pure=True, separable_only=True, single_output=True)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        reason = super().why_incompatible(problem, budget) or unbounded_slope(problem)
        if reason is not None:
            return reason
        if budget.kind in ("zcdp", "gdp") and not budget.is_infinite:
            return "its cost is known in (epsilon, delta) only, not in zCDP or Gaussian DP"
        c = problem.penalty_terms(1)
        if problem.constraint is not None or np.isfinite([c.low, c.high]).any():
            return "its proof needs weights that are free of constraints"
        if c.l1.any():
            return "its proof needs a penalty without an l1 part"
        return None

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[ObjectiveNoise, ObjectivePerturbationSettings]:
        tails, pure = perturbations.tails_of(public.relation, problem.loss), budget.kind == "pure"
        if budget.is_infinite:
            return ObjectiveNoise(0.0, 0.0, tails, pure), ObjectivePerturbationSettings(math.inf, 0.0, 0.0, 0)
        epsilon = budget.amount  # other kinds of budgets are refused
        radius = radius_of(problem, public, budget, self.row_norm)
        wanted = min(DETERMINANT_SHARE * epsilon, MOST_DETERMINANT)
        ridge = self.ridge or _ridge_for(problem, public.rows, radius, wanted)
        shift = perturbations.log_determinants(problem.loss, radius, public.rows, ridge)
        if shift >= epsilon:
            least = _ridge_for(problem, public.rows, radius, epsilon)
            raise ValueError(
                f"ridge must be well above {least:.3g} for this budget and {public.rows} rows; got {ridge:g}."
            )
        mechanism = calibrated(lambda z: ObjectiveNoise(z, shift, tails, pure), scaling_plan, budget, public)
        steepness = problem.loss.lipschitz * radius
        distance = 0.5 * distance_of_minimum(mechanism, steepness, public.rows, ridge)
        limit = restarts_for(row_curvature(problem.loss, radius), ridge, steepness, distance)
        return mechanism, ObjectivePerturbationSettings(radius, ridge, shift, limit.steps)

    def _releases(self, plan: ObjectivePerturbationPlan) -> list[PlannedRelease]:
        relation, rows = plan.public.relation, plan.public.rows
        gradient = perturbations.gradient_sum(relation, plan.problem.loss, plan.settings.row_norm) * (1.0 / rows)
        linear, output = accounting.flatten(plan.mechanism.event)  # in this order
        what, hidden = "minimiser with a random linear term", "noise that hides the error of the minimiser"
        dimension = plan.public.columns + plan.problem.fit_intercept
        return planned_releases(what, linear[0], relation, gradient, "per entry of the linear term", dimension) + (
            planned_releases(hidden, output[0], relation)
        )

    def _descend(self, scaled: ScaledProblem, plan: ObjectivePerturbationPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite:
            return until_optimal(scaled, run, minimising_steps(scaled))
        mechanism, settings, rows = plan.mechanism, plan.settings, scaled.rows
        scaled = clip_rows(scaled, settings.row_norm, settings.ridge)
        gradient = perturbations.gradient_sum(plan.public.relation, plan.problem.loss, settings.row_norm)
        grid, convexity = mechanism.linear.grid(gradient, scaled.columns), float(scaled.penalty_terms.l2.min())
        linear_term = grid.noise(run.rng, scaled.shape) / rows
        distance = distance_of_minimum(mechanism, gradient.l2, rows, convexity)
        # The theorem is about a continuous linear term; rounding it moves the minimiser, by half the distance at most.
        if grid.step * math.sqrt(scaled.columns) / (rows * math.sqrt(convexity)) > distance:
            raise ValueError("objective-perturbation takes no table with so many columns.")
        root = np.sqrt(scaled.penalty_terms.l2)
        minimum = minimum_within(with_linear_term(scaled, linear_term), settings.row_norm, 0.5 * distance)
        w = mechanism.output_noise.release(run.rng, minimum * root, perturbations.within(distance)) / root
        # How many steps it took depends on the rows: the number that is reported is the one that was planned.
        run.report(settings.steps, settings.steps, scaled, w)
        return w, settings.steps


def _ridge_for(problem: Problem, rows: int, radius: float, shift: float) -> float:
    """The ridge at which the determinants of neighbours differ by a factor of at most e^shift."""
    return row_curvature(problem.loss, radius) / (rows * math.expm1(shift))


def distance_of_minimum(mechanism: ObjectiveNoise, gradient: float, rows: int, convexity: float) -> float:
    """An error of the minimiser that is small against what the noise does to it, in the norm of the penalty."""
    return TOLERANCE * mechanism.multiplier * gradient / (rows * math.sqrt(convexity))
