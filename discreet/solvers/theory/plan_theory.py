"""Where a planned run stands between what no private algorithm can beat and what is proved of it.

Theorems are looked up by the type of the solver; what they need is known of a scaled problem without its rows, from the
plan alone or with the released scales. Proofs: docs/guarantees/utility.md. Where scales will be learned, scaled columns
are taken to have mean square 1, which is what the scales are for, and nothing is known of the penalty in their units
but that it is convex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from discreet._common.checks import number_in
from discreet._common.codec import written
from discreet._common.types import FloatArray
from discreet.privacy.relation import Relation
from discreet.problem.column_scaling import ColumnScaling, identity_scaling
from discreet.problem.losses.scalar import every_label
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
from discreet.scaling.learn import declared_scaling
from discreet.solvers.plan import Plan
from discreet.theory.bound import Bound
from discreet.theory.distance import DistanceLaw
from discreet.theory.lower import lower_bound


@singledispatch
def distance_of(solver: Any, plan: Plan, scaling: ColumnScaling) -> DistanceLaw:
    """The law for a kind of solver."""
    raise ValueError(f"no theorem bounds the distance of {solver.name} from its optimum.")


@singledispatch
def bound_of(solver: Any, plan: Plan, radius: float) -> Bound | None:
    """The bound for a kind of solver; the run is noisy."""
    return None


UNIT_COLUMNS = "scaled columns have mean squares of at most 1, as their released scales aim at"
AS_MANY_ROWS = "the table has no more rows than the public number"
UNIT_SCALES = "the scaled columns have a mean square of at most 1, and the penalty is that of columns of scale 1"
UNIT_TARGET = "the target has scale 1, declared or learned"


def scales_of_clipping(plan: Plan, clip: float | None) -> tuple[str, ...]:
    """What a bound assumes of the target where the threshold of a regression is the default, which grows with it."""
    return () if plan.problem.loss.classification or clip is not None else (UNIT_TARGET,)


def rows_are_counted(plan: Plan) -> bool:
    """Whether there is noise, and the number of rows is public, so that means of the losses are what is minimised."""
    return plan.is_noisy and plan.public.relation is not Relation.ADD_REMOVE


def planned_ridge(plan: Plan) -> float | None:
    """The l2 penalty of all columns, if their scales are 1; None where no theorem applies.

    That is with another penalty, with a constraint, without noise, or where the number of rows is private.
    """
    problem = plan.problem
    if not rows_are_counted(plan):
        return None
    if problem.constraint is not None or not problem.penalty.separable:
        return None
    terms = problem.penalty_terms(plan.public.columns)
    bounded = np.isfinite([terms.low, terms.high]).any()
    l2 = np.asarray(terms.l2)
    if bounded or np.asarray(terms.l1).any() or (l2 != l2[0]).any():
        return None
    return float(l2[0])


def least_gain(plan: Plan) -> float | None:
    """How much the mean loss can fall from its value at 0 at most; None for real targets, where it is not known."""
    loss = plan.problem.loss
    if not loss.classification or loss.outputs > 1:
        return None
    return float(loss.value(*every_label(loss)).max())  # losses of labels are never negative


def has_known_scales(plan: Plan) -> bool:
    """Whether the scales follow from declared bounds alone."""
    scaling = plan.scaling_plan
    return scaling.histogram is None and scaling.moments is None


def assumptions_of(plan: Plan) -> tuple[str, ...]:
    """What must hold beside the assumptions of a theorem."""
    found: tuple[str, ...] = ()
    if not has_known_scales(plan):
        found = (UNIT_COLUMNS, *scales_of_clipping(plan, getattr(plan.solver, "clip", None)))
    return (*found, AS_MANY_ROWS) if plan.public.relation is Relation.ADD_REMOVE else found


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
        return float(loss.value(*every_label(loss)).max())  # losses of labels are never negative


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
    known = PublicProblem.of(problem, scaling, plan.public.rows, plan.start)
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
    found = PublicProblem.of(problem, scaling, public.rows)
    if known:
        return found
    terms = found.penalty_terms._replace(l2=np.zeros(found.columns))  # in units that are not known yet
    return replace(found, penalty_terms=terms)


def _unit_columns(columns: int) -> ColumnScaling:
    return replace(identity_scaling(columns), low=np.full(columns, -1.0), high=np.full(columns, 1.0))


def start_gap(known: PublicProblem, steepest: float, radius: float) -> float:
    """A bound on the excess of the objective at the start, where the penalty is least."""
    return min(known.loss_at_zero(), steepest * radius)


NOTHING_PROVED = "no theorem covers this solver as planned"
PUBLIC_START = "the theorems begin at 0, and this run at public coefficients"


@dataclass(frozen=True)
class PlanTheory:
    """What theory says of a plan; everything is in the solver's scaled columns.

    Attributes
    ----------
    radius : float
        Bound on the norm of the optimum that was used.
    radius_is_assumed : bool
        False where the penalty bounds the norm.
    lower : Bound or None
        The order below which no private algorithm's error falls on the worst table.
    upper : Bound or None
        What is known of the planned run.
    reasons : tuple of str
        Why a bound is missing.
    """

    radius: float
    radius_is_assumed: bool
    lower: Bound | None
    upper: Bound | None
    reasons: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The upper bound over the order of the lower one; None where they are not about the same thing."""
        if self.lower is None or self.upper is None or "excess" not in self.upper.quantity or self.lower.value == 0.0:
            return None
        return self.upper.value / self.lower.value

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as JSON values."""
        return written(self) | {"ratio": self.ratio}

    def __str__(self) -> str:
        from discreet.solvers.plan import describe_theory

        return describe_theory(self)


def theory_of(plan: Plan, radius: float) -> PlanTheory:
    """Compare a plan with the bounds of the literature, from public facts alone."""

    radius, known = number_in("radius", radius, 0.0, above=True), planned_problem(plan)
    if not plan.is_noisy:
        return PlanTheory(radius, True, None, None, ("epsilon is infinite: there is no noise",))
    steepest = _gradient_norm(known)
    by_penalty = _radius_of_penalty(known)
    used = min(radius, by_penalty)
    lower: Bound | None = None
    why: tuple[str, ...] = ()
    try:
        lower = lower_bound(
            plan.public.rows,
            known.size,
            plan.budget,
            lipschitz=steepest,
            radius=used,
            strong_convexity=_convexity(known),
        )
    except ValueError as reason:
        why = (f"no lower bound: {reason}",)
    upper = None if plan.has_public_start else plan.error_bound(used)
    if upper is None:
        why = (*why, f"no upper bound: {PUBLIC_START if plan.has_public_start else NOTHING_PROVED}")
    return PlanTheory(used, by_penalty > radius, lower, upper, why)


def _gradient_norm(known: PublicProblem) -> float:
    """The norm of a row's gradient at a typical row; regressions in units of the target's scale."""
    from discreet.solvers._shared.descents import planned_slope

    loss = known.problem.loss
    slope = loss.lipschitz if math.isfinite(loss.lipschitz) else planned_slope(known.problem)
    return float(slope * math.sqrt(known.scaling.second_moment.sum() + known.problem.fit_intercept))


def _convexity(known: PublicProblem) -> float:
    return known.strong_convexity if known.problem.penalty.separable else 0.0


def _radius_of_penalty(known: PublicProblem) -> float:
    """How far from 0 the optimum can be, where every coordinate has an l2 penalty of known size; else infinite."""
    convexity = _convexity(known)
    if convexity == 0.0 or not known.zero_is_feasible or not math.isfinite(known.problem.loss.lipschitz):
        return math.inf
    largest = known.problem.loss.lipschitz * known.row_norm
    return min(largest / convexity, math.sqrt(2.0 * known.loss_at_zero() / convexity))
