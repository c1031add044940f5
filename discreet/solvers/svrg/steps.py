"""The steps of SVRG: anchors and inner steps, on rows in memory and on rows that are read block by block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IndexArray
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes, margins_by_row
from discreet.kernels.units import UNROUNDED
from discreet.privacy import mechanisms
from discreet.problem.scaled_block import MatrixBlock
from discreet.problem.scaled_problem import ScaledProblem, UnscaledProblem
from discreet.solvers._shared.batch_parts import (
    NONE,
    DifferenceSum,
    GradientSum,
    compiled_sum,
    difference_sum,
)
from discreet.solvers._shared.clipping import GRADIENT_CLIP, curvature_bound, row_threshold
from discreet.solvers.base import Run

if TYPE_CHECKING:
    from discreet.privacy.random.generator import PoissonSample
    from discreet.problem.scaled_problem import BlockwiseProblem
    from discreet.solvers.svrg.solver import SVRG, SVRGPlan


class Steps(ABC):
    """Weights, anchor and public sizes, for one run."""

    scaled: BlockwiseProblem

    def __init__(self, solver: SVRG, scaled: BlockwiseProblem, plan: SVRGPlan) -> None:
        self.scaled, self.settings = scaled, plan.settings
        self.full, self.sampled = plan.mechanism.full, plan.mechanism.sampled
        unit_sensitivity = mechanisms.clipped_sum(plan.public.relation, scaled.outputs * scaled.columns)
        factor = GRADIENT_CLIP.at(self.full.deviation(unit_sensitivity) / scaled.rows)
        self.clip = row_threshold(solver.clip, factor, scaled, plan)
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
        from discreet.kernels import variance_reduced
        from discreet.kernels.table_rows import arrays_of

        c, loss, step = self.scaled.penalty_terms, self.scaled.problem.loss, self.batch_grid.step
        counts = noise / (step or UNROUNDED)
        arguments = (*rows, loss.code, float(loss.parameter), *batches, counts, step)
        around = (held, self.anchor, self.gradient, self.clip, self.difference_clip)
        settings = (self.length, float(self.settings.batch), c.l1, c.l2, c.low, c.high, self.w, self.total)
        variance_reduced.inner(arrays_of(X), *arguments, *around, *settings)


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
                rows = MatrixBlock(scaled.X[chosen], scaled.y[chosen], weight, loss)
                slopes = loss.slope(margins_by_row(rows.X, self.w), rows.y)
                sizes = (self.norms[chosen], self.clip, limit, self.batch_grid.step)
                change += difference_sum(rows, slopes, self.held[chosen], *sizes)
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
        from discreet.kernels.variance_reduced import limit_of_step

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
