"""DP-GD: full-batch gradient descent; each row's gradient is clipped, noise is added to their sum.

Projected onto a constraint or proximal for a penalty. Theorem and proof: docs/guarantees/gd.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    default_threshold,
    positive,
    typical_slope,
)

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]

STEPS, PURE_STEPS = 100, 10
CLIP_FACTOR, CLIP_POWER, CLIP_MOST = 0.13, 0.35, 2.0  # see default_threshold
NOISELESS_TOLERANCE = 1e-9
NOISELESS_STEPS = 50_000


@dataclass(frozen=True)
class GradientDescent(Solver):
    """Full-batch projected or proximal gradient descent.

    Parameters
    ----------
    steps : int, optional
        Number of gradient steps.
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
        positive("clip", self.clip)
        positive("step", self.step)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        default = PURE_STEPS if budget.kind == "pure" else STEPS
        steps = int(self.steps) if self.steps is not None else default
        kind = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
        mechanism = calibrated(lambda z: kind(z, steps), scaling, budget, public)
        return mechanism, {"steps": steps}

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(framed, run)
        steps = plan.settings["steps"]
        mechanism = plan.mechanism
        assert isinstance(mechanism, (mechanisms.Gaussian, mechanisms.Laplace))
        noise = mechanism.deviation(mechanisms.clipped_sum(plan.public.relation)) / framed.rows
        factor = default_threshold(noise, CLIP_FACTOR, CLIP_POWER, CLIP_MOST)
        clip = row_threshold(self.clip, factor, framed, plan)
        length = self.step / curvature_bound(framed)
        norms = framed.norms()
        sensitivity = mechanisms.clipped_sum(plan.public.relation, framed.outputs * framed.columns)
        if math.isfinite(clip):
            sensitivity = sensitivity * clip
        w, tail = framed.start(), np.zeros(framed.shape)
        for t in range(steps):
            total = clipped_gradient_sum(framed.X, framed.slopes(w), norms, clip, framed.weight)
            total += mechanism.noise(run.rng, sensitivity, framed.shape)
            w = framed.prox(w - length / framed.rows * total, length)
            if 2 * t >= steps - 1:
                tail += w
            run.report(t + 1, steps, framed, w)
        return (tail / (steps - steps // 2) if self.average else w), steps


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


def until_optimal(framed: Framed, run: Run) -> tuple[FloatArray, int]:
    """Without noise there is nothing to ration: momentum steps until the certificate is small."""
    from discreet.optimum import accelerated_steps

    done = 0
    w = framed.start()
    for done, w in accelerated_steps(framed, NOISELESS_TOLERANCE, NOISELESS_STEPS):
        run.report(done, NOISELESS_STEPS, framed, w)
    return w, done
