"""What is proved of perturbed minimisers and objectives: docs/guarantees/utility.md.

Both solvers minimise loss + penalty + what the ridge adds to the penalty. At a vector of norm `radius` the ridge costs
at most ridge/2 radius^2: so far apart are their objective and the one that was asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import OutputNoise, SphericalLaplace
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_problem import scaled_penalty_terms
from discreet.solvers._shared.certified_minimum import row_curvature
from discreet.solvers.objective_perturbation import (
    ObjectivePerturbation,
    ObjectivePerturbationPlan,
    distance_of_minimum,
)
from discreet.solvers.output_perturbation import TOLERANCE, OutputPerturbation, OutputPerturbationPlan, sensitivity_of
from discreet.solvers.plan import Plan
from discreet.solvers.theory.assumptions import planned_ridge
from discreet.solvers.theory.lookup import bound_of, distance_of
from discreet.theory.bound import Bound
from discreet.theory.distance import (
    ContractionDistance,
    DistanceLaw,
    GaussianDistance,
    NoiseKind,
    NoiseNorm,
    SphericalDistance,
)
from discreet.theory.perturbations import objective_perturbation_bound, output_perturbation_bound


@distance_of.register(OutputPerturbation)
def _(solver: OutputPerturbation, plan: OutputPerturbationPlan, scaling: ColumnScaling) -> DistanceLaw:
    """The law of the noise itself, in the norm of the l2 penalties."""
    if not plan.is_noisy:
        raise ValueError("epsilon is infinite: there is no noise whose effect could be bounded.")
    problem, outputs = plan.problem, plan.problem.loss.outputs
    terms = scaled_penalty_terms(problem, scaling if problem.separable else scaling.uniform())
    penalty = np.maximum(terms.l2, plan.settings.ridge)
    sensitivity, distance = sensitivity_of(plan, float(penalty.min()))
    grid = plan.mechanism.grid(sensitivity, outputs * penalty.size)
    # Value and noise are rounded to the nearest point of the grid: half a step each, in every entry.
    error = distance + grid.step * math.sqrt(outputs * penalty.size)
    reference = (
        "the minimiser of the same objective on the same scaled columns, with rows shortened to norm "
        f"{plan.settings.row_norm:.4g} and an l2 penalty of at least {plan.settings.ridge:.4g} on every coordinate"
    )
    of = (penalty, outputs, reference)
    if grid.law == "spherical":
        return SphericalDistance(*of, scale=grid.scale, error=error)
    if problem.constraint is not None:  # the result is projected, so that only its norm has a known law
        return ContractionDistance(*of, contraction=0.0, deviation=grid.scale, steps=1, start=0.0, error=error)
    return GaussianDistance(*of, deviation=grid.scale, error=error)


@bound_of.register(OutputPerturbation)
def _(solver: OutputPerturbation, plan: OutputPerturbationPlan, radius: float) -> Bound | None:
    """On the objective, in expectation; None with other penalties or a constraint."""
    if planned_ridge(plan) is None:
        return None
    row_norm, ridge = plan.settings.row_norm, plan.settings.ridge
    sensitivity = solver.planned_sensitivity(plan).l2
    loss = plan.problem.loss
    bound = output_perturbation_bound(
        _coefficients(plan),
        noise=plan.mechanism.multiplier * sensitivity,
        kind=_kind(plan.mechanism),
        smoothness=row_curvature(loss, row_norm),
        lipschitz=loss.lipschitz * row_norm,
        ridge=ridge,
        error=0.5 * TOLERANCE * sensitivity,
    )
    return _of_the_objective(bound, bound.value + 0.5 * ridge * radius**2, radius, row_norm)


@bound_of.register(ObjectivePerturbation)
def _(solver: ObjectivePerturbation, plan: ObjectivePerturbationPlan, radius: float) -> Bound | None:
    """A random linear term, then a minimiser with a little noise; on the objective, in expectation."""
    if planned_ridge(plan) is None:
        return None
    row_norm, ridge = plan.settings.row_norm, plan.settings.ridge
    loss, kind, coefficients = plan.problem.loss, _kind(plan.mechanism.linear), _coefficients(plan)
    gradient = perturbations.gradient_sum(plan.public.relation, loss, row_norm)
    linear = NoiseNorm(kind, plan.mechanism.multiplier * gradient.l2 / plan.public.rows, coefficients)
    bound = objective_perturbation_bound(
        coefficients, noise=linear.scale, radius=radius, ridge=ridge, kind=kind, objective="mean"
    )
    error = distance_of_minimum(plan.mechanism, gradient.l2, plan.public.rows, ridge) / math.sqrt(ridge)
    hiding = plan.mechanism.output_noise.multiplier * perturbations.within(error).l2
    square = NoiseNorm(kind, hiding, coefficients).mean_square + error**2
    # At the perturbed minimum the gradient of the objective is minus the linear term.
    inexact = linear.mean * error + 0.5 * (row_curvature(loss, row_norm) + ridge) * square
    return _of_the_objective(bound, bound.value + inexact, radius, row_norm)


def _coefficients(plan: Plan) -> int:
    return int(plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept))


def _kind(noise: OutputNoise) -> NoiseKind:
    return "spherical" if isinstance(noise, SphericalLaplace) else "gaussian"


def _of_the_objective(bound: Bound, value: float, radius: float, row_norm: float) -> Bound:
    """The same bound for the objective that was asked for, on rows as the solver clips them."""
    return replace(
        bound,
        value=value,
        quantity=f"expected excess of the objective on rows shortened to norm {row_norm:.4g}",
        assumptions=("the loss is convex", f"the optimum has a norm of at most {radius:g}"),
    )
