"""The non-private optimum, with a certificate: what private solvers are measured against.

Four methods, by structure: Newton steps for smooth problems with few columns, L-BFGS for smooth ones with
many, coordinate descent sweeps (the very kernel of the private solver, without noise) for separable
penalties with kinks, and accelerated proximal gradient steps for everything else.

How far weights are from the optimum, a duality gap tells, or a residual that is 0 only there. Nothing here is private.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data
from discreet.problem.column_scaling import exact_scaling
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock, ScaledProblem, scale_problem


@dataclass(frozen=True)
class Certificate:
    """How far from optimal: an upper bound on the gap (`duality gap`), or a `residual` that is 0 only there."""

    kind: str
    value: float


def certify(problem: BlockwiseProblem, w: FloatArray) -> Certificate:
    """A duality gap where the dual point is feasible, else the proximal residual."""
    gap = duality_gap(problem, w)
    if math.isfinite(gap):
        return Certificate("duality gap", max(gap, 0.0))
    return Certificate("residual", problem.residual(w, curvature(problem)))


def is_optimal(problem: BlockwiseProblem, w: FloatArray, tolerance: float, bound: FloatArray) -> bool:
    """Whether the duality gap (relative to the objective) or the residual is below the tolerance."""
    gap = duality_gap(problem, w)
    if math.isfinite(gap) and gap <= tolerance * max(abs(problem.value(w)), 1e-12):
        return True
    return problem.residual(w, bound) <= tolerance


def curvature(problem: BlockwiseProblem) -> FloatArray:
    """Coordinate-wise smoothness of the mean loss, from the rows."""
    return problem.problem.loss.smoothness * np.maximum(problem.sum(_squares) / problem.rows, 1e-12)


def duality_gap(problem: BlockwiseProblem, w: FloatArray) -> float:
    """F(w) minus the dual value at the (centred, rescaled) slopes; infinite where no dual point is at hand."""
    c, inner = problem.penalty_terms, problem.scaling.columns
    l1, l2 = c.l1[:inner], c.l2[:inner]
    if not _has_dual_point(problem):
        return math.inf
    centre = _mean_slope(problem, w) if problem.problem.fit_intercept else 0.0
    products = problem.sum(partial(_correlations, w=w, centre=centre, inner=inner))
    correlation = np.abs(products) / problem.rows
    tight = l2 == 0.0
    shrink = 1.0
    if tight.any():  # no ridge there: the conjugate is finite only inside the L1 dual ball
        shrink = min(1.0, float((l1 / np.maximum(correlation, 1e-300))[tight].min()))
    excess = np.maximum(shrink * correlation - l1, 0.0) ** 2 / (2.0 * np.where(tight, 1.0, l2))
    conjugates = problem.sum(partial(_conjugates, w=w, centre=centre, shrink=shrink))
    return problem.value(w) + float(conjugates[0]) / problem.rows + float(excess[~tight].sum())


def _has_dual_point(problem: BlockwiseProblem) -> bool:
    """Whether the slopes, centred and rescaled, are a feasible point of the dual problem."""
    c, inner = problem.penalty_terms, problem.scaling.columns
    penalised = ((c.l1[:inner] > 0.0) | (c.l2[:inner] > 0.0)).all()
    boxed = np.isfinite(c.low[:inner]).any() or np.isfinite(c.high[:inner]).any()
    weighted = bool(problem.max(_weighted)[0])
    return bool(penalised) and not (problem.outputs > 1 or problem.problem.constraint is not None or boxed or weighted)


def _mean_slope(problem: BlockwiseProblem, w: FloatArray) -> float:
    total, count = problem.sum(partial(_slopes, w=w))
    return float(total / count)


def _squares(block: ScaledBlock) -> FloatArray:
    ones = np.ones(block.y.size) if block.weight is None else block.weight
    if sp.issparse(block.X):
        return np.asarray(ones @ block.X.multiply(block.X), dtype=np.float64).ravel()
    return np.einsum("i,ij,ij->j", ones, block.X, block.X)


def _correlations(block: ScaledBlock, w: FloatArray, centre: float, inner: int) -> FloatArray:
    return np.asarray(block.X[:, :inner].T @ (block.slopes(w) - centre))


def _conjugates(block: ScaledBlock, w: FloatArray, centre: float, shrink: float) -> FloatArray:
    return np.array([block.loss.conjugate(shrink * (block.slopes(w) - centre), block.y).sum()])


def _weighted(block: ScaledBlock) -> FloatArray:
    return np.array([float(block.weight is not None)])


def _slopes(block: ScaledBlock, w: FloatArray) -> FloatArray:
    return np.array([block.slopes(w).sum(), float(block.y.size)])


LARGEST_MATRIX = 2_000  # columns up to which the second-moment matrix is formed, in one pass
POWER_ITERATIONS = 100


def accelerated_steps(
    problem: BlockwiseProblem, w: FloatArray, step: float, restarts: bool = True
) -> Iterator[FloatArray]:
    """The iterates after w, without end.

    With `restarts` the momentum is forgotten whenever a step goes uphill (O'Donoghue and Candes 2015), which is faster
    on strongly convex problems; without, the rate of the paper holds for every number of steps. Not private.
    """
    point, momentum = w, 1.0
    while True:
        moved = problem.prox(point - step * problem.gradient(point), step)
        if restarts and float(((point - moved) * (moved - w)).sum()) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + (momentum - 1.0) / following * (moved - w)
        w, momentum = moved, following
        yield w


def largest_curvature(problem: BlockwiseProblem) -> float:
    """An upper estimate of the largest eigenvalue of the mean loss's Hessian: 1 / step. Not private."""
    p = problem.columns
    if p <= LARGEST_MATRIX:
        moment = problem.sum(_second_moment) / problem.rows
        value = float(np.linalg.eigvalsh(moment)[-1])
    else:
        vector = np.cos(np.arange(p))  # ones would miss tables whose columns cancel, such as x and -x
        vector /= np.linalg.norm(vector)
        for _ in range(POWER_ITERATIONS):
            product = problem.sum(partial(_product, vector=vector)) / problem.rows
            value = float(np.linalg.norm(product))
            vector = product / (value or 1.0)
    return 1.02 * max(value, 1e-12) * problem.problem.loss.smoothness


def _product(block: ScaledBlock, vector: FloatArray) -> FloatArray:
    return np.asarray(block.X.T @ (block.X @ vector))


def _second_moment(block: ScaledBlock) -> FloatArray:
    product = block.X.T @ block.X
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)


