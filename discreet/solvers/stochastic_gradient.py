"""DP-SGD: gradient steps on random batches, with privacy amplified by the secrecy of the sample.

Two samplers: Poisson batches (every row takes part independently) and the papers' batches of one row drawn
uniformly. Dominating pairs and proofs: docs/guarantees/sgd.md.
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
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.relation import Relation
from discreet.scales import Scaling
from discreet.solvers.base import Mechanism, Plan, Run, Solver, calibrated, default_threshold, one_of, positive
from discreet.solvers.gradient_descent import curvature_bound, row_threshold, until_optimal

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.data import Public
    from discreet.problem import Problem

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

PASSES = 30
CLIP_FACTOR, CLIP_POWER, CLIP_MOST = 0.126, 0.235, 1.0  # see default_threshold
SMALLEST_RATE, SMALLEST_BATCH = 0.05, 64
BLOCK_DRAWS = 1 << 17  # noise is drawn in blocks of about this many numbers


@dataclass(frozen=True)
class StochasticGradientDescent(Solver):
    """Mini-batch proximal stochastic gradient descent.

    Parameters
    ----------
    passes : float, optional
        Expected number of times each row is used.
    batch_size : int, optional
        Expected batch size of the Poisson sampler.
    sampler : {"poisson", "single"}
        "single" draws one uniform row per step, as the papers do; it needs far more noise.
    clip : float, optional
        Norm to which each row's gradient is clipped, in the solver's (scaled) columns.
    step : float
        Step length in units of 1/beta, beta being a public bound on the curvature.
    average : bool
        Return the average of the second half of the iterates instead of the last one.
    scale_share : float, optional
        Share of the budget for learning scales (default 0.1; 0 needs declared bounds).
    """

    name: ClassVar[str] = "sgd"
    order: ClassVar[Literal["C", "F"]] = "C"
    needs_separable: ClassVar[bool] = False
    pure: ClassVar[bool] = False

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
        positive("clip", self.clip)
        positive("step", self.step)
        one_of("sampler", self.sampler, ("poisson", "single"))
        if self.sampler == "single" and self.batch_size not in (None, 1):
            raise ValueError('batch_size must be 1 (or None) with sampler="single"; use sampler="poisson".')

    def _decide(
        self, problem: Problem, public: Public, budget: Budget, scaling: Scaling
    ) -> tuple[Mechanism, Mapping[str, Any]]:
        n = public.rows
        single = self.sampler == "single"
        if single and public.relation is Relation.ADD_REMOVE:
            raise ValueError('sampler="single" needs a public number of rows; use relation="replace" or "poisson".')
        batch = 1 if single else min(n, int(self.batch_size or max(SMALLEST_BATCH, SMALLEST_RATE * n)))
        passes = self.passes if self.passes is not None else PASSES
        steps = max(1, round(passes * n / batch))

        def make(multiplier: float) -> Mechanism:
            if single:
                return mechanisms.FixedSizeGaussian(multiplier, n, 1, steps)
            return mechanisms.PoissonGaussian(multiplier, batch / n, steps)

        mechanism = calibrated(make, scaling, budget, public)
        settings = {"passes": passes, "batch": batch, "steps": steps, "sampler": self.sampler}
        return mechanism, settings

    def _descend(self, framed: Framed, plan: Plan, run: Run) -> tuple[FloatArray, int]:
        if plan.budget.is_infinite and self.passes is None and self.batch_size is None:
            return until_optimal(framed, run)  # no noise: the best batch is the whole table
        steps, half = plan.settings["steps"], plan.settings["steps"] // 2
        descent = _Descent(self, framed, plan)
        block = max(1, BLOCK_DRAWS // (framed.columns * framed.outputs))
        done = 0
        while done < steps:
            end = min(done + block, half if done < half else steps)
            if done == half:
                descent.total[:] = 0.0
            descent.run(*self._batches(run, plan, framed, end - done), run)
            done = end
            run.report(done, steps, framed, descent.w)
        return (descent.total / (steps - half) if self.average else descent.w), steps

    def _batches(self, run: Run, plan: Plan, framed: Framed, steps: int) -> tuple[IndexArray, IndexArray]:
        rows = framed.X.shape[0]
        if self.sampler == "single":
            return np.arange(steps + 1, dtype=np.int64), run.rng.integers(rows, steps)
        return run.rng.poisson_batches(rows, plan.settings["batch"] / plan.public.rows, steps)


class _Descent:
    """Weights, running total and everything the kernels need, for one run."""

    def __init__(self, solver: StochasticGradientDescent, framed: Framed, plan: Plan) -> None:
        self.framed = framed
        mechanism = plan.mechanism
        assert isinstance(mechanism, (mechanisms.PoissonGaussian, mechanisms.FixedSizeGaussian))
        batch = plan.settings["batch"]
        noise = mechanism.multiplier / math.sqrt(batch * framed.rows)  # averaged over one pass
        factor = default_threshold(noise, CLIP_FACTOR, CLIP_POWER, CLIP_MOST)
        self.clip = row_threshold(solver.clip, factor, framed, plan)
        self.deviation = mechanism.scale(self.clip) if plan.is_noisy else 0.0
        self.length = solver.step / curvature_bound(framed)
        self.batch = float(batch)
        self.norms = framed.norms()
        self.weight = np.empty(0) if framed.weight is None else framed.weight
        self.w = np.array(framed.start())
        self.total = np.zeros(framed.shape)

    def run(self, indptr: IndexArray, indices: IndexArray, run: Run) -> None:
        """One step per batch; batches and noise are drawn before the rows are looked at."""
        noise = run.rng.normal((indptr.size - 1, *self.framed.shape))
        noise *= self.deviation
        if self.framed.outputs > 1 or not self.framed.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            self._with_kernel(indptr, indices, noise)

    def _with_kernel(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        from discreet.kernels import stochastic

        framed, c, loss = self.framed, self.framed.coefficients, self.framed.problem.loss
        length = np.full(indptr.size - 1, self.length)
        rows = (self.norms, framed.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise)
        settings = (self.clip, length, self.batch, c.l1, c.l2, c.low, c.high)
        if sp.issparse(framed.X):
            table = (framed.X.indptr, framed.X.indices, framed.X.data)
            stochastic.steps_sparse(*table, *rows, *settings, self.w, self.total)
        else:
            plain = not c.l1.any() and bool(np.isinf(c.low).all() and np.isinf(c.high).all())
            stochastic.steps_dense(framed.X, *rows, *settings, plain, self.w, self.total)

    def _with_matrix_products(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        framed, loss = self.framed, self.framed.problem.loss
        for t in range(indptr.size - 1):
            chosen = indices[indptr[t] : indptr[t + 1]]
            X, y = framed.X[chosen], framed.y[chosen]
            slopes = loss.slope(np.asarray(X @ self.w.T), y)
            weight = None if framed.weight is None else framed.weight[chosen]
            total = clipped_gradient_sum(X, slopes, self.norms[chosen], self.clip, weight) + noise[t]
            self.w = framed.prox(self.w - self.length / self.batch * total, self.length)
            self.total += self.w
