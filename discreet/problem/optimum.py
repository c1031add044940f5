"""The non-private optimum, with a certificate: what private solvers are measured against.

Three methods, by structure: Newton steps for smooth problems with few columns, L-BFGS for smooth ones with
many, coordinate descent sweeps (the very kernel of the private solver, without noise) for separable
penalties with kinks, and accelerated proximal gradient steps for everything else.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.problem.column_scaling import exact_scaling
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import ScaledProblem, scale_problem

LARGEST_NEWTON = 3_000  # columns up to which a dense Hessian is formed


@dataclass(frozen=True)
class Certificate:
    """How far from optimal: an upper bound on the gap (`duality gap`), or a `residual` that is 0 only there."""

    kind: str
    value: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """A non-private minimiser in the user's columns."""

    coef: FloatArray
    intercept: Any
    value: float
    certificate: Certificate


def minimise(problem: Problem, data: Data, tolerance: float = 1e-10) -> Optimum:
    """Minimise to `tolerance` (relative to the objective for gaps, absolute for residuals)."""
    scaled = exactly_scaled(problem, data)
    if scaled.columns == 0:
        w = scaled.start()
    elif is_smooth(scaled) and scaled.outputs == 1 and scaled.columns <= LARGEST_NEWTON:
        w = newton(scaled, tolerance)
        if not is_optimal(scaled, w, tolerance, curvature(scaled)):  # curvature that jumps can make it stop early
            w = min(w, lbfgs(scaled), key=scaled.value)
    elif is_smooth(scaled):
        w = lbfgs(scaled)
    elif problem.separable and scaled.outputs == 1:
        w = _coordinate_descent(scaled, tolerance)
    else:
        w = _accelerated_proximal_gradient(scaled, tolerance)
    coef, intercept = scaled.to_user(w)
    return Optimum(coef, intercept, scaled.value(w), certify(scaled, w))


def exactly_scaled(problem: Problem, data: Data) -> ScaledProblem:
    """The rows scaled by their exact moments: perfectly scaled, and not private."""
    scaling = exact_scaling(data, problem.fit_intercept and not data.sparse, not problem.loss.classification)
    return scale_problem(problem, data, scaling, data.rows, "F")


def curvature(scaled: ScaledProblem) -> FloatArray:
    """Coordinate-wise smoothness of the mean loss, from the rows. Not private."""
    X, weight = scaled.X, scaled.weight
    square = X.multiply(X) if sp.issparse(X) else None
    ones = np.ones(X.shape[0]) if weight is None else weight
    moments = ones @ square if square is not None else np.einsum("i,ij,ij->j", ones, X, X)
    moments = np.asarray(moments, dtype=np.float64).ravel() / scaled.rows
    return scaled.problem.loss.smoothness * np.maximum(moments, 1e-12)


def certify(scaled: ScaledProblem, w: FloatArray) -> Certificate:
    """A duality gap where the dual point is feasible, else the proximal residual."""
    gap = _duality_gap(scaled, w)
    if math.isfinite(gap):
        return Certificate("duality gap", max(gap, 0.0))
    return Certificate("residual", scaled.residual(w, curvature(scaled)))


def _duality_gap(scaled: ScaledProblem, w: FloatArray) -> float:
    """F(w) minus the dual value at the (centred, rescaled) slopes; infinite where no dual point is at hand."""
    problem, constraint = scaled.problem, scaled.problem.constraint
    c = scaled.coefficients
    inner = scaled.scaling.columns
    penalised = ((c.l1[:inner] > 0.0) | (c.l2[:inner] > 0.0)).all()
    boxed = np.isfinite(c.low[:inner]).any() or np.isfinite(c.high[:inner]).any()
    if scaled.outputs > 1 or constraint is not None or boxed or not penalised or scaled.weight is not None:
        return math.inf
    dual = scaled.slopes(w)
    if problem.fit_intercept:
        dual = dual - dual.mean()
    correlation = np.abs(np.asarray(scaled.X[:, :inner].T @ dual)) / scaled.rows
    tight = c.l2[:inner] == 0.0
    if tight.any():  # no ridge there: the conjugate is finite only inside the L1 dual ball
        shrink = min(1.0, float((c.l1[:inner] / np.maximum(correlation, 1e-300))[tight].min()))
        dual, correlation = shrink * dual, shrink * correlation
    excess = np.maximum(correlation - c.l1[:inner], 0.0) ** 2 / (2.0 * np.where(tight, 1.0, c.l2[:inner]))
    conjugates = problem.loss.conjugate(dual, scaled.y)
    return scaled.value(w) + float(conjugates.sum()) / scaled.rows + float(excess[~tight].sum())


