"""Full-batch descents: each row's gradient is clipped, noise is added to their sum. They differ in how a step moves.

DP-GD is projected onto a constraint or proximal for a penalty: docs/guarantees/gd.md. DP-NAG has Nesterov's momentum:
steps begin beyond the latest weights, in the direction of the last move, which is post-processing of what has been
released: docs/guarantees/accelerated-gd.md. In DP mirror descent, on a simplex or an L1 ball, noisy gradients multiply
the weights instead of being added; the noise enters the error with the logarithm of the number of columns:
docs/guarantees/mirror-descent.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.problem.constraints import AxisPolytope
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import averaged_noise, curvature_bound, typical_slope
from discreet.solvers._shared.full_batch import (
    FullBatchPlan,
    FullBatchSettings,
    FullBatchSolver,
    NoisyGradient,
    full_batch_mechanism,
    iterates,
)
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


MOST_MOMENTUM = 0.999  # noise stays for 1 / (1 - momentum) steps; with 1 it would never fade


@dataclass(frozen=True)
class AcceleratedGradientDescent(FullBatchSolver):
    """Full-batch projected or proximal gradient descent with Nesterov's momentum.

    Where columns are correlated, plain steps are short in the directions of little variance; momentum goes about
    1 / (1 - momentum) times as far there, and so does the noise.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default from the size of the table and the budget, as for `gd`.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature; at most 1, which cannot diverge.
    momentum : float
        The part of the last move that the next step begins with; 0 is plain gradient descent.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "accelerated-gd"
    capabilities = Capabilities(pure=True, coupled=True, start=True, stored=True)

    steps: int | None = None
    clip: float | None = None
    step: float = 1.0
    momentum: float = 0.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        number_in("step", self.step, 0.0, 1.0, above=True)
        number_in("momentum", self.momentum, 0.0, MOST_MOMENTUM)
        super().__post_init__()

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        gradient, length = NoisyGradient(scaled, plan, self.clip), self.step / curvature_bound(scaled)
        w = scaled.start()
        ahead = w
        while True:
            moved = scaled.prox(ahead - length * gradient(ahead, rng), length)
            w, ahead = moved, moved + self.momentum * (moved - w)
            yield w


MOST_STEPS, FEWEST_STEPS = 1_000, 200  # limits of the default number of steps: docs/defaults.md
ENTRIES_READ = 2e9  # in all steps together; large tables get fewer steps


@dataclass(frozen=True)
class MirrorDescent(FullBatchSolver):
    """Full-batch mirror descent with the entropy (exponentiated gradients).

    With infinite epsilon it makes the planned number of its own steps at most. Their error may fall as slowly as the
    inverse of their number, so that accelerated projected gradient steps finish from there, to the optimum.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of the one that the theory asks for: the smaller of 1/beta, beta being a public bound on
        the curvature over the set, and what the noise allows.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "mirror-descent"
    capabilities = Capabilities(pure=True, single_output=True, stored=True, consistent=False)

    steps: int | None = None
    clip: float | None = None
    step: float = 1.0
    average: bool = True
    scale_share: float | None = None

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        if not isinstance(problem.constraint, AxisPolytope):
            return "it needs weights in an L1 ball or a simplex: constraint=L1Ball(...) or constraint=Simplex(...)"
        c = problem.penalty.penalty_terms(1)
        if np.isfinite([c.low, c.high]).any():
            return f"it has no step for the {problem.penalty.name} penalty"
        if not problem.constraint.symmetric and c.l1.any():
            return "an l1 penalty is the same number everywhere on a simplex; leave it out"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, FullBatchSettings]:
        steps = self.steps
        if steps is None and budget.kind != "pure":  # Gaussian noise makes further steps cost time alone
            entries = public.rows * max(public.columns, 1)
            steps = round(min(MOST_STEPS, max(FEWEST_STEPS, ENTRIES_READ / entries)))
        return full_batch_mechanism(steps, scaling_plan, budget, public)

    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        gradient = NoisyGradient(scaled, plan, self.clip)
        shares = VertexWeights(scaled, self.step, gradient)
        return iterates(gradient, rng, shares.weights(), shares.move)

    def _most_exact_steps(self, plan: FullBatchPlan) -> int:
        return plan.settings.steps


class VertexWeights:
    """Logarithms of shares of the vertices, the weights they stand for, and the intercept.

    The ball has two opposite vertices per column and one more at 0, so that the shares may leave some weight unused.
    """

    def __init__(self, scaled: BlockwiseProblem, step: float, gradient: NoisyGradient) -> None:
        constraint, self.columns = scaled.problem.constraint, scaled.scaling.columns
        if not isinstance(constraint, AxisPolytope):
            raise TypeError("mirror descent needs weights in an L1 ball or a simplex.")
        self.paired = constraint.symmetric
        self.radius = constraint.scaled(float(scaled.scaling.scale[0])).vertex_norm  # one scale for all columns
        self.scaled = scaled
        self.logarithms = np.zeros(2 * self.columns + 1 if self.paired else self.columns)
        self.intercept = np.zeros(int(scaled.problem.fit_intercept))
        self.length, self.intercept_length = self.lengths(step, gradient)

    def lengths(self, step: float, gradient: NoisyGradient) -> tuple[float, float]:
        """Step lengths for the logarithms and for the intercept, from public and released numbers."""
        scaled, loss = self.scaled, self.scaled.problem.loss
        largest = float(scaled.scaling.second_moment.max(initial=0.0)) or 1.0
        share = 2.0 if scaled.problem.fit_intercept else 1.0  # of the curvature, see the page
        curvature = share * loss.smoothness * largest + float(scaled.penalty_terms.l2.max(initial=0.0))
        entropy = math.sqrt(2.0 * math.log(max(self.logarithms.size, 2)))
        margin = typical_slope(scaled.problem, scaled.scaling) / loss.smoothness  # how large an intercept may be
        noise = gradient.deviation * math.sqrt(gradient.steps)
        quiet, intercept_quiet = (
            (entropy / self.radius / noise, margin / noise) if noise > 0.0 else (math.inf, math.inf)
        )
        smooth = 1.0 / (self.radius**2 * curvature)
        return step * min(smooth, quiet), step * min(1.0 / (share * loss.smoothness), intercept_quiet)

    def weights(self) -> FloatArray:
        shares = np.exp(self.logarithms - self.logarithms.max())
        shares /= shares.sum()
        p = self.columns
        inner = shares[:p] - shares[p : 2 * p] if self.paired else shares
        return np.append(self.radius * inner, self.intercept)

    def move(self, w: FloatArray, gradient: FloatArray) -> FloatArray:
        """Multiply the shares by exponentials of the released gradient, the penalty's gradient included."""
        p, c = self.columns, self.scaled.penalty_terms
        slope, factor = gradient[:p] + c.l2[:p] * w[:p], self.length * self.radius
        # In a pair l1 (share + opposite share) bounds l1 |w|, with equality where one of the two is 0.
        self.logarithms[:p] -= factor * (c.l1[:p] + slope)
        if self.paired:
            self.logarithms[p : 2 * p] -= factor * (c.l1[:p] - slope)
        self.intercept -= self.intercept_length * gradient[p:]
        return self.weights()
