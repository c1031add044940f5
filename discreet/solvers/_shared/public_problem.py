"""What is known of a scaled problem without its rows, and how proximal steps with noise behave on it.

Theorems and proofs: docs/guarantees/utility.md. Everything here is a function of the plan and the released scales.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.relation import Relation
from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock, scaled_penalty_terms, scaled_start
from discreet.solvers.plan import Plan
from discreet.theory.distance import ContractionDistance, MomentDistance
from discreet.theory.fixed_point import NoisyContraction

if TYPE_CHECKING:
    from discreet.problem.column_scaling import ColumnScaling


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


def gaussian_law(run: ProximalSteps, deviation: float, steps: int, averaged: int) -> ContractionDistance:
    """The distance of the last iterate, or of the mean of the last ones; `deviation` is that of a mean gradient."""
    from discreet.theory.averaged_distance import AveragedContractionDistance

    known = run.known
    law = ContractionDistance if averaged == 1 else partial(AveragedContractionDistance, averaged=averaged)
    return law(
        np.ones(known.columns),
        known.outputs,
        run.reference,
        contraction=run.contraction,
        deviation=run.contraction * run.length * deviation,
        steps=steps,
        start=run.start,
        error=run.error,
    )


def moment_law(run: ProximalSteps, noise: float, steps: int, averaged: int) -> MomentDistance:
    """The same from the expected squared norm of the noise in a mean gradient, whatever its law."""
    known, first = run.known, steps - averaged + 1
    moved = NoisyContraction(run.contraction, (run.contraction * run.length) ** 2 * noise)
    squares = [moved.after(step, run.start**2) for step in range(first, steps + 1)]
    expected = math.sqrt(math.fsum(squares) / averaged) + run.error
    return MomentDistance(np.ones(known.columns), known.outputs, run.reference, expected_square=expected**2)


@dataclass(frozen=True)
class ProximalSteps:
    """w <- prox(w - length (clipped mean gradient + rounding + noise)), from the start of the problem on.

    Attributes
    ----------
    known : PublicProblem
    length : float
        Step length.
    clip : float
        Norm to which each row's gradient is clipped.
    rounding : float
        Largest norm of the rounding errors in a mean gradient.
    """

    known: PublicProblem
    length: float
    clip: float
    rounding: float

    def __post_init__(self) -> None:
        known = self.known
        excess = self.length * known.curvature / 2.0
        if excess > 1.0:
            raise ValueError(
                "the step is longer than 2 over the largest curvature that rows inside their limits can have; "
                f"step divided by {1.001 * excess:.4g} is covered, and so is every step below 2 "
                "with declared bounds and scale_share=0."
            )
        if known.outputs > 1:
            most = known.problem.loss.lipschitz * known.row_norm
            why = "with several classes, clipped gradients are no gradients of a convex loss"
            check_unclipped(np.array([self.clip]), np.array([most]), most, why)

    @property
    def contraction(self) -> float:
        """By how much a step without noise brings two points closer together."""
        return 1.0 / (1.0 + self.length * self.known.strong_convexity)

    @property
    def start(self) -> float:
        """A bound on the distance of the start from the optimum: that of the point nearest to 0, and from there on."""
        known, convexity = self.known, self.known.strong_convexity
        steepest = min(self.clip, known.problem.loss.lipschitz * known.row_norm)
        nearest = min(steepest / convexity, math.sqrt(2.0 * known.loss_at_zero() / convexity))
        return nearest + known.start_distance

    @property
    def error(self) -> float:
        """How far the rounding of all steps can move an iterate.

        A step moves it by at most length * kept * rounding, and kept / (1 - kept) is 1 / (length * convexity).
        """
        return self.rounding / self.known.strong_convexity

    @property
    def reference(self) -> str:
        most = self.known.problem.loss.lipschitz * self.known.row_norm
        if self.clip >= most:
            return "the minimiser of the same objective on the same clipped and scaled columns"
        return (
            "the minimiser of the same objective on the same clipped and scaled columns, with the gradient of every "
            f"row clipped to norm {self.clip:.4g} (a loss that grows linearly from there on)"
        )