def is_smooth(scaled: ScaledProblem) -> bool:
    c = scaled.coefficients
    free = np.isneginf(c.low).all() and np.isposinf(c.high).all()
    return bool(scaled.problem.constraint is None and free and not c.l1.any())


def newton(scaled: ScaledProblem, tolerance: float) -> FloatArray:
    """Damped Newton steps; the Hessian of a generalised linear model is X' diag(curvature) X / n."""
    w = scaled.start()
    ridge = scaled.coefficients.l2
    for _ in range(200):
        margins = scaled.margins(w)
        weights = scaled.problem.loss.curvature(margins, scaled.y)
        if scaled.weight is not None:
            weights = weights * scaled.weight
        X = scaled.X
        weighted = X.multiply(weights[:, None]).tocsc() if sp.issparse(X) else X * weights[:, None]
        hessian = X.T @ weighted
        hessian = np.asarray(hessian.toarray() if sp.issparse(hessian) else hessian) / scaled.rows
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-12
        gradient = scaled.gradient(w) + ridge * w
        direction = -scipy.linalg.lstsq(hessian, gradient, lapack_driver="gelsy")[0]
        decrement = -float(gradient @ direction)
        if decrement <= 1e-2 * tolerance**2:
            break
        w = _line_search(scaled, w, direction, decrement)
    return w


def _line_search(scaled: ScaledProblem, w: FloatArray, direction: FloatArray, decrement: float) -> FloatArray:
    value, length = scaled.value(w), 1.0
    while length > 1e-12:
        moved = w + length * direction
        if scaled.value(moved) <= value - 1e-4 * length * decrement + 1e-15 * abs(value):
            return moved
        length *= 0.5
    return w


def lbfgs(scaled: ScaledProblem) -> FloatArray:
    shape, ridge = scaled.shape, scaled.coefficients.l2

    def value_and_gradient(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(shape)
        return scaled.value(w), (scaled.gradient(w) + ridge * w).ravel()

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
    result = scipy.optimize.minimize(
        value_and_gradient, scaled.start().ravel(), jac=True, method="L-BFGS-B", options=options
    )
    return np.asarray(result.x).reshape(shape)


def _coordinate_descent(scaled: ScaledProblem, tolerance: float) -> FloatArray:
    """Cyclic sweeps until the certificate is small."""
    from discreet.problem.coordinate_state import CoordinateState

    bound = curvature(scaled)
    state = CoordinateState(scaled, clip=np.full(scaled.columns, np.inf), step=1.0 / bound)
    order = np.arange(scaled.columns)
    zero_noise = np.zeros(scaled.columns)
    for round_ in range(20_000):
        state.run(order, zero_noise)
        if round_ % 10 == 9 and is_optimal(scaled, state.w, tolerance, bound):
            break
    return state.w


def is_optimal(scaled: ScaledProblem, w: FloatArray, tolerance: float, bound: FloatArray) -> bool:
    """Whether the duality gap or the residual is below the tolerance. Not private."""
    gap = _duality_gap(scaled, w)
    if math.isfinite(gap) and gap <= tolerance * max(abs(scaled.value(w)), 1e-12):
        return True
    return scaled.residual(w, bound) <= tolerance


def _accelerated_proximal_gradient(scaled: ScaledProblem, tolerance: float) -> FloatArray:
    return deque(accelerated_steps(scaled, tolerance, 100_000), maxlen=1).pop()[1]


def accelerated_steps(scaled: ScaledProblem, tolerance: float, most: int) -> Iterator[tuple[int, FloatArray]]:
    """Nesterov momentum with restarts, until the residual is small; yields (iteration, weights)."""
    step = 1.0 / largest_curvature(scaled)
    w = scaled.start()
    point, momentum = w, 1.0
    bound = curvature(scaled)
    for iteration in range(1, most + 1):
        moved = scaled.prox(point - step * scaled.gradient(point), step)
        if float(((point - moved) * (moved - w)).sum()) > 0.0:  # going uphill: forget the momentum
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + (momentum - 1.0) / following * (moved - w)
        w, momentum = moved, following
        yield iteration, w
        if iteration % 20 == 0 and is_optimal(scaled, w, tolerance, bound):
            return


def largest_curvature(scaled: ScaledProblem) -> float:
    """An upper estimate of the largest eigenvalue of the mean loss's Hessian. Not private."""
    vector = np.cos(np.arange(scaled.columns))  # ones would miss tables whose columns cancel, such as x and -x
    vector /= np.linalg.norm(vector)
    value = 1.0
    for _ in range(100):
        product = np.asarray(scaled.X.T @ (scaled.X @ vector)) / scaled.rows
        value = float(np.linalg.norm(product)) or 1e-12
        vector = product / value
    return 1.02 * value * scaled.problem.loss.smoothness
