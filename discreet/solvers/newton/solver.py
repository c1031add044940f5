"""DP-Newton: few gradient steps in a metric that was learned privately once.

The second-moment matrix of the rows, released with noise, preconditions the gradient steps: few of them are enough, and
clipping and noise suit all directions. Each step minimises a quadratic model, penalty
included, which costs nothing. Halfway, a noisy Hessian replaces the bound on the curvature: where outcomes are rare, it
is many times smaller. Theorem and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.checks import check_threshold, number_in, positive
from discreet.privacy.mechanisms.additive import BudgetSplit
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_target, unscaled
from discreet.scaling.second_moment import check_columns
from discreet.solvers._shared.loops import descend, until_optimal
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.newton.descent import Descent, only_constant
from discreet.solvers.newton.planning import (
    GRADIENTS,
    HESSIAN_SHARE,
    LEAST_SHARE,
    MOMENT_SHARE,
    MOST_SHARE,
    NewtonPlan,
    NewtonSettings,
    fits_constant,
    planned,
    releases_of,
)
from discreet.solvers.newton.settling import settled

if TYPE_CHECKING:
    from discreet._common.types import FloatArray
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.release import PlannedRelease
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import BlockwiseProblem


@dataclass(frozen=True)
class Newton(Solver[BudgetSplit, NewtonSettings]):
    """Gradient steps preconditioned by a private second-moment matrix.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default more of them if the noise is weak.
    clip : float, optional
        Norm, in the metric, to which each row's gradient is clipped; learned privately by default.
    radius : float, optional
        Norm to which rows are clipped in the second-moment matrix, in the solver's (scaled) columns; learned
        privately by default. Where the metric is that of a public table, the norms of its rows are used instead.
    moment_share : float
        Share of the budget (after the scales) for the second-moment matrix.
    hessian_share : float
        Share for one noisy Hessian halfway, which then replaces the bound on the curvature; with several outputs, for
        one curvature of each. 0 leaves it out. It is left out, too, where the table is too small for it, and for
        losses whose curvature jumps.
    average : bool
        Return the average of the later iterates, weighted by their shares of the budget, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "newton"
    capabilities = Capabilities(separable_only=True, start=True, persons=True, stored=True)

    steps: int | None = None
    clip: float | None = None
    radius: float | None = None
    moment_share: float = MOMENT_SHARE
    hessian_share: float = HESSIAN_SHARE
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        check_threshold("radius", self.radius)
        number_in("moment_share", self.moment_share, LEAST_SHARE, MOST_SHARE)
        number_in("hessian_share", self.hessian_share, 0.0, MOST_SHARE)
        if self.moment_share + self.hessian_share > MOST_SHARE:
            raise ValueError(
                f"moment_share and hessian_share may be {MOST_SHARE} together, to leave some to the steps."
            )

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BudgetSplit, NewtonSettings]:
        shares, settings = planned(self, problem, public, budget)
        if not any(shares):  # all is spent on the target's mean
            return BudgetSplit(1.0, shares), settings
        if not settings.is_constant:
            check_columns(self.name, public.columns)
        return calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public), settings

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        if fits_constant(self, problem, public, budget):
            facts = facts_for_scales(public, problem.loss.log_link)
            return unscaled(False) if problem.loss.classification else plan_target(facts, budget)
        return super()._plan_scaling(problem, public, budget)

    def _releases(self, plan: NewtonPlan) -> list[PlannedRelease]:
        return releases_of(plan)

    def _descend(self, scaled: BlockwiseProblem, plan: NewtonPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, Descent(self, scaled, plan, run).exact_steps(), every=5)
        if plan.settings.is_constant:
            return only_constant(scaled, plan, run), 0
        descent = Descent(self, scaled, plan, run)
        w, _ = descend(scaled, run, plan.settings.steps, descent.planned_steps(), self.average)
        return settled(descent, w, weights_of_iterates(self, plan)), plan.settings.steps


def weights_of_iterates(solver: Newton, plan: NewtonPlan) -> FloatArray:
    """With which weight the iterate after each step is part of the result."""
    weights = np.array(plan.mechanism.shares[GRADIENTS:])
    weights[: plan.settings.steps // 2 if solver.average else -1] = 0.0
    return weights / weights.sum()
