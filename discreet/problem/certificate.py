"""How far weights are from the optimum: a duality gap, or a residual that is 0 only there. Nothing here is private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledBlock


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
