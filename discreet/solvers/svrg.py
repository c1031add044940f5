"""DP-SVRG: noisy gradients of all rows at anchors, and cheap steps around them on batches of differences.

A difference of two gradients of one row is short when the two points are close, so it needs little noise.
Theorem and proof: docs/guarantees/svrg.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet import mechanisms
from discreet.framed import Framed
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes
from discreet.scales import Scaling
from discreet.solvers.base import Mechanism, Plan, Run, Solver, calibrated, moderate, positive
from discreet.solvers.gradient_descent import curvature_bound, row_threshold, until_optimal
from discreet.solvers.noise_rules import GRADIENT_CLIP

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

ANCHORS, MOST_INNER = 20, 40
PATIENCE = 0.15  # see _default_inner
DIFFERENCE = 1.0
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64


@dataclass(frozen=True)
class SVRG(Solver):
    """Proximal stochastic gradient descent with variance reduction.

    Parameters
    ----------
    anchors : int, optional
        Number of gradients over all rows.
    inner : int, optional
        Number of steps after each of them (default: from the number of rows and the budget).
    batch_size : int, optional
        Expected size of the Poisson batches of the inner steps.
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
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "svrg"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    pure: ClassVar[bool] = False

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
        moderate("clip", self.clip)
        if self.anchor_share >= 1.0:
            raise ValueError(f"anchor_share must be below 1; got {self.anchor_share!r}.")

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        n, anchors = public.rows, int(self.anchors or ANCHORS)
        inner = int(self.inner or _default_inner(anchors, public, budget))
        batch = min(n, int(self.batch_size or max(SMALLEST_BATCH, SMALLEST_RATE * n)))
        ratio = mechanisms.anchored_ratio(public.relation, batch / n, inner, self.anchor_share)

        def make(multiplier: float) -> Mechanism:
            return mechanisms.AnchoredGaussian(multiplier, ratio, batch / n, anchors, inner)

        return calibrated(make, scaling, budget, public), {"anchors": anchors, "inner": inner, "batch": batch}

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.anchors is None and self.inner is None:
            return until_optimal(framed, run)
        anchors, inner = plan.settings["anchors"], plan.settings["inner"]
        descent = _Descent(self, framed, plan)
        for done in range(anchors):
            if done == anchors // 2:
                descent.total[:] = 0.0
            descent.drop_anchor(run)
            descent.walk(run)
            run.report(done + 1, anchors, framed, descent.w)
        last = (anchors - anchors // 2) * inner
        return (descent.total / last if self.average else descent.w), anchors * (1 + inner)


def _default_inner(anchors: int, public: Public, budget: Budget) -> int:
    """As many steps as the noise allows: over a loop, that of the differences adds up like their number."""
    if budget.is_infinite:
        return MOST_INNER
    unit = mechanisms.clipped_sum(public.relation).l2
    quiet = PATIENCE * public.rows * budget.gaussian_mu() / (unit * math.sqrt(2.0 * anchors))
    return int(min(max(quiet, 1.0), MOST_INNER))


class _Descent:
    """Weights, anchor and everything the kernels need, for one run."""

    def __init__(self, solver: SVRG, framed: Framed, plan: Plan) -> None:
        assert isinstance(plan.mechanism, mechanisms.AnchoredGaussian)
        self.framed, self.settings = framed, plan.settings
        self.full, self.sampled = plan.mechanism.full, plan.mechanism.sampled
        unit = mechanisms.clipped_sum(plan.public.relation, framed.outputs * framed.columns)
        factor = GRADIENT_CLIP.at(self.full.deviation(unit) / framed.rows)
        self.clip = row_threshold(solver.clip, factor, framed, plan)
        self.sensitivity = unit * self.clip if math.isfinite(self.clip) else unit
        beta = curvature_bound(framed)
        self.length = solver.step / beta
        # A row's gradient moves by at most smoothness |x| |x.d|, of typical size sqrt(smoothness beta) |d|.
        typical = math.sqrt(framed.problem.loss.smoothness * beta)
        self.reach = solver.difference * typical if plan.is_noisy else math.inf
        self.norms = framed.norms()
        self.weight = framed.kernel_weight
        self.w = np.array(framed.start())
        self.total = np.zeros(framed.shape)

    def drop_anchor(self, run: Run) -> None:
        """The noisy mean gradient of all rows at the current weights."""
        framed = self.framed
        noise = self.full.noise(run.rng, self.sensitivity, framed.shape)
        slopes = framed.slopes(self.w)
        self.anchor = self.w.copy()
        self.held = clipped_slopes(slopes, self.norms, self.clip, None)
        total = clipped_gradient_sum(framed.X, slopes, self.norms, self.clip, framed.weight)
        self.gradient = (total + noise) / framed.rows

    def walk(self, run: Run) -> None:
        """The inner steps; batches and noise are drawn before the rows are looked at."""
        framed, steps = self.framed, self.settings["inner"]
        indptr, indices = run.rng.poisson_batches(framed.X.shape[0], self.sampled.rate, steps)
        noise = run.rng.normal((steps, *framed.shape))
        noise *= self.sampled.scale(1.0)  # zero for an infinite budget
        if framed.outputs > 1 or not framed.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            self._with_kernel(indptr, indices, noise)

    def _with_kernel(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        from discreet.kernels import variance_reduced

        framed, c, loss = self.framed, self.framed.coefficients, self.framed.problem.loss
        rows = (self.norms, framed.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise)
        around = (np.ascontiguousarray(self.held), self.anchor, self.gradient, self.clip, self.reach)
        settings = (self.length, float(self.settings["batch"]), c.l1, c.l2, c.low, c.high, self.w, self.total)
        if sp.issparse(framed.X):
            table = (framed.X.indptr, framed.X.indices, framed.X.data)
            variance_reduced.inner_sparse(*table, *rows, *around, *settings)
        else:
            variance_reduced.inner_dense(framed.X, *rows, *around, *settings)

    def _with_matrix_products(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        framed, loss, batch = self.framed, self.framed.problem.loss, self.settings["batch"]
        for t in range(indptr.size - 1):
            chosen = indices[indptr[t] : indptr[t + 1]]
            distance = float(np.linalg.norm(self.w - self.anchor))
            limit = min(self.reach * distance, 2.0 * self.clip) if distance > 0.0 else 0.0
            X, norms = framed.X[chosen], self.norms[chosen]
            slopes = loss.slope(np.asarray(X @ self.w.T), framed.y[chosen])
            moved = clipped_slopes(slopes, norms, self.clip, None) - self.held[chosen]
            weight = None if framed.weight is None else framed.weight[chosen]
            change = np.zeros(framed.shape)
            if limit > 0.0:
                change += clipped_gradient_sum(X, moved, norms, limit, weight)
            if math.isfinite(limit):  # no clip, no noise
                change += limit * noise[t]
            self.w = framed.prox(self.w - self.length * (self.gradient + change / batch), self.length)
            self.total += self.w
