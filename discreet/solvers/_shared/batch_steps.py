"""Proximal gradient steps on batches of rows, with noise or without: what `sgd` and `bolt-on` share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IndexArray
from discreet.kernels.gradient import clipped_gradient_sum
from discreet.kernels.units import UNROUNDED
from discreet.problem.scaled_problem import ScaledProblem


class BatchSteps:
    """Weights, the sum of the latest iterates and everything the kernels need, for one run.

    Gradients of rows are clipped to norm `clip`; their sum is divided by `batch`, whatever the size of a batch is.
    With noise each row's gradient is rounded to multiples of `grid_step` (0: no noise).
    """

    def __init__(self, scaled: ScaledProblem, clip: float, length: float, batch: float, grid_step: float = 0.0) -> None:
        self.grid_step = grid_step
        self.scaled, self.clip, self.length, self.batch = scaled, clip, length, float(batch)
        self.norms = scaled.norms()
        self.weight = scaled.kernel_weight
        self.w = np.array(scaled.start())
        self.total = np.zeros(scaled.shape)

    def run(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch, whose iterates are summed up in `total`.

        Batches and noise, in multiples of the grid's step, were drawn before.
        """
        self.total[:] = 0.0
        if self.scaled.outputs > 1 or not self.scaled.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            self._with_kernel(indptr, indices, noise)

    def _with_kernel(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        from discreet.kernels import stochastic

        scaled, c, loss = self.scaled, self.scaled.penalty_terms, self.scaled.problem.loss
        unit = self.grid_step or UNROUNDED
        rows = (self.norms, scaled.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise / unit)
        settings = (unit, self.clip, self.length, self.batch, c.l1, c.l2, c.low, c.high)
        if sp.issparse(scaled.X):
            table = (scaled.X.indptr, scaled.X.indices, scaled.X.data)
            stochastic.steps_sparse(*table, *rows, *settings, self.w, self.total)
        else:
            plain = not c.l1.any() and bool(np.isinf(c.low).all() and np.isinf(c.high).all())
            stochastic.steps_dense(scaled.X, *rows, *settings, plain, self.w, self.total)

    def _with_matrix_products(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        scaled, loss = self.scaled, self.scaled.problem.loss
        for t in range(indptr.size - 1):
            chosen = indices[indptr[t] : indptr[t + 1]]
            X, y = scaled.X[chosen], scaled.y[chosen]
            slopes = loss.slope(np.asarray(X @ self.w.T), y)
            weight = None if scaled.weight is None else scaled.weight[chosen]
            total = clipped_gradient_sum(X, slopes, self.norms[chosen], self.clip, weight, self.grid_step) + noise[t]
            self.w = scaled.prox(self.w - self.length / self.batch * total, self.length)
            self.total += self.w


def full_table_steps(scaled: ScaledProblem, length: float) -> Iterator[FloatArray]:
    """The weights after each step without end, all rows being the batch: without noise no other batch is better."""
    steps = BatchSteps(scaled, np.inf, length, scaled.rows)
    everything = np.arange(scaled.X.shape[0], dtype=np.int64)
    zero_noise = np.zeros((1, *scaled.shape))
    while True:
        steps.run(np.array([0, everything.size], dtype=np.int64), everything, zero_noise)
        yield steps.w
