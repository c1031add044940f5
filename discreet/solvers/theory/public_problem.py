"""What is known of a scaled problem without its rows: from a plan alone, or with the scales that were released.

Theorems and proofs: docs/guarantees/utility.md. Where scales will be learned, scaled columns are taken to have mean
square 1, which is what the scales are for, and nothing is known of the penalty in their units but that it is convex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import ColumnScaling, identity_scaling
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock, scaled_penalty_terms, scaled_start
from discreet.scaling.learn import declared_scaling
from discreet.solvers.plan import Plan
from discreet.solvers.theory.assumptions import has_known_scales


@dataclass(frozen=True, eq=False, kw_only=True)
class PublicProblem(BlockwiseProblem):
    """Penalty, limits and scales of a problem whose rows are not at hand."""

    def blocks(self) -> Iterable[ScaledBlock]:
        raise RuntimeError("a public problem has no rows.")

    @cached_property
    def entries(self) -> FloatArray:
        """The largest size that an entry of each scaled column can have: values are clipped before they are scaled."""
        scaling = self.scaling
        reach = np.maximum(np.abs(scaling.low - scaling.shift), np.abs(scaling.high - scaling.shift))
        sizes = np.where(scaling.frozen, 0.0, reach / scaling.scale * self.rounding)
        return np.append(sizes, np.ones(int(self.problem.fit_intercept)))

    @property
    def rounding(self) -> float:
        """By which factor scaled entries may be larger in single precision."""
        return 1.0 + float(np.finfo(np.float32).eps)

    @property
    def row_norm(self) -> float:
        return float(np.linalg.norm(self.entries))

    @property
    def size(self) -> int:
        """Number of weights of all outputs."""
        return self.columns * self.outputs

    @property
    def curvature(self) -> float:
        """A bound on the curvature of the mean loss."""
        return float(self.problem.loss.smoothness * self.row_norm**2)

    @property
    def strong_convexity(self) -> float:
        """The least l2 penalty of a coordinate."""
        return float(self.penalty_terms.l2.min(initial=math.inf))

    @property
    def zero_is_feasible(self) -> bool:
        return self.problem.constraint is None and not self.nearest_to_zero().any()

    @property
    def start_distance(self) -> float:
        """How far the public start is from where the solver would begin without one."""
        return float(np.linalg.norm(self.start() - self.nearest_to_zero()))

    def loss_at_zero(self) -> float:
        """How far the mean loss of a classification can fall from its value at 0; infinite for real targets."""
        loss = self.problem.loss
        if not loss.classification or not self.zero_is_feasible:
            return math.inf
        labels = np.array([-1.0, 1.0]) if loss.outputs == 1 else np.arange(loss.outputs, dtype=np.float64)
        margins = np.zeros(labels.size) if loss.outputs == 1 else np.zeros((labels.size, loss.outputs))
        return float(loss.value(margins, labels).max())  # losses of labels are never negative


def public_problem(plan: Plan, scaling: ColumnScaling) -> PublicProblem:
    """What is known of the plan's problem in released scales; a ValueError where no theorem on distances applies."""
    problem, name = plan.problem, plan.solver.name
    if not plan.is_noisy:
        raise ValueError("epsilon is infinite: there is no noise whose effect could be bounded.")
    if plan.public.relation is Relation.ADD_REMOVE:
        raise ValueError(
            f'the number of rows is private, and with it the curvature; relation="replace" or "zero_out" is covered '
            f"for {name}."
        )
    if not problem.penalty.separable:
        raise ValueError(f"the {problem.penalty.name} penalty is not covered; separable ones, such as L2, are.")
    if not problem.separable:
        scaling = scaling.uniform()
    known = PublicProblem(
        problem=problem,
        scaling=scaling,
        rows=plan.public.rows,
        penalty_terms=scaled_penalty_terms(problem, scaling),
        origin=scaled_start(problem, scaling, plan.start),
    )
    if not problem.separable and known.penalty_terms.l1.any():
        raise ValueError("an l1 penalty together with a constraint that is not separable is not covered.")
    if known.strong_convexity == 0.0:
        raise ValueError(
            "every coordinate needs an l2 penalty, so that there is one optimum; an L2 penalty together with "
            "fit_intercept=False is covered."
        )
    return known


def check_unclipped(clip: FloatArray, largest: FloatArray, needed: float, why: str) -> None:
    """Refuse thresholds below the largest gradients there can be; `needed` is the setting that would be enough."""
    if math.isinf(needed):
        raise ValueError(f"{why}, and this loss needs clipping; one with bounded slopes, such as Huber's, is covered.")
    if (clip < largest).any():
        enough = needed * (1.0 + 1e-6)  # thresholds are rounded
        raise ValueError(f"{why}; clip={enough:.9g} or more clips nothing, and is covered.")


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


def start_gap(known: PublicProblem, steepest: float, radius: float) -> float:
    """A bound on the excess of the objective at the start, where the penalty is least."""
    return min(known.loss_at_zero(), steepest * radius)
