"""DP-SVRG: noisy gradients of all rows at anchors, and cheap steps around them on batches of differences.

The difference of a row's gradients at two near points is short, so that sums of differences need little noise.
Theorem and proof: docs/guarantees/svrg.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public
from discreet.kernels.gradient import UNROUNDED, clipped_gradient_sum, clipped_slopes, margins_by_row
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_block import MatrixBlock
from discreet.problem.scaled_problem import ScaledProblem, UnscaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import (
    BATCHES_OF_A_FILE,
    NONE,
    DifferenceSum,
    GradientSum,
    batch_rows,
    compiled_sum,
    difference_sum,
    full_table_steps,
)
from discreet.solvers._shared.descents import (
    GRADIENT_CLIP,
    Made,
    affordable_steps,
    curvature_bound,
    descend,
    row_threshold,
    until_optimal,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import OF_THE_THRESHOLD, Plan, Settings

if TYPE_CHECKING:
    from discreet.privacy.random.generator import PoissonSample
    from discreet.problem.scaled_problem import BlockwiseProblem


class Steps(ABC):
    """Weights, anchor and public sizes, for one run."""

    scaled: BlockwiseProblem

    def __init__(self, solver: SVRG, scaled: BlockwiseProblem, plan: SVRGPlan) -> None:
        self.scaled, self.settings = scaled, plan.settings
        self.full, self.sampled = plan.mechanism.full, plan.mechanism.sampled
        unit_sensitivity = mechanisms.clipped_sum(plan.public.relation, scaled.outputs * scaled.columns)
        noise = self.full.deviation(unit_sensitivity) / scaled.rows
        self.clip = row_threshold(solver.clip, GRADIENT_CLIP, noise, scaled, plan, plan.settings.anchors / 2.0)
        entries = scaled.outputs * scaled.columns
        self.full_grid = self.full.grid(unit_sensitivity * self.clip, entries, scaled.rows)
        self.batch_grid = self.sampled.grid(1.0, entries, scaled.rows)  # of differences divided by their clip
        beta = curvature_bound(scaled)
        self.length = solver.step / beta
        # A row's gradient moves by at most smoothness |x| |x.d|, of typical size sqrt(smoothness beta) |d|.
        typical = math.sqrt(scaled.problem.loss.smoothness * beta)
        self.difference_clip = solver.difference * typical if plan.is_noisy else math.inf  # per unit of |d|
        self.compiled = scaled.outputs == 1 and scaled.problem.separable
        self.w = np.array(scaled.start())
        self.total = np.zeros(scaled.shape)

    def loops(self, run: Run) -> Iterator[FloatArray]:
        """The weights after each gradient of all rows and the steps that follow it, without end."""
        while True:
            self.anchor_gradient(run)
            self.inner_steps(run)
            yield self.w

    def anchor_gradient(self, run: Run) -> None:
        """The noisy mean gradient of all rows at the current weights."""
        self.anchor = self.w.copy()
        self.gradient = self.full_grid.release(run.rng, self._full_sum()) / self.scaled.rows

    @abstractmethod
    def _full_sum(self) -> FloatArray:
        """The sum of the clipped gradients of all rows at the anchor."""

    @abstractmethod
    def inner_steps(self, run: Run) -> None:
        """The inner steps, summed up in `total`; batches and noise are drawn before the rows are looked at."""

    def _limit(self) -> float:
        """The clip of differences, where the steps are not compiled."""
        distance = float(np.linalg.norm(self.w - self.anchor))
        return min(self.difference_clip * distance, 2.0 * self.clip) if distance > 0.0 else 0.0

    def _move(self, limit: float, change: FloatArray, noise: FloatArray) -> None:
        """A step by the sum of a batch's differences, which is relative to their limit if it is noisy."""
        if not self.batch_grid.is_exact:
            change = limit * (change + noise) if limit > 0.0 else np.zeros_like(change)
        moved = self.w - self.length * (self.gradient + change / self.settings.batch)
        self.w = self.scaled.prox(moved, self.length)
        self.total += self.w

    def _move_compiled(
        self, X: Any, rows: tuple[FloatArray, ...], held: FloatArray, batches: tuple[IndexArray, ...], noise: FloatArray
    ) -> None:
        """Let the kernels make one step per batch of these rows, which have norms, targets and weights."""
        from discreet.kernels import stochastic
        from discreet.kernels.lanes import arrays_of

        c, loss, step = self.scaled.penalty_terms, self.scaled.problem.loss, self.batch_grid.step
        counts = noise / (step or UNROUNDED)
        arguments = (*rows, loss.code, float(loss.parameter), *batches, counts, step)
        around = (held, self.anchor, self.gradient, self.clip, self.difference_clip)
        settings = (self.length, float(self.settings.batch), c.l1, c.l2, c.low, c.high, self.w, self.total)
        stochastic.inner_steps(arrays_of(X), *arguments, *around, *settings)


