"""DP-GD: full-batch gradient descent; each row's gradient is clipped, noise is added to their sum.

Projected onto a constraint or proximal for a penalty. Theorem and proof: docs/guarantees/gd.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.random.generator import RandomGenerator
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers._shared.descents import averaged_noise, curvature_bound
from discreet.solvers._shared.full_batch import FullBatchPlan, FullBatchSolver, NoisyGradient, iterates
from discreet.solvers.base import Capabilities, Run

# Where these come from: docs/defaults.md.
CURVATURE_LEFT = 0.1  # of its bound, where noise has moved the scores of several classes
SMALLEST_LENGTH = 1e-300  # a squared length that is 0 must not be divided by


@dataclass(frozen=True)
class GradientDescent(FullBatchSolver):
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

    name = "gd"
    capabilities = Capabilities(pure=True, coupled=True, start=True, persons=True, stored=True)

    steps: int | None = None
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    shrink: bool = False
    scale_share: float | None = None

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        length = self.step / curvature_bound(scaled)

        def move(w: FloatArray, gradient: FloatArray) -> FloatArray:
            return scaled.prox(w - length * gradient, length)

        return iterates(NoisyGradient(scaled, plan, self.clip), rng, scaled.start(), move)

    def _descend(self, scaled: BlockwiseProblem, plan: FullBatchPlan, run: Run) -> tuple[FloatArray, int]:
        w, steps = super()._descend(scaled, plan, run)
        if self.shrink and plan.is_noisy:
            w = self._shrunk(w, scaled, NoisyGradient(scaled, plan, self.clip))
        return w, steps

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
