"""What is proved of noisy gradient steps: docs/guarantees/utility.md, theorems G1 to G4, "Batches" and "ADMM".

And of the regret of FTRL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import row_norm
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers._shared.descents import BATCH_CLIP, curvature_bound, planned_slope, tail_length
from discreet.solvers._shared.full_batch import FullBatchPlan, NoisyGradient
from discreet.solvers.admm import ADMM
from discreet.solvers.ftrl.solver import FTRL, FTRLPlan
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.plan import Plan
from discreet.solvers.stochastic_gradient import SGDPlan, StochasticGradientDescent, threshold_and_grid
from discreet.solvers.theory.plan_theory import (
    UNIT_SCALES,
    PublicProblem,
    assumptions_of,
    bound_of,
    check_unclipped,
    distance_of,
    has_known_scales,
    planned_problem,
    planned_ridge,
    public_problem,
    scales_of_clipping,
    start_gap,
)
from discreet.theory.bound import Bound
from discreet.theory.distance import AveragedContractionDistance, ContractionDistance, DistanceLaw, MomentDistance
from discreet.theory.fixed_point import NoisyContraction, printed_rate
from discreet.theory.ftrl import ftrl_bound
from discreet.theory.gd import least_bound
from discreet.theory.steps import NoisyGradientSteps


@distance_of.register(GradientDescent)
def _(solver: GradientDescent, plan: FullBatchPlan, scaling: ColumnScaling) -> DistanceLaw:
    """The steps are a contraction with Gaussian or Laplace noise."""
    if solver.shrink or plan.rows_per_person > 1:  # clipped gradients of persons are not those of a convex loss
        raise ValueError(f"no theorem bounds the distance of {solver.name} from its optimum.")
    known = public_problem(plan, scaling)
    gradient = NoisyGradient(known, plan, solver.clip)
    grid, rows, steps = gradient.grid, plan.public.rows, plan.settings.steps
    # Every row's term and the noise are rounded by at most half a step in every entry of the sum.
    rounding = 0.5 * (rows + 1.0) / rows * grid.step * math.sqrt(known.size)
    length = solver.step / curvature_bound(known)
    averaged = tail_length(steps) if solver.average else 1
    run = ProximalSteps(known, length, gradient.clip, rounding)
    if grid.law == "normal":
        return gaussian_law(run, grid.scale / rows, steps, averaged)
    return moment_law(run, 2.0 * known.size * (grid.scale / rows) ** 2, steps, averaged)


@bound_of.register(GradientDescent)
def _(solver: GradientDescent, plan: FullBatchPlan, radius: float) -> Bound | None:
    if solver.shrink or plan.rows_per_person > 1:
        return None
    known = planned_problem(plan)
    gradient = NoisyGradient(known, plan, solver.clip)
    noise = known.size * gradient.deviation**2
    return _bound_of_steps(solver, plan, known, gradient.clip, noise, radius)


@distance_of.register(StochasticGradientDescent)
def _(solver: StochasticGradientDescent, plan: SGDPlan, scaling: ColumnScaling) -> DistanceLaw:
    """A bound on the expected squared distance."""
    known = public_problem(plan, scaling)
    clip, grid = threshold_and_grid(solver, known, plan)
    rows, batch, steps = plan.public.rows, plan.settings.batch, plan.settings.steps
    rounding = 0.5 * (rows + 1.0) / batch * grid.step * math.sqrt(known.size)  # no batch is larger than the table
    run = ProximalSteps(known, solver.step / curvature_bound(known), clip, rounding)
    noise = _noise_of_batches(plan, known, min(clip, plan.problem.loss.lipschitz * known.row_norm), grid)
    return moment_law(run, noise, steps, tail_length(steps) if solver.average else 1)


@bound_of.register(StochasticGradientDescent)
def _(solver: StochasticGradientDescent, plan: SGDPlan, radius: float) -> Bound | None:
    """The batches' variance is part of the noise."""
    known = planned_problem(plan)
    clip, grid = threshold_and_grid(solver, known, plan)
    return _bound_of_steps(solver, plan, known, clip, _noise_of_batches(plan, known, clip, grid), radius)


def _noise_of_batches(plan: SGDPlan, known: BlockwiseProblem, steepest: float, grid: NoisyGrid) -> float:
    """Expected squared norm of the noise in a batch's mean gradient: of the sample and of privacy.

    Rows have gradients of norm at most `steepest`; each joins a Poisson batch with probability batch / rows.
    """
    rows, batch = plan.public.rows, plan.settings.batch
    variance = steepest**2 / batch * (1.0 if plan.settings.sampler == "single" else 1.0 - batch / rows)
    return variance + known.outputs * known.columns * (grid.scale / batch) ** 2


@bound_of.register(ADMM)
def _(solver: ADMM, plan: FullBatchPlan, radius: float) -> Bound | None:
    """An order of growth only: rows' losses alone are not strongly convex, as the theorem on ADMM needs."""
    known = planned_problem(plan)
    convexity = known.strong_convexity if known.problem.penalty.separable else 0.0
    if convexity == 0.0:
        return None
    length = solver.step_length(known)
    noise = known.size * (length * solver.noisy_gradient(known, plan).deviation) ** 2
    kept = 1.0 / (1.0 + length * convexity)
    order = printed_rate(plan.settings.steps, radius**2, kept, noise, 1.0, 0.0)
    return replace(order, assumptions=("the penalty's strong convexity decides the contraction",))