class MemorySteps(Steps):
    """The steps on rows in memory."""

    scaled: ScaledProblem

    def __init__(self, solver: SVRG, scaled: BlockwiseProblem, plan: SVRGPlan) -> None:
        super().__init__(solver, scaled, plan)
        self.norms = self.scaled.norms()
        self.weight = self.scaled.kernel_weight

    def _full_sum(self) -> FloatArray:
        """The sum over all rows, whose clipped slopes are held for the steps that follow."""
        scaled, step = self.scaled, self.full_grid.step
        if self.compiled and not sp.issparse(scaled.X):
            self.held = np.empty(scaled.y.size)
            rows = MatrixBlock(scaled.X, scaled.y, scaled.weight, scaled.problem.loss)
            return compiled_sum(rows, self.norms, self.w, self.clip, step, self.held)
        slopes = scaled.problem.loss.slope(margins_by_row(scaled.X, self.w), scaled.y)
        self.held = np.ascontiguousarray(clipped_slopes(slopes, self.norms, self.clip, None))
        return clipped_gradient_sum(scaled.X, slopes, self.norms, self.clip, scaled.weight, step)

    def inner_steps(self, run: Run) -> None:
        self.total[:] = 0.0
        scaled, steps = self.scaled, self.settings.inner
        indptr, indices = self.sampled.batches(run.rng, scaled.X.shape[0], steps)
        noise = self.batch_grid.noise(run.rng, (steps, *scaled.shape))  # each step multiplies it by its own clip
        self.run(indptr, indices, noise)

    def run(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch of rows, each with its noise; a replay intercepts it."""
        scaled, loss = self.scaled, self.scaled.problem.loss
        if self.compiled:
            facts = (self.norms, scaled.y, self.weight)
            return self._move_compiled(scaled.X, facts, self.held, (indptr, indices), noise)
        for t in range(indptr.size - 1):
            chosen, limit, change = indices[indptr[t] : indptr[t + 1]], self._limit(), np.zeros(scaled.shape)
            if limit > 0.0:
                weight = None if scaled.weight is None else scaled.weight[chosen]
                batch = MatrixBlock(scaled.X[chosen], scaled.y[chosen], weight, loss)
                slopes = loss.slope(margins_by_row(batch.X, self.w), batch.y)
                sizes = (self.norms[chosen], self.clip, limit, self.batch_grid.step)
                change += difference_sum(batch, slopes, self.held[chosen], *sizes)
            self._move(limit, change, noise[t])
        return None


class StoredSteps(Steps):
    """The steps on rows that are read block by block, a pass for each; slopes at the anchor are computed anew.

    Sums of rounded terms are exact, and w moves by the same kernel, which is given no row and their sum as noise.
    """

    scaled: UnscaledProblem

    def _full_sum(self) -> FloatArray:
        return self.scaled.sum(GradientSum(self.anchor, self.clip, self.full_grid.step, self.compiled, None, 0))

    def inner_steps(self, run: Run) -> None:
        self.total[:] = 0.0
        sample = self.sampled.sample(run.rng, self.scaled.source.rows)
        noise = self.batch_grid.noise(run.rng, (self.settings.inner, *self.scaled.shape))
        for t in range(self.settings.inner):
            self._inner_step(sample, t, noise[t])

    def _inner_step(self, sample: PoissonSample, t: int, noise: FloatArray) -> None:
        from discreet.kernels.stochastic import limit_of_step

        sizes = (self.difference_clip, self.clip)
        limit = limit_of_step(self.w, self.anchor, *sizes) if self.compiled else self._limit()
        change = np.zeros(self.scaled.shape)
        if limit > 0.0:
            points = (self.w.copy(), self.anchor, self.clip, limit, self.batch_grid.step)
            change += self.scaled.sum(DifferenceSum(*points, self.compiled, sample, t))
        if self.compiled:
            nobody = (np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64))
            self._move_compiled(np.empty((0, self.w.size)), (NONE, NONE, NONE), NONE, nobody, (change + noise)[None])
        else:
            self._move(limit, change, noise)


# Tuned on public tables, and never read from rows: docs/defaults.md.
ANCHORS, MOST_INNER = 20, 40  # gradients over all rows, and the most steps after each
PATIENCE = 0.15  # how many steps the noise allows: see _default_inner
DIFFERENCE = 1.0  # clipping of differences of gradients, in units of their typical size
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64  # the larger of this share of the rows and this number is a batch


@dataclass(frozen=True)
class SVRGSettings(Settings):
    """How many gradients over all rows, and how many batches of which size after each."""

    anchors: int
    inner: int
    batch: int

    @property
    def passes_over_rows(self) -> int:
        return self.anchors * self.inner  # at the anchor itself, differences are 0


SVRGPlan = Plan[mechanisms.AnchoredGaussian, SVRGSettings]


@dataclass(frozen=True)
class SVRG(Solver[mechanisms.AnchoredGaussian, SVRGSettings]):
    """Proximal stochastic gradient descent with variance reduction.

    Parameters
    ----------
    anchors : int, optional
        Number of gradients over all rows.
    inner : int, optional
        Number of steps after each of them (default: from the number of rows and the budget).
    batch_size : int, optional
        Expected size of the Poisson batches of the inner steps; by default all rows under a budget in Gaussian or
        zero-concentrated DP, where samples cost as much as all rows do.
    anchor_share : float
        About which share of the descent's budget the gradients over all rows take.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    difference : float
        Norm to which each row's difference of gradients is clipped, in units of its typical size at that distance.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the iterates after the second half of the anchors instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "svrg"
    capabilities = Capabilities(coupled=True, compiled=("slope",), start=True, stored=True, copied=True)

    anchors: int | None = None
    inner: int | None = None
    batch_size: int | None = None
    anchor_share: float = 0.7
    clip: float | None = None
    difference: float = DIFFERENCE
    step: float = 1.9
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        for name in ("anchors", "inner", "batch_size"):
            positive(name, getattr(self, name), whole=True)
        for name in ("difference", "step", "anchor_share"):
            positive(name, getattr(self, name))
        check_threshold("clip", self.clip)
        if self.anchor_share >= 1.0:
            raise ValueError(f"anchor_share must be below 1; got {self.anchor_share!r}.")

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[mechanisms.AnchoredGaussian, SVRGSettings]:
        n, anchors = public.rows, int(self.anchors or ANCHORS)
        inner = int(self.inner or _default_inner(anchors, public, budget))
        batch = batch_rows(self.batch_size, max(SMALLEST_BATCH, SMALLEST_RATE * n), n, budget)
        ratio = mechanisms.anchored_ratio(public.relation, batch / n, inner, self.anchor_share)

        def make(multiplier: float) -> mechanisms.AnchoredGaussian:
            return mechanisms.AnchoredGaussian(multiplier, ratio, batch / n, anchors, inner)

        return calibrated(make, scaling_plan, budget, public), SVRGSettings(anchors, inner, batch)

    def _releases(self, plan: SVRGPlan) -> list[PlannedRelease]:
        relation, unit = plan.public.relation, mechanisms.clipped_sum(plan.public.relation)
        full, sampled = unit * (1.0 / plan.public.rows), unit * (1.0 / plan.settings.batch)
        of = "all rows" if plan.settings.batch == plan.public.rows else "a random batch"
        change = f"changes of the mean gradient of {of}"
        return planned_releases(
            "mean gradients of all rows", plan.mechanism.full.event, relation, full, OF_THE_THRESHOLD
        ) + planned_releases(change, plan.mechanism.sampled.event, relation, sampled, OF_THE_THRESHOLD)

    def _warnings(self, plan: SVRGPlan) -> list[str]:
        rate = plan.settings.batch / plan.public.rows
        return [BATCHES_OF_A_FILE.format(rate=rate)] if plan.public.stored and rate < 1.0 else []

    def _descend(self, scaled: ScaledProblem | UnscaledProblem, plan: SVRGPlan, run: Run) -> tuple[FloatArray, int]:
        exact = plan.budget.is_infinite and self.anchors is None and self.inner is None
        if exact and not isinstance(scaled, ScaledProblem):
            return until_optimal(scaled, run, full_table_steps(scaled, self.step / curvature_bound(scaled)))
        descent = (
            MemorySteps(self, scaled, plan) if isinstance(scaled, ScaledProblem) else StoredSteps(self, scaled, plan)
        )
        if exact:
            passes = 1.0 + plan.settings.inner * plan.settings.batch / scaled.rows
            most = affordable_steps(scaled, passes)
            return until_optimal(scaled, run, descent.loops(run), every=1, most=most)
        anchors, inner = plan.settings.anchors, plan.settings.inner
        made = (Made(w, descent.total / inner) for w in islice(descent.loops(run), anchors))
        return descend(scaled, run, anchors, made, self.average)[0], anchors * (1 + inner)


def _default_inner(anchors: int, public: Public, budget: Budget) -> int:
    """As many steps as the noise allows: over a loop, that of the differences adds up like their number."""
    if budget.is_infinite:
        return MOST_INNER
    unit_sensitivity = mechanisms.clipped_sum(public.relation).l2
    allowed = PATIENCE * public.rows * budget.gaussian_mu() / (unit_sensitivity * math.sqrt(2.0 * anchors))
    return int(min(max(allowed, 1.0), MOST_INNER))
