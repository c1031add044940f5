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
import numpy.typing as npt
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from discreet.accounting import Budget
from discreet.data import Data, Public
from discreet.framed import Framed, put_in_frame
from discreet.problem import Problem
from discreet.randomness import seeded_stream
from discreet.scales import learn_frame, plan_scaling

FloatArray = npt.NDArray[np.float64]
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
    framed = exactly_framed(problem, data)
    if framed.columns == 0:
        w = framed.start()
    elif is_smooth(framed) and framed.outputs == 1 and framed.columns <= LARGEST_NEWTON:
        w = newton(framed, tolerance)
        if not is_optimal(framed, w, tolerance, curvature(framed)):  # curvature that jumps can make it stop early
            w = min(w, lbfgs(framed), key=framed.value)
    elif is_smooth(framed):
        w = lbfgs(framed)
    elif problem.separable and framed.outputs == 1:
        w = _coordinate_descent(framed, tolerance)
    else:
        w = _accelerated_proximal_gradient(framed, tolerance)
    coef, intercept = framed.to_user(w)
    return Optimum(coef, intercept, framed.value(w), certify(framed, w))


def exactly_framed(problem: Problem, data: Data) -> Framed:
    """The rows in the frame of their exact moments: perfectly scaled, and not private."""
    public = Public(rows=data.rows, columns=data.X.shape[1], sparse=data.sparse)
    target = not problem.loss.classification
    scaling = plan_scaling(public, Budget(math.inf, 0.5), None, problem.fit_intercept, target)
    frame = learn_frame(scaling, data, public, seeded_stream(0))
    return put_in_frame(problem, data, frame, data.rows, "F")


def curvature(framed: Framed) -> FloatArray:
    """Coordinate-wise smoothness of the mean loss, from the rows. Not private."""
    X, weight = framed.X, framed.weight
    square = X.multiply(X) if sp.issparse(X) else None
    ones = np.ones(X.shape[0]) if weight is None else weight
    moments = ones @ square if square is not None else np.einsum("i,ij,ij->j", ones, X, X)
    moments = np.asarray(moments, dtype=np.float64).ravel() / framed.rows
    return framed.problem.loss.smoothness * np.maximum(moments, 1e-12)


def certify(framed: Framed, w: FloatArray) -> Certificate:
    """A duality gap where the dual point is feasible, else the proximal residual."""
    gap = _duality_gap(framed, w)
    if math.isfinite(gap):
        return Certificate("duality gap", max(gap, 0.0))
    return Certificate("residual", framed.residual(w, curvature(framed)))


def _duality_gap(framed: Framed, w: FloatArray) -> float:
    """F(w) minus the dual value at the (centred, rescaled) slopes; infinite where no dual point is at hand."""
    problem, constraint = framed.problem, framed.problem.constraint
    c = framed.coefficients
    inner = framed.frame.columns
    penalised = ((c.l1[:inner] > 0.0) | (c.l2[:inner] > 0.0)).all()
    boxed = np.isfinite(c.low[:inner]).any() or np.isfinite(c.high[:inner]).any()
    if framed.outputs > 1 or constraint is not None or boxed or not penalised or framed.weight is not None:
        return math.inf
    dual = framed.slopes(w)
    if problem.fit_intercept:
        dual = dual - dual.mean()
    correlation = np.abs(np.asarray(framed.X[:, :inner].T @ dual)) / framed.rows
    tight = c.l2[:inner] == 0.0
    if tight.any():  # no ridge there: the conjugate is finite only inside the L1 dual ball
        shrink = min(1.0, float((c.l1[:inner] / np.maximum(correlation, 1e-300))[tight].min()))
        dual, correlation = shrink * dual, shrink * correlation
    excess = np.maximum(correlation - c.l1[:inner], 0.0) ** 2 / (2.0 * np.where(tight, 1.0, c.l2[:inner]))
    conjugates = problem.loss.conjugate(dual, framed.y)
    return framed.value(w) + float(conjugates.sum()) / framed.rows + float(excess[~tight].sum())


def is_smooth(framed: Framed) -> bool:
    c = framed.coefficients
    free = np.isneginf(c.low).all() and np.isposinf(c.high).all()
    return bool(framed.problem.constraint is None and free and not c.l1.any())


