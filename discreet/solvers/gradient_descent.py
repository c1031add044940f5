"""DP-GD: full-batch gradient descent; each row's gradient is clipped, noise is added to their sum.

Projected onto a constraint or proximal for a penalty. Theorem and proof: docs/guarantees/gd.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet import mechanisms
from discreet.framed import Framed
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.scales import Scaling
from discreet.solvers.base import (
    Mechanism,
    Plan,
    Run,
    Solver,
    calibrated,
    moderate,
    positive,
    typical_slope,
)
from discreet.solvers.noise_rules import GRADIENT_CLIP

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem
    from discreet.randomness import RandomStream

FloatArray = npt.NDArray[np.float64]
Move = Callable[[FloatArray, FloatArray], FloatArray]  # weights and a released gradient -> new weights

FEWEST_STEPS, MOST_STEPS, STEPS_PER_COORDINATE, PURE_STEPS = 100, 500, 5, 10
WEAK_NOISE = 360.0  # rows over noise and columns; twice as many steps where it is four times as large
NOISELESS_TOLERANCE = 1e-9
NOISELESS_STEPS = 50_000


@dataclass(frozen=True)
class GradientDescent(Solver):
    """Full-batch projected or proximal gradient descent.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps; by default from the number of columns.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature; below 2 it cannot diverge.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "gd"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    pure: ClassVar[bool] = True

    steps: int | None = None
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        moderate("clip", self.clip)
        positive("step", self.step)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        return full_batch_mechanism(self.steps, scaling, budget, public)

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(framed, run)
        length = self.step / curvature_bound(framed)

        def move(w: FloatArray, gradient: FloatArray) -> FloatArray:
            return framed.prox(w - length * gradient, length)

        return descend(NoisyGradient(framed, plan, self.clip), run, framed.start(), move, self.average)


def full_batch_mechanism(
    steps: int | None, scaling: Scaling, budget: Budget, public: Public
) -> tuple[Mechanism, Mapping[str, Any]]:
    """Noise for so many releases of the gradient of all rows."""
    default = PURE_STEPS if budget.kind == "pure" else _default_steps(public, budget)
    count = int(steps) if steps is not None else default
    kind = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
    return calibrated(lambda z: kind(z, count), scaling, budget, public), {"steps": count}


class NoisyGradient:
    """What full-batch methods release at every step: the sum of the clipped gradients of the rows, with noise.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism.
    """

    def __init__(self, framed: Framed, plan: Plan, clip: float | None) -> None:
        assert isinstance(plan.mechanism, (mechanisms.Gaussian, mechanisms.Laplace))
        self.framed, self.mechanism, self.steps = framed, plan.mechanism, plan.settings["steps"]
        relation = plan.public.relation
        noise = self.mechanism.deviation(mechanisms.clipped_sum(relation)) / framed.rows
        factor = GRADIENT_CLIP.at(noise)
        self.clip = row_threshold(clip, factor, framed, plan)
        self.norms = framed.norms()
        self.sensitivity = mechanisms.clipped_sum(relation, framed.outputs * framed.columns)
        if math.isfinite(self.clip):
            self.sensitivity = self.sensitivity * self.clip

    @property
    def deviation(self) -> float:
        """Standard deviation of an entry."""
        return self.mechanism.deviation(self.sensitivity) / self.framed.rows

    def __call__(self, w: FloatArray, rng: RandomStream) -> FloatArray:
        """The mean of the clipped gradients at w, with noise."""
        framed = self.framed
        total = clipped_gradient_sum(framed.X, framed.slopes(w), self.norms, self.clip, framed.weight)
        total += self.mechanism.noise(rng, self.sensitivity, framed.shape)
        return total / framed.rows


def descend(gradient: NoisyGradient, run: Run, w: FloatArray, move: Move, average: bool) -> tuple[FloatArray, int]:
    """All planned steps; the mean of the second half of the iterates, or the last one."""
    steps, tail = gradient.steps, np.zeros(w.shape)
    for t in range(steps):
        w = move(w, gradient(w, run.rng))
        if 2 * t >= steps - 1:
            tail += w
        run.report(t + 1, steps, gradient.framed, w)
    return (tail / (steps - steps // 2) if average else w), steps


def row_threshold(clip: float | None, factor: float, framed: Framed, plan: Plan) -> float:
    """The clipping norm of a row's gradient: as asked, none without noise, else from typical sizes."""
    if clip is not None:
        return clip
    if plan.budget.is_infinite:
        return math.inf
    return factor * typical_slope(plan.problem, framed.frame) * math.sqrt(_mean_square_norm(framed))


def curvature_bound(framed: Framed) -> float:
    """beta: the largest eigenvalue of the Hessian is at most its trace."""
    return framed.problem.loss.smoothness * _mean_square_norm(framed)


def _mean_square_norm(framed: Framed) -> float:
    return float(framed.frame.second_moment.sum()) + framed.problem.fit_intercept


def _default_steps(public: Public, budget: Budget) -> int:
    """More columns need more, shorter steps; weak noise allows more; each is a pass over the table, hence the limit."""
    steps = max(FEWEST_STEPS, STEPS_PER_COORDINATE * public.columns)
    noise = mechanisms.additive(budget, 1.0).deviation(mechanisms.clipped_sum(public.relation))
    room = public.rows / (WEAK_NOISE * noise * (public.columns + 1)) if noise > 0.0 else math.inf
    return round(min(MOST_STEPS, steps * math.sqrt(max(1.0, room))))


def until_optimal(framed: Framed, run: Run) -> tuple[FloatArray, int]:
    """Without noise there is nothing to ration: momentum steps until the certificate is small."""
    from discreet.optimum import accelerated_steps

    done = 0
    w = framed.start()
    for done, w in accelerated_steps(framed, NOISELESS_TOLERANCE, NOISELESS_STEPS):
        run.report(done, NOISELESS_STEPS, framed, w)
    return w, done
