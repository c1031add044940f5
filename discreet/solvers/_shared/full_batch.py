"""Noisy gradients over all rows, for the methods that make full-batch steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from discreet._common.types import FloatArray
from discreet.data.rows import takes_tensors
from discreet.kernels.gradient import row_norms
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.person_gradients import person_gradient_sum
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.averaging import Made, descend
from discreet.solvers._shared.clipping import GRADIENT_CLIP, row_threshold
from discreet.solvers.base import Run, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator

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


def gradient_releases(plan: FullBatchPlan) -> list[PlannedRelease]:
    """What the steps release, in words."""
    dimension = plan.problem.loss.outputs * (plan.public.columns + plan.problem.fit_intercept)
    sensitivity = mechanisms.clipped_sum(plan.public.relation, dimension) * (1.0 / plan.public.rows)
    event, relation = plan.mechanism.event, plan.public.relation
    return planned_releases("mean gradients of all rows", event, relation, sensitivity, OF_THE_THRESHOLD)


class NoisyGradient:
    """What full-batch methods release at every step: the sum of the clipped gradients of the rows, with noise.

    Guarantee: a call costs one of the `steps` releases of the plan's mechanism.
    """

    def __init__(self, scaled: BlockwiseProblem, plan: FullBatchPlan, clip: float | None) -> None:
        self.scaled, self.mechanism, self.steps = scaled, plan.mechanism, plan.settings.steps
        self.relation = plan.public.relation
        self.clip = row_threshold(clip, GRADIENT_CLIP.at(self._relative_noise()), scaled, plan)
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


def noisy_descent(
    gradient: NoisyGradient, run: Run, start: FloatArray, move: Move, average: bool
) -> tuple[FloatArray, int]:
    """All planned steps; the mean of the second half of the iterates, or the last one."""
    steps = islice(iterates(gradient, run.rng, start, move), gradient.steps)
    return descend(gradient.scaled, run, gradient.steps, (Made(w, w) for w in steps), average)


def default_steps(public: Public, budget: Budget) -> int:
    """More columns need more, shorter steps; weak noise allows more; each is a pass over the table, hence the limit."""
    steps = max(FEWEST_STEPS, STEPS_PER_COORDINATE * public.columns)
    noise = mechanisms.additive(budget, 1.0).deviation(mechanisms.clipped_sum(public.relation))
    room = public.rows / (WEAK_NOISE * noise * (public.columns + 1)) if noise > 0.0 else math.inf
    return round(min(MOST_STEPS, steps * math.sqrt(max(1.0, room))))
