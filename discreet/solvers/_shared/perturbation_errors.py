"""What the theorems on perturbed minimisers and objectives say of a planned run.

Both solvers minimise loss + penalty + what the ridge adds to the penalty. At a vector of norm `radius` the ridge costs
at most ridge/2 radius^2: so far apart are their objective and the one that was asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import ObjectiveNoise, OutputNoise, SphericalLaplace
from discreet.solvers._shared.certified_minimum import row_curvature
from discreet.solvers._shared.planned_penalty import planned_ridge

if TYPE_CHECKING:
    from discreet.solvers.plan import Plan
    from discreet.theory.bound import Bound
    from discreet.theory.noise_norm import NoiseKind


def output_bound(
    plan: Plan[OutputNoise, Any], radius: float, row_norm: float, ridge: float, noise: float, error: float
) -> Bound | None:
    """Noise of this scale on a vector within `error` of the minimiser; None with other penalties or a constraint."""
    from discreet.theory.output_perturbation import output_perturbation_bound

    if planned_ridge(plan) is None:
        return None
    loss = plan.problem.loss
    bound = output_perturbation_bound(
        _coefficients(plan),
        noise=noise,
        kind=_kind(plan.mechanism),
        smoothness=row_curvature(loss, row_norm),
        lipschitz=loss.lipschitz * row_norm,
        ridge=ridge,
        error=error,
    )
    return _of_the_objective(bound, bound.value + 0.5 * ridge * radius**2, radius, row_norm)


def objective_bound(
    plan: Plan[ObjectiveNoise, Any], radius: float, row_norm: float, ridge: float, distance: float
) -> Bound | None:
    """A random linear term, then a minimiser within `distance` (in the norm of the ridge) with a little noise."""
    from discreet.theory.noise_norm import NoiseNorm
    from discreet.theory.objective_perturbation import objective_perturbation_bound

    if planned_ridge(plan) is None:
        return None
    loss, kind, coefficients = plan.problem.loss, _kind(plan.mechanism.linear), _coefficients(plan)
    gradient = perturbations.gradient_sum(plan.public.relation, loss, row_norm)
    linear = NoiseNorm(kind, plan.mechanism.multiplier * gradient.l2 / plan.public.rows, coefficients)
    bound = objective_perturbation_bound(
        coefficients, noise=linear.scale, radius=radius, ridge=ridge, kind=kind, objective="mean"
    )
    error = distance / math.sqrt(ridge)
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
