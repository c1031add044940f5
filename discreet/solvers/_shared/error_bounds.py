"""What theorems say of a planned run, from the plan alone: the parts that solvers share.

Theorems and proofs: docs/guarantees/utility.md. Where scales will be learned, scaled columns are taken to have mean
square 1, which is what the scales are for, and nothing is known of the penalty in their units but that it is convex.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from discreet.privacy.relation import Relation
from discreet.problem.blockwise import scaled_penalty_terms
from discreet.problem.column_scaling import ColumnScaling, identity_scaling
from discreet.scaling.learn import declared_scaling
from discreet.solvers._shared.clipping import curvature_bound
from discreet.solvers._shared.planned_penalty import scales_of_clipping
from discreet.solvers._shared.public_problem import PublicProblem
from discreet.solvers.plan import Plan
from discreet.theory.bound import Bound
from discreet.theory.coordinate_steps import NoisyCoordinateSteps
from discreet.theory.gd import least_bound
from discreet.theory.gradient_steps import NoisyGradientSteps

UNIT_COLUMNS = "scaled columns have mean squares of at most 1, as their released scales aim at"
AS_MANY_ROWS = "the table has no more rows than the public number"


class LoopSettings(Protocol):
    """How many steps there are, in how many loops."""

    @property
    def steps(self) -> int: ...

    @property
    def outer(self) -> int: ...


def has_known_scales(plan: Plan) -> bool:
    """Whether the scales follow from declared bounds alone."""
    scaling = plan.scaling_plan
    return scaling.histogram is None and scaling.moments is None


def planned_problem(plan: Plan) -> PublicProblem:
    """The problem in the columns in which it will be solved, as far as the plan tells."""
    problem, public = plan.problem, plan.public
    known = has_known_scales(plan)
    scaling = declared_scaling(plan.scaling_plan, public) if known else _unit_columns(public.columns)
    if problem.common_scale:
        scaling = scaling.uniform()
    terms = scaled_penalty_terms(problem, scaling)
    if not known:
        terms = terms._replace(l2=np.zeros_like(terms.l2))  # in units that are not known yet
    return PublicProblem(problem=problem, scaling=scaling, rows=public.rows, penalty_terms=terms)


def _unit_columns(columns: int) -> ColumnScaling:
    return replace(identity_scaling(columns), low=np.full(columns, -1.0), high=np.full(columns, 1.0))


def assumptions_of(plan: Plan) -> tuple[str, ...]:
    """What must hold beside the assumptions of a theorem."""
    found: tuple[str, ...] = ()
    if not has_known_scales(plan):
        found = (UNIT_COLUMNS, *scales_of_clipping(plan, getattr(plan.solver, "clip", None)))
    return (*found, AS_MANY_ROWS) if plan.public.relation is Relation.ADD_REMOVE else found


def start_gap(known: PublicProblem, steepest: float, radius: float) -> float:
    """A bound on the excess of the objective at the start, where the penalty is least."""
    return min(known.loss_at_zero(), steepest * radius)


def gradient_run_bound(
    plan: Plan, known: PublicProblem, *, step: float, clip: float, noise: float, steps: int, averaged: int,
    radius: float,
) -> Bound | None:  # fmt: skip
    """What is proved of gradient steps of `step` over the curvature; None if nothing is."""
    smoothness = curvature_bound(known)
    steepest = min(clip, known.problem.loss.lipschitz * _largest_norm(plan, known))
    run = NoisyGradientSteps(
        step=step / smoothness,
        steps=steps,
        first=steps - averaged + 1,
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
    return least_bound([run], *clipping_told(plan, known, clip), *assumptions_of(plan))


def clipping_told(plan: Plan, known: PublicProblem, clip: float) -> tuple[str, ...]:
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


def gap_after_loops(
    moved: NoisyCoordinateSteps,
    loops: LoopSettings,
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
