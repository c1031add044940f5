"""Noisy gradients over all rows, for the methods that make full-batch steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import takes_tensors
from discreet.kernels.gradient import row_norms
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_block import person_gradient_sum
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.descents import GRADIENT_CLIP, Made, descend, row_threshold, until_optimal
from discreet.solvers.base import Run, Solver, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

Move = Callable[[FloatArray, FloatArray], FloatArray]  # weights and a released gradient -> new weights

# How many steps, by default_steps; tuned on public tables, and never read from rows: docs/defaults.md.
FEWEST_STEPS, MOST_STEPS, STEPS_PER_COORDINATE, PURE_STEPS = 100, 500, 5, 10
WEAK_NOISE = 360.0  # rows over noise and columns; twice as many steps where it is four times as large


@dataclass(frozen=True)
class FullBatchSettings(Settings):
    """How often the gradient of all rows is released."""

    steps: int

    @property
    def passes_over_rows(self) -> int:
        return self.steps


FullBatchPlan = Plan[mechanisms.Additive, FullBatchSettings]


def full_batch_mechanism(
    steps: int | None, scaling_plan: ScalingPlan, budget: Budget, public: Public
) -> tuple[mechanisms.Additive, FullBatchSettings]:
    """Noise for so many releases of the gradient of all rows."""
    default = PURE_STEPS if budget.kind == "pure" else default_steps(public, budget)
    count = int(steps) if steps is not None else default
    kind: type[mechanisms.Additive] = mechanisms.Laplace if budget.kind == "pure" else mechanisms.Gaussian
    return calibrated(lambda z: kind(z, count), scaling_plan, budget, public), FullBatchSettings(count)


class NoisyGradient:
    """What full-batch methods release at every step: the sum of the clipped gradients of the rows, with noise.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism.
    """

    def __init__(self, scaled: BlockwiseProblem, plan: FullBatchPlan, clip: float | None) -> None:
        self.scaled, self.mechanism, self.steps = scaled, plan.mechanism, plan.settings.steps
        self.relation = plan.public.relation
        self.clip = row_threshold(clip, GRADIENT_CLIP, self._relative_noise(), scaled, plan, self.steps / 2.0)
        self.sensitivity = mechanisms.clipped_sum(self.relation, scaled.outputs * scaled.columns)
        if math.isfinite(self.clip):
            self.sensitivity = self.sensitivity * self.clip
        self.grid = self._make_grid()

    def _relative_noise(self) -> float:
        """Standard deviation of the mean of gradients that are clipped to 1."""
        return self.mechanism.deviation(mechanisms.clipped_sum(self.relation)) / self.scaled.rows

    def _make_grid(self) -> NoisyGrid:
        """The grid and the noise of what is released."""
        scaled = self.scaled
        return self.mechanism.grid(self.sensitivity, scaled.outputs * scaled.columns, scaled.rows)

    @property
    def deviation(self) -> float:
        """Standard deviation of an entry."""
        return self.mechanism.deviation(self.sensitivity) / self.scaled.rows

    def __call__(self, w: FloatArray, rng: RandomGenerator) -> FloatArray:
        """The mean of the clipped gradients at w, with noise."""
        scaled = self.scaled
        total = scaled.sum(partial(clipped_sum, w=w, clip=self.clip, step=self.grid.step))
        return self.grid.release(rng, total) / scaled.rows


@takes_tensors
def clipped_sum(block: ScaledBlock, w: FloatArray, clip: float, step: float) -> FloatArray:
    """The sum of the gradients of the rows, or of persons, each clipped and then rounded to multiples of the step."""
    if block.persons is not None:
        return person_gradient_sum(block, w, row_norms, clip, step)
    return block.gradient_sum(w, block.norms, clip, step)


def iterates(gradient: NoisyGradient, rng: RandomGenerator, w: FloatArray, move: Move) -> Iterator[FloatArray]:
    """The weights after each step from w on, without end.

    Guarantee: each costs one of the releases of the gradient's mechanism.
    """
    while True:
        w = move(w, gradient(w, rng))
        yield w


class FullBatchSolver(Solver[mechanisms.Additive, FullBatchSettings]):
    """A solver whose steps ask for the gradient of all rows: what is left to its subclasses is how a step moves."""

    steps: int | None
    clip: float | None
    step: float
    average: bool

    def __post_init__(self) -> None:
        positive("steps", self.steps, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)

    @abstractmethod
    def _iterates(self, scaled: BlockwiseProblem, plan: FullBatchPlan, rng: RandomGenerator) -> Iterator[FloatArray]:
        """The weights after each step, without end.

        Guarantee: each costs one of the releases of the plan's mechanism.
        """

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.Additive, FullBatchSettings]:
        return full_batch_mechanism(self.steps, scaling_plan, budget, public)

    def _releases(self, plan: FullBatchPlan) -> list[PlannedRelease]:
        dimension = plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)
        sensitivity = mechanisms.clipped_sum(plan.public.relation, dimension) * (1.0 / plan.public.rows)
        event, relation = plan.mechanism.event, plan.public.relation
        return planned_releases("mean gradients of all rows", event, relation, sensitivity, OF_THE_THRESHOLD)

    def _most_exact_steps(self, plan: FullBatchPlan) -> int | None:
        """How many steps are made at most where there is no noise; None: as many as a few seconds allow."""
        return None

    def _descend(self, scaled: BlockwiseProblem, plan: FullBatchPlan, run: Run) -> tuple[FloatArray, int]:
        own_steps, steps = self._iterates(scaled, plan, run.rng), plan.settings.steps
        if plan.budget.is_infinite and self.steps is None:
            return until_optimal(scaled, run, own_steps, most=self._most_exact_steps(plan))
        return descend(scaled, run, steps, (Made(w, w) for w in islice(own_steps, steps)), self.average)


def default_steps(public: Public, budget: Budget) -> int:
    """More columns need more, shorter steps; weak noise allows more; each is a pass over the table, hence the limit."""
    steps = max(FEWEST_STEPS, STEPS_PER_COORDINATE * public.columns)
    noise = mechanisms.additive(budget, 1.0).deviation(mechanisms.clipped_sum(public.relation))
    room = public.rows / (WEAK_NOISE * noise * (public.columns + 1)) if noise > 0.0 else math.inf
    return round(min(MOST_STEPS, steps * math.sqrt(max(1.0, room))))
