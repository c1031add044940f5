"""What is proved of private choices, and of perturbed minimisers and objectives: docs/guarantees/utility.md.

Output and objective perturbation minimise loss + penalty + what the ridge adds to the penalty. At a vector of norm
`radius` the ridge costs at most ridge/2 radius^2: so far apart are their objective and the one that was asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import perturbations
from discreet.privacy.mechanisms.perturbations import OutputNoise, SphericalLaplace
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.constraints import AxisPolytope
from discreet.problem.scaled_problem import scaled_penalty_terms
from discreet.solvers._shared.descents import COORDINATE_CLIP, planned_slope, planned_threshold
from discreet.solvers._shared.minimisers import row_curvature
from discreet.solvers.exponential import TARGET_SPREADS, ExponentialMechanism, ExponentialPlan, loss_range, unit_set
from discreet.solvers.frank_wolfe.solver import ENTRY_CLIP, FrankWolfe, FrankWolfePlan
from discreet.solvers.greedy_coordinate_descent import GreedyCoordinateDescent, GreedyPlan
from discreet.solvers.objective_perturbation import (
    ObjectivePerturbation,
    ObjectivePerturbationPlan,
    distance_of_minimum,
)
from discreet.solvers.output_perturbation import TOLERANCE, OutputPerturbation, OutputPerturbationPlan, sensitivity_of
from discreet.solvers.plan import Plan
from discreet.solvers.theory.plan_theory import (
    UNIT_SCALES,
    bound_of,
    distance_of,
    least_gain,
    planned_ridge,
    rows_are_counted,
    scales_of_clipping,
)
from discreet.theory.bound import Bound
from discreet.theory.cd import greedy_cd_bound
from discreet.theory.distance import (
    ContractionDistance,
    DistanceLaw,
    GaussianDistance,
    NoiseKind,
    NoiseNorm,
    SphericalDistance,
)
from discreet.theory.selections import (
    exponential_bound,
    frank_wolfe_bound,
    objective_perturbation_bound,
    output_perturbation_bound,
)


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
    return (
        relative
        * planned_threshold(COORDINATE_CLIP, relative, plan)
        * planned_slope(plan.problem)
        / math.sqrt(float(smooth[0]))
    )


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
    clip = (
        solver.clip
        if solver.clip is not None
        else planned_threshold(ENTRY_CLIP, relative, plan) * planned_slope(problem)
    )
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
