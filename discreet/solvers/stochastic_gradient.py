"""DP-SGD: gradient steps on random batches, with privacy amplified by the secrecy of the sample.

Two samplers: Poisson batches (every row takes part independently) and the papers' batches of one row drawn
uniformly. Dominating pairs and proofs: docs/guarantees/sgd.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import SampledMechanism
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem, UnscaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import (
    BATCHES_OF_A_FILE,
    BatchSteps,
    StoredBatchSteps,
    batch_rows,
    full_table_steps,
    sampling_lowers_cost,
)
from discreet.solvers._shared.descents import (
    BATCH_CLIP,
    GRADIENT_CLIP,
    Made,
    blocks,
    curvature_bound,
    descend,
    row_threshold,
    until_optimal,
)
from discreet.solvers._shared.full_batch import default_steps
from discreet.solvers.base import Capabilities, Run, Solver, calibrated, refused
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

# Tuned on public tables, and never read from rows: docs/defaults.md.
PASSES = 30  # over the rows
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64  # the larger of this share of the rows and this number is a batch
BLOCK_DRAWS = 1 << 17  # noise is drawn in blocks of about this many numbers
BLOCK_ROWS = 1 << 22  # and batches in blocks of about this many rows, one step at least

ONE_ROW_A_PASS = "each of its batches of one row would take a pass over all rows, which are read in blocks"
_OF_A_BATCH = "mean gradients of a random batch"


@dataclass(frozen=True)
class SGDSettings(Settings):
    """How often batches are drawn, and of which size."""

    passes: float
    batch: int
    steps: int
    sampler: str

    @property
    def passes_over_rows(self) -> int:
        return self.steps


SGDPlan = Plan[SampledMechanism, SGDSettings]


@dataclass(frozen=True)
class StochasticGradientDescent(Solver[SampledMechanism, SGDSettings]):
    """Mini-batch proximal stochastic gradient descent.

    Parameters
    ----------
    passes : float, optional
        Expected number of times each row is used (default 30; where a batch is all rows, the number of steps of `gd`).
    batch_size : int, optional
        Expected batch size of the Poisson sampler; by default all rows under a budget in Gaussian or zero-concentrated
        DP, where samples cost as much as all rows do.
    sampler : {"poisson", "single"}
        "single" draws one uniform row per step, as the papers do; it needs far more noise.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "sgd"
    capabilities = Capabilities(coupled=True, compiled=("slope",), start=True, stored=True, copied=True)

    passes: float | None = None
    batch_size: int | None = None
    sampler: str = "poisson"
    clip: float | None = None
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        positive("passes", self.passes)
        positive("batch_size", self.batch_size, whole=True)
        check_threshold("clip", self.clip)
        positive("step", self.step)
        one_of("sampler", self.sampler, ("poisson", "single"))
        if self.sampler == "single" and self.batch_size not in (None, 1):
            raise ValueError('batch_size must be 1 (or None) with sampler="single"; use sampler="poisson".')

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[SampledMechanism, SGDSettings]:
        n = public.rows
        single = self.sampler == "single"
        if single and public.stored:
            raise refused(self, ONE_ROW_A_PASS, problem, budget, stored=True)
        if single and public.relation is Relation.ADD_REMOVE:
            raise ValueError('sampler="single" needs a public number of rows; use relation="replace" or "poisson".')
        smallest = max(SMALLEST_BATCH, SMALLEST_RATE * n)
        batch = 1 if single else batch_rows(self.batch_size, smallest, n, budget)
        default = PASSES if single or sampling_lowers_cost(budget) or batch < n else default_steps(public, budget)
        passes = self.passes if self.passes is not None else default
        steps = max(1, round(passes * n / batch))

        def make(multiplier: float) -> SampledMechanism:
            if single:
                return mechanisms.FixedSizeGaussian(multiplier, n, 1, steps)
            return mechanisms.PoissonGaussian(multiplier, batch / n, steps)

        mechanism = calibrated(make, scaling_plan, budget, public)
        return mechanism, SGDSettings(passes, batch, steps, self.sampler)

    def _releases(self, plan: SGDPlan) -> list[PlannedRelease]:
        # A batch of fixed size always exchanges a row for another one.
        relation = Relation.REPLACE if self.sampler == "single" else plan.public.relation
        sensitivity = mechanisms.clipped_sum(relation) * (1.0 / plan.settings.batch)
        what = "mean gradients of all rows" if plan.settings.batch == plan.public.rows else _OF_A_BATCH
        return planned_releases(what, plan.mechanism.event, relation, sensitivity, OF_THE_THRESHOLD)

    def _warnings(self, plan: SGDPlan) -> list[str]:
        rate = plan.settings.batch / plan.public.rows
        return [BATCHES_OF_A_FILE.format(rate=rate)] if plan.public.stored and rate < 1.0 else []

    def _descend(self, scaled: ScaledProblem | UnscaledProblem, plan: SGDPlan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.passes is None and self.batch_size is None:
            return until_optimal(scaled, run, full_table_steps(scaled, self.step / curvature_bound(scaled)))
        size = max(1, min(BLOCK_DRAWS // (scaled.columns * scaled.outputs), BLOCK_ROWS // plan.settings.batch))
        descent = _Descent(self, scaled, plan)
        made = (descent.run(run.rng, count) for count in blocks(plan.settings.steps, size))
        return descend(scaled, run, plan.settings.steps, made, self.average)


def threshold_and_grid(
    solver: StochasticGradientDescent, scaled: BlockwiseProblem, plan: SGDPlan
) -> tuple[float, NoisyGrid]:
    """The clipping norm of a row's gradient, and the grid and noise of the sums; from public numbers."""
    noise = plan.mechanism.multiplier / math.sqrt(plan.settings.batch * scaled.rows)  # averaged over one pass
    rule = GRADIENT_CLIP if plan.settings.batch == plan.public.rows else BATCH_CLIP
    clip = row_threshold(solver.clip, rule, noise, scaled, plan, plan.settings.passes / 2.0)
    return clip, plan.mechanism.grid(clip, scaled.outputs * scaled.columns, scaled.rows)


class _Descent:
    """The steps of one run, with the batches and the noise of its plan's mechanism."""

    def __init__(
        self, solver: StochasticGradientDescent, scaled: ScaledProblem | UnscaledProblem, plan: SGDPlan
    ) -> None:
        self.solver, self.mechanism, self.budget = solver, plan.mechanism, plan.budget
        clip, self.grid = threshold_and_grid(solver, scaled, plan)
        settings = (clip, solver.step / curvature_bound(scaled), plan.settings.batch, self.grid.step)
        self.steps: BatchSteps | StoredBatchSteps
        if isinstance(scaled, ScaledProblem):
            self.steps = BatchSteps(scaled, *settings)
        else:
            self.steps = StoredBatchSteps(scaled, *settings)

    def run(self, rng: RandomGenerator, count: int) -> Made:
        """Make `count` steps; batches and noise are drawn before the rows are looked at."""
        steps, mechanism = self.steps, self.mechanism
        size = (count, *steps.scaled.shape)
        if isinstance(steps, BatchSteps):
            indptr, indices = mechanism.batches(rng, steps.scaled.X.shape[0], count)
            steps.run(indptr, indices, self.grid.noise(rng, size))
        elif isinstance(mechanism, mechanisms.PoissonGaussian):
            sample = mechanism.sample(rng, steps.scaled.source.rows)
            steps.run(sample, self.grid.noise(rng, size))
        else:
            raise refused(self.solver, ONE_ROW_A_PASS, steps.scaled.problem, self.budget, stored=True)
        return Made(steps.w, steps.total, float(count), count)
