"""What is proved of noisy gradient steps: docs/guarantees/utility.md, theorems G1 to G4, "Batches" and "ADMM".

And of the regret of FTRL, and of descent on coordinates and on random sets of them: G5 and G6 of that page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import row_norm
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers._shared.coordinates import Loops
from discreet.solvers._shared.descents import (
    curvature_bound,
    planned_slope,
    tail_length,
)
from discreet.solvers._shared.full_batch import FullBatchPlan, NoisyGradient
from discreet.solvers.admm import ADMM
from discreet.solvers.coordinate_descent import CoordinateDescent, CoordinateDescentPlan, CoordinateDescentSettings
from discreet.solvers.ftrl.solver import FTRL, FTRLPlan, stream_factor
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.plan import Plan
from discreet.solvers.sketched.sketches import Independent, Nice, Partition, Sketch
from discreet.solvers.sketched.solver import SketchedDescent, SketchedPlan
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
from discreet.theory.steps import NoisyCoordinateSteps, NoisyGradientSteps


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
        clip = stream_factor(noise) * planned_slope(problem) * math.sqrt(coordinates)
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


@distance_of.register(CoordinateDescent)
def _(solver: CoordinateDescent, plan: CoordinateDescentPlan, scaling: ColumnScaling) -> MomentDistance:
    """E |w - w*|^2 in the norm of the l2 penalties is at most twice the expected excess of the objective."""
    known, loops = public_problem(plan, scaling), plan.settings
    bound, clip, _, grid = solver.sizes(known, plan)
    _check(solver, loops, known, bound, clip)
    moved = coordinate_steps(solver, known, bound, clip, grid)
    convexity = float((known.penalty_terms.l2 * solver.step / bound).min())
    reference = "the minimiser of the same objective on the same clipped and scaled columns"
    gap = gap_after_loops(moved, loops, solver.average, math.inf, _start(known), convexity)
    return MomentDistance(known.penalty_terms.l2, known.outputs, reference, expected_square=2.0 * gap)


def coordinate_steps(
    solver: CoordinateDescent, known: PublicProblem, bound: FloatArray, clip: FloatArray, grid: NoisyGrid
) -> NoisyCoordinateSteps:
    """What a step does to the expected objective."""
    curvature = bound / solver.step  # a shorter step is the step of a larger smoothness constant
    l2 = known.penalty_terms.l2
    chance = bound / bound.sum() if solver.sampling == "proportional" else np.full(bound.size, 1.0 / bound.size)
    deviation = grid.scale * (math.sqrt(2.0) if grid.law == "laplace" else 1.0) / known.rows
    rounding = 0.5 * (known.rows + 1.0) / known.rows * grid.step  # every row's term and the noise: half a step each
    squares = known.outputs * (clip * (deviation + rounding)) ** 2
    least = float(chance.min())
    noise = float((chance / least * squares / (curvature + l2)).sum())
    rate = float((l2 / (curvature + l2)).min())
    return NoisyCoordinateSteps(least, noise, rate, solver.sampling != "proportional", max(1.0, solver.step))


def _start(known: PublicProblem) -> float:
    """A bound on the excess of the objective at the start, where the penalty is least."""
    steepest = known.problem.loss.lipschitz * known.entries
    return min(known.loss_at_zero(), float((steepest**2 / (2.0 * known.penalty_terms.l2)).sum()))


def _check(
    solver: CoordinateDescent,
    loops: CoordinateDescentSettings,
    known: PublicProblem,
    bound: FloatArray,
    clip: FloatArray,
) -> None:
    """Refuse what the theorem does not cover."""
    if known.origin is not None:
        raise ValueError("a public start is not covered, as nothing bounds its excess; start=None is.")
    if loops.sampling == "cyclic":
        raise ValueError('coordinates in a fixed order are not covered; sampling="uniform" and "proportional" are.')
    if loops.screening is not None:
        raise ValueError("screening moves coordinates back, which is not covered; screening=None is.")
    if solver.step > 1.0:
        raise ValueError(f"steps longer than 1/M_j are not covered; step=1 is. Got step={solver.step:g}.")
    loss = known.problem.loss
    largest = loss.smoothness * known.entries**2
    if solver.smoothness is None and (solver.step * largest > bound * known.rounding**2).any():
        allowed = float((bound / np.maximum(largest, np.finfo(float).tiny)).min())
        raise ValueError(
            "1/M_j is a longer step than the curvature allows that rows inside their limits can have; "
            f"step={0.999 * allowed:.4g} is covered, and so is step=1 with declared bounds and scale_share=0."
        )
    steepest = loss.lipschitz * known.entries
    needed = float((steepest / np.sqrt(bound / bound.sum())).max())
    why = "clipped entries of gradients are no gradient of a convex loss"
    check_unclipped(clip, steepest, needed, why)


def gap_after_loops(
    moved: NoisyCoordinateSteps,
    loops: Loops,
    average: bool,
    half_square: float,
    gap: float,
    convexity: float,
) -> float:
    """The expected excess of the objective after all loops, each of which ends at its mean or last iterate.

    `half_square` and `gap` are those of the start; `convexity` is the strong convexity in the norm of the steps.
    """
    done, outer = 0, min(loops.outer, loops.steps)
    for loop in range(outer):
        end = loops.steps * (loop + 1) // outer
        if not average:
            gap = moved.last(end - done, gap)
        else:
            half_square = min(half_square, gap / convexity if convexity > 0.0 else math.inf)
            half_square, gap = moved.mean(end - done, half_square, gap)
        done = end
    return gap


@bound_of.register(CoordinateDescent)
def _(solver: CoordinateDescent, plan: CoordinateDescentPlan, radius: float) -> Bound | None:
    """As an order only, where the run is not that of a theorem."""
    if solver.step >= 2.0 or (solver.step > 1.0 and not solver.average):
        return None
    known = planned_problem(plan)
    bound, clip, _, grid = solver.sizes(known, plan)
    moved = coordinate_steps(solver, known, bound, clip, grid)
    proved = plan.settings.sampling != "cyclic" and plan.settings.screening is None
    told = ["no entry of a row's gradient is larger than its threshold, where it would be clipped"]
    if not proved:
        told.append('proved for random coordinates (sampling="uniform") without screening; here they are taken as such')
    source = "docs/guarantees/utility.md, theorems G5 and G6, after Mangold's thesis (A.3.28)"
    steepest = float((clip**2).sum() ** 0.5)
    return _bound_of_loops(solver, plan, moved, known, bound / solver.step, steepest, radius, source, told, proved)


def _bound_of_loops(
    solver: CoordinateDescent | SketchedDescent, plan: Plan, moved: NoisyCoordinateSteps, known: PublicProblem,
    curvature: FloatArray, steepest: float, radius: float, source: str, told: list[str], proved: bool,
) -> Bound | None:  # fmt: skip
    """The bound on the excess after all loops, from a start within the radius."""
    half_square = 0.5 * float(curvature.max()) * radius**2
    gap = start_gap(known, steepest, radius)
    convexity = float((known.penalty_terms.l2 / curvature).min())
    value = gap_after_loops(moved, plan.settings, solver.average, half_square, gap, convexity)
    if math.isinf(value):
        return None
    assumed, settings = (*told, *assumptions_of(plan)), {"steps": float(plan.settings.steps)}
    return Bound(value, "expected excess of the objective", source, proved, assumed, settings)


@bound_of.register(SketchedDescent)
def _(solver: SketchedDescent, plan: SketchedPlan, radius: float) -> Bound | None:
    """As an order only, where the run is not the one of the theorem."""
    known = planned_problem(plan)
    sizes = solver.sizes(known, plan)
    if sizes.step >= 2.0 or (sizes.step > 1.0 and not solver.average):
        return None
    chances, clip = sizes.sketch.probabilities(), sizes.clip
    curvature, l2 = sizes.curvature / sizes.step, known.penalty_terms.l2
    squares = _squared_units(solver.noise, sizes.sketch, clip) * (sizes.grid.scale / known.rows) ** 2
    least = float(chances.min())
    moved = NoisyCoordinateSteps(
        least,
        float((chances / least * squares / (curvature + l2)).sum()),
        float((l2 / (curvature + l2)).min()),
        length=max(1.0, sizes.step),
    )
    shape = solver.noise == "equalised" or _equal(clip) or not isinstance(sizes.sketch, Nice)
    proved = _equal(chances) and not isinstance(sizes.sketch, Independent) and shape
    told = ["no row's gradient in a set is larger than its limit, where it would be clipped"]
    if not proved:
        told.append("proved for sets of one size, all equally likely, and noise in proportion to the thresholds")
    source, steepest = "docs/guarantees/utility.md, theorem G6", float(np.linalg.norm(clip))
    return _bound_of_loops(solver, plan, moved, known, curvature, steepest, radius, source, told, proved)


def _equal(values: FloatArray) -> bool:
    return bool(np.ptp(values) <= 1e-12 * values.max())


def _squared_units(noise: str, sketch: Sketch, clip: FloatArray) -> FloatArray:
    """The expected square of the unit of the noise of each coordinate, in a set that holds it."""
    squares = clip**2
    if isinstance(sketch, Partition):
        totals, counts = np.empty_like(squares), np.empty_like(squares)
        for block in map(list, sketch.blocks):
            totals[block], counts[block] = squares[block].sum(), len(block)
    else:
        # Of the other coordinates, as many as a set has beside this one.
        others = sketch.size - 1.0 if isinstance(sketch, Nice | Independent) else 0.0
        part = min(1.0, others / max(1, clip.size - 1))
        totals, counts = squares + part * (squares.sum() - squares), np.full_like(squares, 1.0 + others)
    return counts * squares if noise == "equalised" else totals
