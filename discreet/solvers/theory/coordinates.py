"""What is proved of descent on coordinates and on random sets of them: docs/guarantees/utility.md, G5 and G6."""

from __future__ import annotations

import math

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.problem.column_scaling import ColumnScaling
from discreet.solvers._shared.coordinates import Loops
from discreet.solvers.coordinate_descent import CoordinateDescent, CoordinateDescentPlan, CoordinateDescentSettings
from discreet.solvers.sketched.sketches import Independent, Nice, Partition, Sketch
from discreet.solvers.sketched.solver import SketchedDescent, SketchedPlan
from discreet.solvers.theory.plan_theory import (
    PublicProblem,
    assumptions_of,
    bound_of,
    check_unclipped,
    distance_of,
    planned_problem,
    public_problem,
    start_gap,
)
from discreet.theory.bound import Bound
from discreet.theory.distance import MomentDistance
from discreet.theory.steps import NoisyCoordinateSteps


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
    curvature = bound / solver.step
    half_square = 0.5 * float(curvature.max()) * radius**2
    gap = start_gap(known, float((clip**2).sum() ** 0.5), radius)
    convexity = float((known.penalty_terms.l2 / curvature).min())
    value = gap_after_loops(moved, plan.settings, solver.average, half_square, gap, convexity)
    if math.isinf(value):
        return None
    proved = plan.settings.sampling != "cyclic" and plan.settings.screening is None
    told = ["no entry of a row's gradient is larger than its threshold, where it would be clipped"]
    if not proved:
        told.append('proved for random coordinates (sampling="uniform") without screening; here they are taken as such')
    return Bound(
        value,
        "expected excess of the objective",
        "docs/guarantees/utility.md, theorems G5 and G6, after Mangold's thesis (A.3.28)",
        proved,
        (*told, *assumptions_of(plan)),
        {"steps": float(plan.settings.steps)},
    )


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
    half_square = 0.5 * float(curvature.max()) * radius**2
    gap = start_gap(known, float(np.linalg.norm(clip)), radius)
    convexity = float((l2 / curvature).min())
    value = gap_after_loops(moved, plan.settings, solver.average, half_square, gap, convexity)
    if math.isinf(value):
        return None
    shape = solver.noise == "equalised" or _equal(clip) or not isinstance(sizes.sketch, Nice)
    proved = _equal(chances) and not isinstance(sizes.sketch, Independent) and shape
    told = ["no row's gradient in a set is larger than its limit, where it would be clipped"]
    if not proved:
        told.append("proved for sets of one size, all equally likely, and noise in proportion to the thresholds")
    source = "docs/guarantees/utility.md, theorem G6"
    settings = {"steps": float(plan.settings.steps)}
    quantity = "expected excess of the objective"
    return Bound(value, quantity, source, proved, (*told, *assumptions_of(plan)), settings)


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
