"""Where a planned run stands between what no private algorithm can beat and what is proved of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet._common.checks import number_in
from discreet._common.codec import written
from discreet.solvers.plan import Plan
from discreet.solvers.theory.public_problem import PublicProblem
from discreet.theory.bound import Bound
from discreet.theory.lower import lower_bound

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
    from discreet.solvers.theory.public_problem import planned_problem

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
    from discreet.solvers._shared.clipping import planned_slope

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
