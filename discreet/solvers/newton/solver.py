"""DP-Newton: few gradient steps in a metric that was learned privately once.

The second-moment matrix of the rows, released with noise, preconditions the gradient steps: few of them are enough, and
clipping and noise suit all directions. Each step minimises a quadratic model, penalty
included, which costs nothing. Halfway, a noisy Hessian replaces the bound on the curvature: where outcomes are rare, it
is many times smaller. Theorem and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet._common.checks import check_threshold, number_in, positive
from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.budget_split import BudgetSplit
from discreet.privacy.planned_release import PlannedRelease
from discreet.problem.blockwise import BlockwiseProblem
from discreet.scaling.norm_bound import norm_bound_at, noticeable
from discreet.scaling.plan import ScalingPlan
from discreet.scaling.second_moment import check_columns, noise_edge
from discreet.solvers._shared.averaging import TailAverage
from discreet.solvers._shared.clipping import planned_slope
from discreet.solvers._shared.noise_rules import NoiseRule
from discreet.solvers._shared.noiseless import until_optimal
from discreet.solvers.base import Run, Solver, calibrated
from discreet.solvers.newton.descent import Descent
from discreet.solvers.newton.releases import GRADIENTS, HESSIAN, releases_of
from discreet.solvers.newton.several_outputs import quiet_curvatures
from discreet.solvers.plan import Plan, Settings

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.losses import Loss
    from discreet.problem.problem import Problem


# Tuned on public tables (electricity, california, adult, acsincome), and never read from rows: docs/defaults.md.
STEPS, FEW_STEPS, FEWEST_STEPS = NoiseRule(0.6, 0.5, 30.0), NoiseRule(0.6, 1.0, 14.0), 4
GROWTH, MOST_GROWTH = 1.2, 100.0  # of the share from step to step, and in all: early steps need not be exact
NORM_BOUND_SHARE = 0.03  # for each of the up to four histograms of sizes
MOMENT_SHARE = 0.1  # for the second-moment matrix
HESSIAN_SHARE = 0.03  # for the Hessian halfway
LEAST_SHARE, MOST_SHARE = 1e-6, 0.8  # of the moment, and of both together
NOISIEST_HESSIAN = 0.5  # the edge of its noise, over the bound on the curvature; noisier ones are left out
LONG_RESIDUALS = 2.5  # what all but a few residuals keep below, in units of the usual one; normal ones: 2 to 3
LONG_ROWS_AT_LEAST = 0.16  # a histogram that cannot tell this fraction from noise is left out


@dataclass(frozen=True)
class NewtonSettings(Settings):
    """The gradient steps, and what is learned beside them."""

    steps: int
    learns_norm_bounds: bool  # from noisy counts of lengths; else the lowest bounds are used
    halfway: int  # the step before which threshold and curvature are learned anew; 0: never
    moment_share: float
    hessian_share: float


NewtonPlan = Plan[BudgetSplit, NewtonSettings]


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
        privately by default.
    moment_share : float
        Share of the budget (after the scales) for the second-moment matrix.
    hessian_share : float
        Share for one noisy Hessian halfway, which then replaces the bound on the curvature; with several outputs, for
        one curvature of each. 0 leaves it out. It is left out, too, where the table is too small for it, and for
        losses whose curvature jumps.
    average : bool
        Return the average of the later iterates, weighted by their shares of the budget, instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "newton"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    needs_all_rows: ClassVar[bool] = False

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
        check_columns(self.name, public.columns)
        columns = public.columns + problem.fit_intercept
        steps = int(self.steps) if self.steps is not None else default_steps(budget, public, columns)
        learned = enough_rows(budget, public)
        smooth = not problem.loss.discontinuous_curvature
        wanted = learned and smooth and self._quiet(problem.loss, public, budget, columns)
        hessian = self.hessian_share if wanted else 0.0
        shares = self._shares(steps, NORM_BOUND_SHARE if learned else 0.0, hessian, problem.loss.outputs)
        mechanism = calibrated(lambda z: BudgetSplit(z, shares), scaling_plan, budget, public)
        return mechanism, NewtonSettings(steps, learned, _halfway(steps), self.moment_share, shares[HESSIAN])

    def _releases(self, plan: NewtonPlan) -> list[PlannedRelease]:
        return releases_of(plan)

    def _standard_error(self, plan: NewtonPlan) -> float | None:
        """Every step goes all the way to the minimum; those of the second half are averaged by their shares."""
        if self.clip is not None and not plan.problem.loss.classification:
            return None
        columns, steps = plan.public.columns + plan.problem.fit_intercept, plan.settings.steps
        usual = math.sqrt(columns) * planned_slope(plan.problem)
        if not plan.problem.loss.classification:
            usual *= LONG_RESIDUALS
        clip = self.clip or (usual if plan.settings.learns_norm_bounds else norm_bound_at(0, usual))
        sensitivity = mechanisms.clipped_sum(plan.public.relation) * clip
        kept = range(GRADIENTS + (steps // 2 if self.average else steps - 1), GRADIENTS + steps)
        weights = np.array([plan.mechanism.shares[k] for k in kept])
        deviations = np.array([plan.mechanism.part(k).deviation(sensitivity) for k in kept]) / plan.public.rows
        mean = float(np.sqrt(((weights * deviations) ** 2).sum()) / weights.sum())
        return mean / plan.problem.loss.smoothness

    def _quiet(self, loss: Loss, public: Public, budget: Budget, columns: int) -> bool:
        """Whether the Hessian, or with several outputs the curvature of each, stands out of its noise."""
        if loss.outputs == 1:
            return quiet_hessian(self.hessian_share, budget, public, columns)
        return quiet_curvatures(self.hessian_share, budget, public.rows, public.relation, loss)

    def _shares(self, steps: int, limit: float, hessian: float, outputs: int = 1) -> tuple[float, ...]:
        """Shares of the budget in the order of the releases, summing to 1; what is not learned costs 0.

        The curvatures of several outputs have a bound that is known, the Hessian of one has not.
        """
        later = _halfway(steps) > 0
        before = (
            limit if self.radius is None else 0.0,
            self.moment_share,
            limit if self.clip is None else 0.0,
            limit if self.clip is None and later else 0.0,
            limit if hessian > 0.0 and later and outputs == 1 else 0.0,
            hessian if later else 0.0,
        )
        growing = min(GROWTH, MOST_GROWTH ** (1.0 / steps)) ** np.arange(steps)
        return (*before, *((1.0 - sum(before)) * growing / growing.sum()).tolist())

    def _descend(self, scaled: BlockwiseProblem, plan: NewtonPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, Descent(self, scaled, plan, run).exact_steps(), every=5)
        steps, shares = plan.settings.steps, plan.mechanism.shares
        descent, average = Descent(self, scaled, plan, run), TailAverage(steps, scaled.shape)
        for t in range(steps):
            descent.step(t)
            average.add(descent.w, shares[GRADIENTS + t])
            run.report(t + 1, steps, scaled, descent.w)
        return (average.mean() if self.average else descent.w), steps


def enough_rows(budget: Budget, public: Public) -> bool:
    """Whether the longest rows can be told from noise while they are few; else the lowest limits are used."""
    if budget.is_infinite:
        return True
    part = mechanisms.Gaussian(1.0 / (math.sqrt(NORM_BOUND_SHARE) * budget.gaussian_mu()))
    return noticeable(part, public.relation) <= LONG_ROWS_AT_LEAST * public.rows


def default_steps(budget: Budget, public: Public, columns: int) -> int:
    """Directions of little curvature need many steps and collect noise in each: the noise level decides.

    Some steps are needed anyhow, unless the noise is about as large as the gradients.
    """
    unit = mechanisms.clipped_sum(public.relation)
    noise = mechanisms.additive(budget, 1.0).deviation(unit) * math.sqrt(columns) / public.rows
    return max(FEWEST_STEPS, round(max(STEPS.at(noise), FEW_STEPS.at(noise))))


def quiet_hessian(share: float, budget: Budget, public: Public, columns: int) -> bool:
    """Whether the Hessian of rows of typical length would stand out of its noise."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.outer_products(public.relation, columns) * float(columns)
    deviation = mechanisms.additive(budget, share).deviation(sensitivity) / public.rows
    return noise_edge(columns, deviation) <= NOISIEST_HESSIAN


def _halfway(steps: int) -> int:
    """The step before which threshold and curvature are learned anew. 0: never."""
    return steps // 2
