"""DP-SCD: coordinate steps in the dual problem, one dual variable per row; noise on their common sum alone.

The dual variables are a private memory that is never released. Theorem and proof: docs/guarantees/dual-cd.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, one_of, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.data.public import Public
from discreet.kernels.gradient import UNROUNDED
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.batch_steps import batch_rows
from discreet.solvers._shared.descents import (
    Made,
    NoiseRule,
    curvature_bound,
    descend,
    row_threshold,
    tail_length,
    until_optimal,
)
from discreet.solvers.base import Capabilities, Run, Solver, calibrated
from discreet.solvers.plan import Plan, Settings

# Tuned on public tables, and never read from rows: docs/defaults.md.
PASSES, PROXIMITY = 40, 0.02  # over the rows; the pull towards an earlier iterate, in units of the curvature
LARGEST_DUAL = NoiseRule(0.066, 0.45, 2.0)  # how large a dual variable may become in a run, in units of a typical slope
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64  # the larger of this share of the rows and this number is a batch
BLOCK_DRAWS = 1 << 17  # noise is drawn in blocks of about this many numbers

BatchGaussian = mechanisms.PoissonGaussian | mechanisms.Gaussian


@dataclass(frozen=True)
class DualSettings(Settings):
    """How often batches of rows are visited, and of which size."""

    passes: float
    batch: int
    batches: int
    steps: int


DualPlan = Plan[BatchGaussian, DualSettings]


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[BatchGaussian, DualSettings]):
    """Dual coordinate ascent on batches of rows.

    Parameters
    ----------
    passes : float, optional
        Expected number of times each row is used; a whole number for shuffled batches.
    batch_size : int, optional
        (Expected) size of a batch; by default all rows for Poisson batches under a budget in Gaussian or
        zero-concentrated DP, where samples cost as much as all rows do.
    batches : {"poisson", "shuffled"}
        Rows join each batch independently, or the rows are cut into batches in a new random order in every pass.
    clip : float, optional
        Norm to which the move of each row is clipped, in the solver's (scaled) columns.
    proximity : float, optional
        Weight of the pull towards an earlier iterate, in units of the curvature; it conditions the dual problem
        and stands for the penalty that the intercept does not have.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1, more on small tables; 0 needs declared bounds).
    """

    name = "dual-cd"
    capabilities = Capabilities(separable_only=True, single_output=True, compiled=("slope",), start=True)

    passes: float | None = None
    batch_size: int | None = None
    batches: str = "poisson"
    clip: float | None = None
    proximity: float | None = None
    average: bool = True
    scale_share: float | None = None

    def __post_init__(self) -> None:
        one_of("batches", self.batches, ("poisson", "shuffled"))
        positive("passes", self.passes, whole=self.batches == "shuffled")
        positive("batch_size", self.batch_size, whole=True)
        check_threshold("clip", self.clip)
        positive("proximity", self.proximity)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        if problem.penalty.strong_convexity <= 0.0:
            return "its dual problem needs an L2 penalty"
        return super().why_incompatible(problem, budget)

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan
    ) -> tuple[BatchGaussian, DualSettings]:
        n = public.rows
        if self.batches == "shuffled" and public.relation is Relation.ADD_REMOVE:
            raise ValueError('batches="shuffled" needs a public number of rows; use relation="replace" or "poisson".')
        # Shuffled batches are no samples: each row is in one batch of a pass.
        poisson, smallest = self.batches == "poisson", max(SMALLEST_BATCH, SMALLEST_RATE * n)
        batch = (
            batch_rows(self.batch_size, smallest, n, budget) if poisson else min(n, int(self.batch_size or smallest))
        )
        passes = self.passes if self.passes is not None else PASSES
        per_pass = math.ceil(n / batch)
        steps = int(passes) * per_pass if self.batches == "shuffled" else max(1, round(passes * n / batch))

        def make(multiplier: float) -> BatchGaussian:
            if self.batches == "shuffled":
                return mechanisms.Gaussian(multiplier, int(passes))
            return mechanisms.PoissonGaussian(multiplier, batch / n, steps)

        mechanism = calibrated(make, scaling_plan, budget, public)
        return mechanism, DualSettings(passes, batch, per_pass, steps)

    def _releases(self, plan: DualPlan) -> list[PlannedRelease]:
        relation, unit = plan.public.relation, "of the clipping threshold, on the sum"
        batch = "all rows" if plan.settings.batch == plan.public.rows else "a random batch"
        what = f"sums of the dual moves of {'a pass' if self.batches == 'shuffled' else batch}"
        return planned_releases(what, plan.mechanism.event, relation, mechanisms.clipped_sum(relation), unit)

    def _descend(self, scaled: ScaledProblem, plan: DualPlan, run: Run) -> tuple[FloatArray, int]:
        ascent = _Ascent(self, scaled, plan)
        if plan.budget.is_infinite and self.passes is None:
            return until_optimal(scaled, run, ascent.passes(run), every=10)
        made = (steps for batches in self._batches(run, plan, scaled) for steps in ascent.run(*batches, run))
        return descend(scaled, run, plan.settings.steps, made, self.average)

    def _batches(self, run: Run, plan: DualPlan, scaled: ScaledProblem) -> Iterator[tuple[IndexArray, IndexArray]]:
        """The batches of the run in blocks, drawn without a look at the rows."""
        mechanism, rows, batch, left = plan.mechanism, scaled.X.shape[0], plan.settings.batch, plan.settings.steps
        if isinstance(mechanism, mechanisms.Gaussian):  # shuffled
            cuts = np.minimum(np.arange(plan.settings.batches + 1, dtype=np.int64) * batch, rows)
            for _ in range(int(plan.settings.passes)):
                yield cuts, run.rng.permutation(rows)
            return
        block = max(1, BLOCK_DRAWS // scaled.columns)
        while left > 0:
            yield mechanism.batches(run.rng, rows, min(block, left))
            left -= block


class _Ascent:
    """Dual variables, their noisy sum, the weights and everything the kernels need, for one run."""

    def __init__(self, solver: DualCoordinateDescent, scaled: ScaledProblem, plan: DualPlan) -> None:
        self.scaled, self.done = scaled, 0
        self.first_averaged = plan.settings.steps - tail_length(plan.settings.steps)
        settings, self.mechanism, self.relation = plan.settings, plan.mechanism, plan.public.relation
        # The noise of the mean after the run, for moves of norm 1.
        noise = self.mechanism.scale(self._moved_by(1.0)) * math.sqrt(settings.steps) / (settings.passes * scaled.rows)
        largest = LARGEST_DUAL.at(noise)
        self.clip = row_threshold(solver.clip, largest / settings.passes, scaled, plan)
        self.grid = self.mechanism.grid(self._moved_by(self.clip), scaled.columns, scaled.rows)
        self.batch, self.refresh = settings.batch, settings.batches
        smoothness = scaled.problem.loss.smoothness
        proximity = solver.proximity if solver.proximity is not None else PROXIMITY
        self.pull = np.full(scaled.columns, proximity * curvature_bound(scaled))
        size = _square_sums(scaled.X, 1.0 / (scaled.penalty_terms.l2 + self.pull))
        self.damping = 1.0 + smoothness * settings.batch / scaled.rows * size
        self.norms = scaled.norms()
        self.weight = scaled.kernel_weight
        self.w = np.array(scaled.start())
        self.centre = self.w.copy()
        self.alpha, self.v = np.zeros(scaled.X.shape[0]), np.zeros(scaled.columns)
        self.total = np.zeros(scaled.columns)

    def passes(self, run: Run) -> Iterator[FloatArray]:
        """The weights after each pass over all rows in a new random order, without end."""
        rows = self.scaled.X.shape[0]
        cuts = np.minimum(np.arange(self.refresh + 1, dtype=np.int64) * self.batch, rows)
        while True:
            for _ in self.run(cuts, run.rng.permutation(rows), run):
                pass
            yield self.w

    def run(self, indptr: IndexArray, indices: IndexArray, run: Run) -> Iterator[Made]:
        """One step per batch; the noise is drawn before the rows are looked at. Averaged steps are made apart."""
        steps = indptr.size - 1
        noise = self.grid.noise(run.rng, (steps, self.scaled.columns))
        cut = min(max(self.first_averaged - self.done, 0), steps)
        for begin, end in ((0, cut), (cut, steps)):
            if begin < end:
                self._steps(indptr[begin : end + 1], indices, noise[begin:end])
                yield Made(self.w, self.total, float(end - begin), end - begin)

    def _steps(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch, whose iterates are summed up in `total`."""
        from discreet.kernels import stochastic
        from discreet.kernels.lanes import arrays_of

        self.total[:] = 0.0
        scaled, c, loss = self.scaled, self.scaled.penalty_terms, self.scaled.problem.loss
        unit = self.grid.step or UNROUNDED
        rows = (self.norms, scaled.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise / unit)
        settings = (unit, self.clip, self.damping, self.pull, float(scaled.rows), self.done, self.refresh)
        state = (c.l1, c.l2, c.low, c.high, self.alpha, self.v, self.centre, self.w, self.total)
        stochastic.dual_steps(arrays_of(scaled.X), *rows, *settings, *state)
        self.done += indptr.size - 1

    def _moved_by(self, clip: float) -> Any:
        """How far one row moves a sum of moves of norm at most `clip`, as the mechanism takes it."""
        poisson = isinstance(self.mechanism, mechanisms.PoissonGaussian)
        return clip if poisson else mechanisms.clipped_sum(self.relation) * clip


def _square_sums(X: Any, factors: FloatArray) -> FloatArray:
    """The sum over the columns of factor times squared entry, row by row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X) @ factors, dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij,j->i", X, X, factors))
