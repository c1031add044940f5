"""A client's own rows, and the one thing that it computes of them: the gradient of a proximal step.

The proximal step of f(w) = (1/n) sum of v_i loss(x_i . w, y_i) from a point v minimises

    f(w) + |w - v|^2 / (2 gamma),

a strongly convex function, so that the length of its gradient at w, the residual, says how far w can be from the
minimiser: the gradient of f at w differs from the one at the minimiser by at most the residual. Nothing here has noise.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import row_norms
from discreet.problem.losses import Loss

NEWTON_STEPS = 25
FURTHER_STEPS = 50_000  # with one fixed matrix; each shortens the error by a fixed part, whatever the rows are
ROUNDING = float(np.finfo(np.float64).eps)


class LocalProblem:
    """The mean loss of a client's rows, in scaled columns.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Scaled rows, every entry in [-1, 1], the ones of an intercept last.
    y : ndarray of shape (n,)
        Targets or labels, clipped and centred.
    weight : ndarray of shape (n,), optional
        Weights between 0 and 1; a row with weight 0 is a null row.
    loss : Loss
        A loss of one margin.
    divisor : float
        What the sum of the losses is divided by, a public number.
    gamma : float
        Length of the proximal step.
    clip : float, optional
        The largest norm of the gradient of one row. The loss of a row goes on as a straight line where its slope would
        be larger: it stays convex.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        weight: FloatArray | None,
        loss: Loss,
        divisor: float,
        gamma: float,
        clip: float | None = None,
    ) -> None:
        self.X, self.y = np.array(X, dtype=np.float64, order="C"), np.array(y, dtype=np.float64)
        self.loss, self.gamma, self.divisor = loss, float(gamma), divisor
        self.share = np.full(y.size, 1.0 / divisor) if weight is None else weight / divisor
        norms = row_norms(self.X)
        self.clip, self.limit = clip, None if clip is None else clip * (1.0 - 4.0 * ROUNDING) / norms
        self._limits = np.full(y.size, np.inf) if self.limit is None else self.limit
        # Fewer rows than columns: a step moves only inside the span of the rows, so that it is solved there.
        rows, columns = self.X.shape
        self.basis: FloatArray | None = None
        self.A: FloatArray = self.X
        if rows < columns:
            self.basis, triangle = np.linalg.qr(self.X.T)  # an orthonormal basis, as columns, and the rows in it
            self.A = np.ascontiguousarray(triangle.T)

    def gradient(self, v: FloatArray, tolerance: float, start: FloatArray) -> FloatArray:
        """The gradient of f at the proximal step from v; `start` is where the search for it begins.

        Guarantee: with a clip, the vector returned is within `tolerance` of the gradient at the exact minimiser, which
        is checked, and is a mean of rows' gradients of at most that norm. Not private.

        Raises
        ------
        ValueError
            With a clip, if v is so large that double precision cannot give the tolerance; `reaches` says so beforehand.
        """
        slack = 2.0 * self.rounding(v)
        allowed = tolerance - slack if self.clip is not None else max(tolerance, 2.0 * slack)
        if not allowed >= 0.5 * tolerance:
            raise ValueError("the weights are too large for a proximal step to the planned tolerance.")
        with np.errstate(over="ignore", invalid="ignore"):
            w = self._from_reduced(v, self._solve(self._to_reduced(v), self._to_reduced(start), 0.5 * allowed))
            found = self._gradient_at(w)
            residual = float(np.linalg.norm(found + (w - v) / self.gamma))
        if self.clip is not None and not residual <= allowed:
            raise RuntimeError("a proximal step did not reach the planned tolerance.")
        return found if np.isfinite(found).all() else np.zeros_like(found)

    def reaches(self, v: FloatArray, tolerance: float) -> bool:
        """Whether double precision is enough for the tolerance; depends on v and the numbers of rows and columns."""
        return 4.0 * self.rounding(v) <= tolerance

    def rounding(self, v: FloatArray) -> float:
        """Bound on the rounding errors of a residual at the proximal step from v, from public facts.

        Entries of the rows lie in [-1, 1], so that a row has norm at most sqrt(p); products of p numbers have a
        relative error of at most p units, sums over n rows of n units.
        """
        rows, columns = self.X.shape
        far = float(np.linalg.norm(v))
        steep = self._largest_gradient(far)
        reach = far + self.gamma * steep
        margins = self.loss.smoothness * columns * (columns + 2) * reach
        return ROUNDING * (margins + (rows + columns + 10) * steep + 4.0 * reach / self.gamma)

    def _largest_gradient(self, far: float) -> float:
        """Bound on the norm of the gradient, at any point up to so far away."""
        if self.clip is not None:
            return self.clip
        length = np.sqrt(self.X.shape[1])
        if np.isfinite(self.loss.lipschitz):
            return float(self.loss.lipschitz * length)
        return float(self.loss.smoothness * (length * far + np.abs(self.y).max(initial=0.0)) * length)

    def _slopes(self, margins: FloatArray) -> FloatArray:
        slopes = self.loss.slope(margins, self.y)
        if self.limit is not None:
            slopes = np.clip(slopes, -self.limit, self.limit)
        return slopes * self.share

    def _gradient_at(self, w: FloatArray) -> FloatArray:
        return self.X.T @ self._slopes(self.X @ w)

    def _to_reduced(self, v: FloatArray) -> FloatArray:
        return v if self.basis is None else v @ self.basis

    def _from_reduced(self, v: FloatArray, a: FloatArray) -> FloatArray:
        return a if self.basis is None else v + self.basis @ (a - v @ self.basis)

    def _solve(self, centre: FloatArray, start: FloatArray, tolerance: float) -> FloatArray:
        """Newton's steps; steps with a fixed matrix if those do not settle."""
        from discreet.kernels.local_step import proximal_newton

        loss = self.loss
        found, settled = proximal_newton(
            *(self.A, self.y, self.share, self._limits, loss.code, loss.parameter, self.gamma),
            *(centre, start, tolerance, NEWTON_STEPS),
        )
        return found if settled else self._slow_steps(centre, tolerance)

    def _slow_steps(self, centre: FloatArray, tolerance: float) -> FloatArray:
        """Steps with the inverse of a matrix above every Hessian, which converge whatever the rows are.

        In the norm of that matrix the error shrinks in every step by 1 - 1 / condition at least.
        """
        a = centre
        for _ in range(FURTHER_STEPS):
            residual = self.A.T @ self._slopes(self.A @ a) + (a - centre) / self.gamma
            if np.linalg.norm(residual) <= tolerance:
                break
            a = a - self._inverse @ residual
        return a

    @cached_property
    def _inverse(self) -> FloatArray:
        """Inverse of a matrix above every Hessian of the proximal step."""
        above = (self.A.T * (self.loss.smoothness * self.share)) @ self.A
        above.flat[:: above.shape[0] + 1] += 1.0 / self.gamma
        return np.asarray(np.linalg.inv(above), dtype=np.float64)
