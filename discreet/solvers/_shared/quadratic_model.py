"""A quadratic model with a separable penalty, and its exact minimiser; sees released numbers only."""

from __future__ import annotations

import sys

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.small_quadratic import minimise_quadratic
from discreet.problem.penalties import PenaltyTerms

TOLERANCE = 1e-12  # of the gradient of a quadratic at its minimiser, in units of its linear part
FEW_STEPS = 200_000  # of Python, which take some ten milliseconds
SWEEPS = 10_000  # after which the minimiser is taken as it is


class QuadraticModel:
    """w' matrix w / 2 - linear . w + penalty(w) for one positive definite matrix and many linear parts."""

    def __init__(self, matrix: FloatArray, penalty_terms: PenaltyTerms) -> None:
        self.matrix, self.penalty_terms = np.ascontiguousarray(matrix), penalty_terms
        self._factor = self._cholesky() if penalty_terms.free and not penalty_terms.l1.any() else None

    def minimise(self, linear: FloatArray, start: FloatArray) -> FloatArray:
        """The minimiser; `start` only saves time."""
        if self._factor is not None:
            from scipy.linalg import cho_solve

            return np.asarray(cho_solve(self._factor, linear))
        w = np.clip(start, self.penalty_terms.low, self.penalty_terms.high)
        size = float(np.abs(linear).max(initial=0.0))
        rest = np.array(linear, dtype=np.float64)
        for column, value in zip(self.matrix.T, w, strict=True):
            rest -= column * value
        self._descend(rest, w, TOLERANCE * max(size, 1.0))
        return w

    def _descend(self, rest: FloatArray, w: FloatArray, tolerance: float) -> None:
        """A few sweeps in Python, which cost less than to compile anything; the rest of them compiled."""
        few = 0 if "discreet.kernels.quadratic" in sys.modules else FEW_STEPS // self.matrix.size
        done, enough = minimise_quadratic(self.matrix, rest, *self.penalty_terms, w, tolerance, few)
        if not enough:
            from discreet.kernels import quadratic

            quadratic.minimise_quadratic(self.matrix, rest, *self.penalty_terms, w, tolerance, SWEEPS - done)

    def _cholesky(self) -> tuple[FloatArray, bool]:
        from scipy.linalg import cho_factor

        ridged = self.matrix + np.diag(self.penalty_terms.l2)
        factor, lower = cho_factor(ridged)
        return np.asarray(factor), bool(lower)