LARGEST_NEWTON = 3_000  # columns up to which a dense Hessian is formed
MOST_STEPS, MOST_SWEEPS = 100_000, 20_000


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
    else:
        bound = curvature(scaled)
        if problem.separable and scaled.outputs == 1:
            from discreet.problem.coordinate_state import CoordinateState, sweeps

            state = CoordinateState(scaled, clip=np.full(scaled.columns, np.inf), step=1.0 / bound)
            w = _first_optimal(scaled, sweeps(state), tolerance, bound, 10, MOST_SWEEPS)
        else:
            steps = accelerated_steps(scaled, scaled.start(), 1.0 / largest_curvature(scaled))
            w = _first_optimal(scaled, steps, tolerance, bound, 20, MOST_STEPS)
    coef, intercept = scaled.to_user(w)
    return Optimum(coef, intercept, scaled.value(w), certify(scaled, w))


def exactly_scaled(problem: Problem, data: Data) -> ScaledProblem:
    """The rows scaled by their exact moments: perfectly scaled, and not private."""
    scaling = exact_scaling(data, problem.fit_intercept and not data.sparse, not problem.loss.classification)
    if not problem.penalty.separable:  # the coefficient of an empty column is 0 for separable penalties alone
        scaling = replace(scaling, frozen=np.zeros(scaling.columns, dtype=bool))
    return scale_problem(problem, data, scaling, data.rows, "F")


def is_smooth(scaled: BlockwiseProblem) -> bool:
    c, problem = scaled.penalty_terms, scaled.problem
    return problem.constraint is None and problem.penalty.separable and c.free and not c.l1.any()


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


def _first_optimal(
    scaled: ScaledProblem, steps: Iterable[FloatArray], tolerance: float, bound: FloatArray, every: int, most: int
) -> FloatArray:
    """The first of the steps, of every so many, whose certificate is small."""
    w = scaled.start()
    for done, w in enumerate(islice(steps, most), start=1):
        if done % every == 0 and is_optimal(scaled, w, tolerance, bound):
            break
    return w