def newton(framed: Framed, tolerance: float) -> FloatArray:
    """Damped Newton steps; the Hessian of a generalised linear model is X' diag(curvature) X / n."""
    w = framed.start()
    ridge = framed.coefficients.l2
    for _ in range(200):
        margins = framed.margins(w)
        weights = framed.problem.loss.curvature(margins, framed.y)
        if framed.weight is not None:
            weights = weights * framed.weight
        X = framed.X
        scaled = X.multiply(weights[:, None]).tocsc() if sp.issparse(X) else X * weights[:, None]
        hessian = X.T @ scaled
        hessian = np.asarray(hessian.toarray() if sp.issparse(hessian) else hessian) / framed.rows
        hessian[np.diag_indices_from(hessian)] += ridge + 1e-12
        gradient = framed.gradient(w) + ridge * w
        direction = -scipy.linalg.lstsq(hessian, gradient, lapack_driver="gelsy")[0]
        decrement = -float(gradient @ direction)
        if decrement <= 1e-2 * tolerance**2:
            break
        w = _line_search(framed, w, direction, decrement)
    return w


def _line_search(framed: Framed, w: FloatArray, direction: FloatArray, decrement: float) -> FloatArray:
    value, length = framed.value(w), 1.0
    while length > 1e-12:
        moved = w + length * direction
        if framed.value(moved) <= value - 1e-4 * length * decrement + 1e-15 * abs(value):
            return moved
        length *= 0.5
    return w


def lbfgs(framed: Framed) -> FloatArray:
    shape, ridge = framed.shape, framed.coefficients.l2

    def value_and_gradient(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(shape)
        return framed.value(w), (framed.gradient(w) + ridge * w).ravel()

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30}
    result = scipy.optimize.minimize(
        value_and_gradient, framed.start().ravel(), jac=True, method="L-BFGS-B", options=options
    )
    return np.asarray(result.x).reshape(shape)


def _coordinate_descent(framed: Framed, tolerance: float) -> FloatArray:
    """Cyclic sweeps until the certificate is small."""
    from discreet.sweeps import Sweeps

    bound = curvature(framed)
    sweeps = Sweeps(framed, clip=np.full(framed.columns, np.inf), step=1.0 / bound)
    order = np.arange(framed.columns)
    silence = np.zeros(framed.columns)
    for round_ in range(20_000):
        sweeps.run(order, silence)
        if round_ % 10 == 9 and is_optimal(framed, sweeps.w, tolerance, bound):
            break
    return sweeps.w


def is_optimal(framed: Framed, w: FloatArray, tolerance: float, bound: FloatArray) -> bool:
    """Whether the duality gap or the residual is below the tolerance. Not private."""
    gap = _duality_gap(framed, w)
    if math.isfinite(gap) and gap <= tolerance * max(abs(framed.value(w)), 1e-12):
        return True
    return framed.residual(w, bound) <= tolerance


def _accelerated_proximal_gradient(framed: Framed, tolerance: float) -> FloatArray:
    return deque(accelerated_steps(framed, tolerance, 100_000), maxlen=1).pop()[1]


def accelerated_steps(framed: Framed, tolerance: float, most: int) -> Iterator[tuple[int, FloatArray]]:
    """Nesterov momentum with restarts, until the residual is small; yields (iteration, weights)."""
    step = 1.0 / largest_curvature(framed)
    w = framed.start()
    point, momentum = w, 1.0
    bound = curvature(framed)
    for iteration in range(1, most + 1):
        moved = framed.prox(point - step * framed.gradient(point), step)
        if float(((point - moved) * (moved - w)).sum()) > 0.0:  # going uphill: forget the momentum
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + (momentum - 1.0) / following * (moved - w)
        w, momentum = moved, following
        yield iteration, w
        if iteration % 20 == 0 and is_optimal(framed, w, tolerance, bound):
            return


def largest_curvature(framed: Framed) -> float:
    """An upper estimate of the largest eigenvalue of the mean loss's Hessian. Not private."""
    vector = np.cos(np.arange(framed.columns))  # ones would miss tables whose columns cancel, such as x and -x
    vector /= np.linalg.norm(vector)
    value = 1.0
    for _ in range(100):
        product = np.asarray(framed.X.T @ (framed.X @ vector)) / framed.rows
        value = float(np.linalg.norm(product)) or 1e-12
        vector = product / value
    return 1.02 * value * framed.problem.loss.smoothness
