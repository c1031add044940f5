"""DP-GD: full-batch gradient descent; each row's gradient is clipped, noise is added to their sum.

Projected onto a constraint or proximal for a penalty. Theorem and proof: docs/guarantees/gd.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray
from discreet.privacy import mechanisms
from discreet.privacy.planned_release import PlannedRelease
from discreet.problem.blockwise import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.averaging import tail_length
from discreet.solvers._shared.clipping import curvature_bound, planned_slope
from discreet.solvers._shared.error_bounds import gradient_run_bound, planned_problem
from discreet.solvers._shared.full_batch import (
    FullBatchPlan,
    FullBatchSettings,
    NoisyGradient,
    descend,
    full_batch_mechanism,
    gradient_releases,
    iterates,
)
from discreet.solvers._shared.noise_rules import GRADIENT_CLIP, averaged_noise
from discreet.solvers._shared.noiseless import until_optimal
from discreet.solvers._shared.public_problem import ProximalSteps, gaussian_law, moment_law, public_problem
from discreet.solvers.base import Run, Solver

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem
    from discreet.theory.bound import Bound
    from discreet.theory.distance import DistanceLaw


# Where these come from: docs/defaults.md.
CURVATURE_LEFT = 0.1  # of its bound, where noise has moved the scores of several classes
SMALLEST_LENGTH = 1e-300  # a squared length that is 0 must not be divided by


@dataclass(frozen=True)
class GradientDescent(Solver[mechanisms.Additive, FullBatchSettings]):
    """Full-batch projected or proximal gradient descent.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default from the size of the table and the budget.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature; below 2 it cannot diverge.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    shrink : bool
        Shrink the coefficients towards the start by as much as the noise of all steps can have moved them; costs
        nothing. No theorem bounds the distance of such a run from its optimum.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name: ClassVar[str] = "gd"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    takes_coupled: ClassVar[bool] = True
    pure: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True
    takes_persons: ClassVar[bool] = True
    needs_all_rows: ClassVar[bool] = False

    steps: int | None = None
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    shrink: bool = False
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, FullBatchSettings]:
        return full_batch_mechanism(self.steps, scaling_plan, budget, public)

    def passes_over_rows(self, plan: FullBatchPlan) -> int | None:
        return plan.settings.steps

    def _releases(self, plan: FullBatchPlan) -> list[PlannedRelease]:
        return gradient_releases(plan)

    def _standard_error(self, plan: FullBatchPlan) -> float | None:
        """Each step moves by `step` / columns of the way in every direction, and its noise fades as slowly."""
        if self.clip is not None and not plan.problem.loss.classification:
            return None
        columns, public, mechanism = plan.public.columns + plan.problem.fit_intercept, plan.public, plan.mechanism
        level = mechanism.deviation(mechanisms.clipped_sum(public.relation)) / public.rows
        clip = self.clip or GRADIENT_CLIP.at(level) * planned_slope(plan.problem) * math.sqrt(columns)
        noise = mechanism.deviation(mechanisms.clipped_sum(public.relation, columns) * clip) / public.rows
        steps = plan.settings.steps
        kept = steps - steps // 2 if self.average else 1
        return noise / plan.problem.loss.smoothness * averaged_noise(steps, kept, 1.0 - self.step / columns)

    def distance_law(self, plan: FullBatchPlan, scaling: ColumnScaling) -> DistanceLaw:
        """The steps are a contraction with Gaussian or Laplace noise: docs/guarantees/utility.md."""
        if self.shrink or plan.rows_per_person > 1:  # clipped gradients of persons are not those of a convex loss
            return super().distance_law(plan, scaling)
        known = public_problem(plan, scaling)
        gradient = NoisyGradient(known, plan, self.clip)
        grid, rows, steps = gradient.grid, plan.public.rows, plan.settings.steps
        # Every row's term and the noise are rounded by at most half a step in every entry of the sum.
        rounding = 0.5 * (rows + 1.0) / rows * grid.step * math.sqrt(known.size)
        length = self.step / curvature_bound(known)
        averaged = tail_length(steps) if self.average else 1
        run = ProximalSteps(known, length, gradient.clip, rounding)
        if grid.law == "normal":
            return gaussian_law(run, grid.scale / rows, steps, averaged)
        return moment_law(run, 2.0 * known.size * (grid.scale / rows) ** 2, steps, averaged)

    def error_bound(self, plan: FullBatchPlan, radius: float) -> Bound | None:
        """Theorems G1 to G4 of docs/guarantees/utility.md for the planned steps."""
        if not plan.is_noisy or self.shrink or plan.rows_per_person > 1:
            return None
        known, steps = planned_problem(plan), plan.settings.steps
        gradient = NoisyGradient(known, plan, self.clip)
        return gradient_run_bound(
            plan,
            known,
            step=self.step,
            clip=gradient.clip,
            noise=known.size * gradient.deviation**2,
            steps=steps,
            averaged=tail_length(steps) if self.average else 1,
            radius=radius,
        )

    def _descend(self, scaled: BlockwiseProblem, plan: FullBatchPlan, run: Run) -> tuple[FloatArray, int]:
        length = self.step / curvature_bound(scaled)

        def move(w: FloatArray, gradient: FloatArray) -> FloatArray:
            return scaled.prox(w - length * gradient, length)

        gradient = NoisyGradient(scaled, plan, self.clip)
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, iterates(gradient, run.rng, scaled.start(), move))
        w, steps = descend(gradient, run, scaled.start(), move, self.average)
        return (self._shrunk(w, scaled, gradient) if self.shrink and plan.is_noisy else w), steps

    def _shrunk(self, w: FloatArray, scaled: BlockwiseProblem, gradient: NoisyGradient) -> FloatArray:
        """The weights, those of the columns moved towards the start by the positive-part rule of James and Stein.

        The noise is what steps leave that forget little of it, as scores that noise has moved have little curvature.
        """
        kept = gradient.steps - gradient.steps // 2 if self.average else 1
        left = averaged_noise(gradient.steps, kept, 1.0 - CURVATURE_LEFT * self.step / scaled.columns)
        deviation = gradient.deviation * left / (scaled.problem.loss.smoothness * CURVATURE_LEFT)
        moved = w - scaled.start()
        slopes = moved[..., : scaled.columns - scaled.problem.fit_intercept]
        length = max(float((slopes**2).sum()), SMALLEST_LENGTH)
        slopes *= max(0.0, 1.0 - slopes.size * deviation**2 / length)
        return np.asarray(scaled.start() + moved)
