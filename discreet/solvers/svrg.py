"""DP-SVRG: noisy gradients of all rows at anchors, and cheap steps around them on batches of differences.

The difference of a row's gradients at two near points is short, so that sums of differences need little noise.
Theorem and proof: docs/guarantees/svrg.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from discreet._common.checks import check_threshold, positive
from discreet._common.types import FloatArray, IndexArray
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes
from discreet.privacy import mechanisms
from discreet.privacy.planned_release import PlannedRelease, planned_releases
from discreet.problem.scaled_problem import ScaledProblem
from discreet.scaling.plan import ScalingPlan
from discreet.solvers._shared.averaging import TailAverage
from discreet.solvers._shared.batches import batch_rows
from discreet.solvers._shared.clipping import curvature_bound, row_threshold
from discreet.solvers._shared.noise_rules import GRADIENT_CLIP
from discreet.solvers._shared.noiseless import affordable_steps, until_optimal
from discreet.solvers._shared.units import OF_THE_THRESHOLD
from discreet.solvers.base import Run, Solver, calibrated
from discreet.solvers.plan import Plan, Settings

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.problem import Problem


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

    name: ClassVar[str] = "svrg"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    takes_coupled: ClassVar[bool] = True
    pure: ClassVar[bool] = False
    takes_start: ClassVar[bool] = True
    compiled: ClassVar[bool] = True

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

    def _descend(self, scaled: ScaledProblem, plan: SVRGPlan, run: Run) -> tuple[FloatArray, int]:
        descent = _Descent(self, scaled, plan)
        if plan.budget.is_infinite and self.anchors is None and self.inner is None:
            passes = 1.0 + plan.settings.inner * plan.settings.batch / scaled.rows
            most = affordable_steps(scaled, passes)
            return until_optimal(scaled, run, descent.loops(run), every=1, most=most)
        anchors, inner = plan.settings.anchors, plan.settings.inner
        average = TailAverage(anchors, scaled.shape)
        for w in islice(descent.loops(run), anchors):
            average.add(descent.total / inner)
            run.report(average.count, anchors, scaled, w)
        return (average.mean() if self.average else descent.w), anchors * (1 + inner)


def _default_inner(anchors: int, public: Public, budget: Budget) -> int:
    """As many steps as the noise allows: over a loop, that of the differences adds up like their number."""
    if budget.is_infinite:
        return MOST_INNER
    unit_sensitivity = mechanisms.clipped_sum(public.relation).l2
    allowed = PATIENCE * public.rows * budget.gaussian_mu() / (unit_sensitivity * math.sqrt(2.0 * anchors))
    return int(min(max(allowed, 1.0), MOST_INNER))


class _Descent:
    """Weights, anchor and everything the kernels need, for one run."""

    def __init__(self, solver: SVRG, scaled: ScaledProblem, plan: SVRGPlan) -> None:
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
        self.norms = scaled.norms()
        self.weight = scaled.kernel_weight
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
        scaled = self.scaled
        slopes = scaled.slopes(self.w)
        self.anchor = self.w.copy()
        self.held = clipped_slopes(slopes, self.norms, self.clip, None)
        total = clipped_gradient_sum(scaled.X, slopes, self.norms, self.clip, scaled.weight, self.full_grid.step)
        self.gradient = self.full_grid.release(run.rng, total) / scaled.rows

    def inner_steps(self, run: Run) -> None:
        """The inner steps, summed up in `total`; batches and noise are drawn before the rows are looked at."""
        self.total[:] = 0.0
        scaled, steps = self.scaled, self.settings.inner
        indptr, indices = self.sampled.batches(run.rng, scaled.X.shape[0], steps)
        noise = self.batch_grid.noise(run.rng, (steps, *scaled.shape))  # each step multiplies it by its own clip
        if scaled.outputs > 1 or not scaled.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            self._with_kernel(indptr, indices, noise)

    def _with_kernel(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        from discreet.kernels import variance_reduced

        scaled, c, loss = self.scaled, self.scaled.penalty_terms, self.scaled.problem.loss
        step = self.batch_grid.step
        counts = noise if step == 0.0 else noise / step
        rows = (self.norms, scaled.y, self.weight, loss.code, float(loss.parameter), indptr, indices, counts, step)
        around = (np.ascontiguousarray(self.held), self.anchor, self.gradient, self.clip, self.difference_clip)
        settings = (self.length, float(self.settings.batch), c.l1, c.l2, c.low, c.high, self.w, self.total)
        if sp.issparse(scaled.X):
            table = (scaled.X.indptr, scaled.X.indices, scaled.X.data)
            variance_reduced.inner_sparse(*table, *rows, *around, *settings)
        else:
            variance_reduced.inner_dense(scaled.X, *rows, *around, *settings)

    def _with_matrix_products(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        scaled, loss, batch = self.scaled, self.scaled.problem.loss, self.settings.batch
        for t in range(indptr.size - 1):
            chosen = indices[indptr[t] : indptr[t + 1]]
            distance = float(np.linalg.norm(self.w - self.anchor))
            limit = min(self.difference_clip * distance, 2.0 * self.clip) if distance > 0.0 else 0.0
            X, norms = scaled.X[chosen], self.norms[chosen]
            slopes = loss.slope(np.asarray(X @ self.w.T), scaled.y[chosen])
            moved = clipped_slopes(slopes, norms, self.clip, None) - self.held[chosen]
            weight = None if scaled.weight is None else scaled.weight[chosen]
            change = np.zeros(scaled.shape)
            if limit > 0.0 and self.batch_grid.is_exact:
                change += clipped_gradient_sum(X, moved, norms, limit, weight)
            elif limit > 0.0:
                relative = clipped_gradient_sum(X, moved / limit, norms, 1.0, weight, self.batch_grid.step)
                change += limit * (relative + noise[t])
            self.w = scaled.prox(self.w - self.length * (self.gradient + change / batch), self.length)
            self.total += self.w
