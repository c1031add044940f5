"""Proximal gradient steps on batches of rows, with noise or without: what `sgd` and `bolt-on` share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.framed import Framed
from discreet.kernels.gradient import clipped_gradient_sum

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


class BatchSteps:
    """Weights, the running total of the iterates and everything the kernels need, for one run.

    Gradients of rows are clipped to norm `clip`; their sum is divided by `batch`, whatever the size of a batch is.
    """

    def __init__(self, framed: Framed, clip: float, length: float, batch: float) -> None:
        self.framed, self.clip, self.length, self.batch = framed, clip, length, float(batch)
        self.norms = framed.norms()
        self.weight = framed.kernel_weight
        self.w = np.array(framed.start())
        self.total = np.zeros(framed.shape)

    def run(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch; batches and noise were drawn before the rows are looked at."""
        if self.framed.outputs > 1 or not self.framed.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            self._with_kernel(indptr, indices, noise)

    def _with_kernel(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        from discreet.kernels import stochastic

        framed, c, loss = self.framed, self.framed.coefficients, self.framed.problem.loss
        rows = (self.norms, framed.y, self.weight, loss.code, float(loss.parameter), indptr, indices, noise)
        settings = (self.clip, self.length, self.batch, c.l1, c.l2, c.low, c.high)
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