def _bound_of_steps(
    solver: GradientDescent | StochasticGradientDescent,
    plan: Plan,
    known: PublicProblem,
    clip: float,
    noise: float,
    radius: float,
) -> Bound | None:
    """What is proved of the planned steps, the expected squared norm of their noise being `noise`."""
    smoothness, steps = curvature_bound(known), plan.settings.steps
    steepest = min(clip, known.problem.loss.lipschitz * _largest_norm(plan, known))
    run = NoisyGradientSteps(
        step=solver.step / smoothness,
        steps=steps,
        first=steps - (tail_length(steps) if solver.average else 1) + 1,
        noise=noise,
        radius=radius,
        gap=start_gap(known, steepest, radius),
        lipschitz=steepest,
        smoothness=smoothness,
        penalty_convexity=known.strong_convexity if known.problem.penalty.separable else 0.0,
        penalty=_kind_of_penalty(known),
    )
    if not run.excess() or _inexact(known):
        return None
    return least_bound([run], *_loss_of_clipped_gradients(plan, known, clip), *assumptions_of(plan))


def _loss_of_clipped_gradients(plan: Plan, known: PublicProblem, clip: float) -> tuple[str, ...]:
    """What clipped gradients mean for the objective that is bounded."""
    if clip >= known.problem.loss.lipschitz * _largest_norm(plan, known):
        return ()
    if known.outputs > 1:
        return (f"no row's gradient is longer than {clip:.4g}, where it would be clipped",)
    return (f"the objective is that of the loss whose gradients are clipped to norm {clip:.4g}",)


def _largest_norm(plan: Plan, known: PublicProblem) -> float:
    return known.row_norm if has_known_scales(plan) else math.inf


def _kind_of_penalty(known: PublicProblem) -> str:
    problem = known.problem
    free = problem.penalty.separable and not problem.penalty_terms(1).l1.any()
    if problem.constraint is not None or not free or np.isfinite(known.penalty_terms.low).any():
        return "any"
    return "l2" if problem.penalty.strong_convexity > 0.0 else "none"


def _inexact(known: PublicProblem) -> bool:
    """Whether the proximal map is that of two things one after the other."""
    return not known.problem.separable and bool(known.penalty_terms.l1.any())


@dataclass(frozen=True)
class ProximalSteps:
    """w <- prox(w - length (clipped mean gradient + rounding + noise)), from the start of the problem on.

    Attributes
    ----------
    known : PublicProblem
    length : float
        Step length.
    clip : float
        Norm to which each row's gradient is clipped.
    rounding : float
        Largest norm of the rounding errors in a mean gradient.
    """

    known: PublicProblem
    length: float
    clip: float
    rounding: float

    def __post_init__(self) -> None:
        known = self.known
        excess = self.length * known.curvature / 2.0
        if excess > 1.0:
            raise ValueError(
                "the step is longer than 2 over the largest curvature that rows inside their limits can have; "
                f"step divided by {1.001 * excess:.4g} is covered, and so is every step below 2 "
                "with declared bounds and scale_share=0."
            )
        if known.outputs > 1:
            most = known.problem.loss.lipschitz * known.row_norm
            why = "with several classes, clipped gradients are no gradients of a convex loss"
            check_unclipped(np.array([self.clip]), np.array([most]), most, why)

    @property
    def contraction(self) -> float:
        """By how much a step without noise brings two points closer together."""
        return 1.0 / (1.0 + self.length * self.known.strong_convexity)

    @property
    def start(self) -> float:
        """A bound on the distance of the start from the optimum: that of the point nearest to 0, and from there on."""
        known, convexity = self.known, self.known.strong_convexity
        steepest = min(self.clip, known.problem.loss.lipschitz * known.row_norm)
        nearest = min(steepest / convexity, math.sqrt(2.0 * known.loss_at_zero() / convexity))
        return nearest + known.start_distance

    @property
    def error(self) -> float:
        """How far the rounding of all steps can move an iterate.

        A step moves it by at most length * kept * rounding, and kept / (1 - kept) is 1 / (length * convexity).
        """
        return self.rounding / self.known.strong_convexity

    @property
    def reference(self) -> str:
        most = self.known.problem.loss.lipschitz * self.known.row_norm
        if self.clip >= most:
            return "the minimiser of the same objective on the same clipped and scaled columns"
        return (
            "the minimiser of the same objective on the same clipped and scaled columns, with the gradient of every "
            f"row clipped to norm {self.clip:.4g} (a loss that grows linearly from there on)"
        )


def gaussian_law(run: ProximalSteps, deviation: float, steps: int, averaged: int) -> ContractionDistance:
    """The distance of the last iterate, or of the mean of the last ones; `deviation` is that of a mean gradient."""
    known = run.known
    law = ContractionDistance if averaged == 1 else partial(AveragedContractionDistance, averaged=averaged)
    return law(
        np.ones(known.columns),
        known.outputs,
        run.reference,
        contraction=run.contraction,
        deviation=run.contraction * run.length * deviation,
        steps=steps,
        start=run.start,
        error=run.error,
    )


def moment_law(run: ProximalSteps, noise: float, steps: int, averaged: int) -> MomentDistance:
    """The same from the expected squared norm of the noise in a mean gradient, whatever its law."""
    known, first = run.known, steps - averaged + 1
    moved = NoisyContraction(run.contraction, (run.contraction * run.length) ** 2 * noise)
    squares = [moved.after(step, run.start**2) for step in range(first, steps + 1)]
    expected = math.sqrt(math.fsum(squares) / averaged) + run.error
    return MomentDistance(np.ones(known.columns), known.outputs, run.reference, expected_square=expected**2)


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
