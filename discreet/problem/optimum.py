"""The non-private optimum, with a certificate: what private solvers are measured against.

Four methods, by structure: Newton steps for smooth problems with few columns, L-BFGS for smooth ones with
many, coordinate descent sweeps (the very kernel of the private solver, without noise) for separable
penalties with kinks, and accelerated proximal gradient steps for everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.problem.certificate import Certificate, certify, curvature, is_optimal
from discreet.problem.column_scaling import exact_scaling
from discreet.problem.fista import accelerated_steps, largest_curvature
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem, scale_problem

LARGEST_NEWTON = 3_000  # columns up to which a dense Hessian is formed
MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class Optimum:
    """A minimiser without privacy, in the user's columns.

    Attributes
    ----------
    coef : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients.
    intercept : float or ndarray
        Intercept.
    value : float
        The objective there.
    certificate : Certificate
        How far from optimal it can be.
    """

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
    if not problem.penalty.separable:  # the coefficient of an empty column is 0 for separable penalties alone
        scaling = replace(scaling, frozen=np.zeros(scaling.columns, dtype=bool))
    return scale_problem(problem, data, scaling, data.rows, "F")


def is_smooth(scaled: BlockwiseProblem) -> bool:
    c = scaled.penalty_terms
    free = np.isneginf(c.low).all() and np.isposinf(c.high).all()
    coupled = not scaled.problem.penalty.separable
    return bool(scaled.problem.constraint is None and not coupled and free and not c.l1.any())


def newton(scaled: ScaledProblem, tolerance: float) -> FloatArray:
    """Damped Newton steps; the Hessian of a generalised linear model is X' diag(curvature) X / n."""
    w = scaled.start()
    ridge = scaled.penalty_terms.l2
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


def lbfgs(scaled: BlockwiseProblem, most: int = 20_000, progress: float = 1e-15) -> FloatArray:
    """L-BFGS steps, at most so many and until one gains less than `progress` of the objective."""
    shape, ridge = scaled.shape, scaled.penalty_terms.l2

    def value_and_gradient(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(shape)
        return scaled.value(w), (scaled.gradient(w) + ridge * w).ravel()

    options = {"maxiter": most, "maxfun": 50_000, "ftol": progress, "gtol": 1e-10, "maxcor": 30}
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


def _accelerated_proximal_gradient(scaled: ScaledProblem, tolerance: float) -> FloatArray:
    bound, w = curvature(scaled), scaled.start()
    steps = accelerated_steps(scaled, w, 1.0 / largest_curvature(scaled))
    for done, w in enumerate(islice(steps, MOST_STEPS), start=1):
        if done % 20 == 0 and is_optimal(scaled, w, tolerance, bound):
            break
    return w
