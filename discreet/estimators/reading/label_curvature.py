"""How much a logistic model with large scores lets noise grow.

A plan takes the curvature of the logistic loss to be its largest, 1/4 (docs/plans.md). That is true of scores near 0.
Where columns tell the label well, scores are large and the loss is flatter, so that the same noise in a gradient moves
the minimum further, most of all along the coefficients themselves. How large the scores are follows from the released
coefficients and scales: no row is read.
"""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.losses import Logistic

GRID = np.linspace(-8.0, 8.0, 4_001)  # standard deviations of the score
FAR_SCORES = 500.0  # standard deviation of scores beyond which the grid is too coarse


def noise_growth(weights: FloatArray, intercept: float, has_intercept: bool) -> FloatArray:
    """Return by which factor the noise of each coefficient exceeds what the largest curvature would give.

    Scaled columns are taken to be independent and normal with variance 1. The Hessian is then E[h(s)] in all directions
    but two, that of the coefficients and the intercept, where it is the 2 x 2 matrix E[h(s) (u, 1)(u, 1)'], with
    s = intercept + |weights| u. Noise of one size in every gradient entry has the covariance of its inverse square.

    Parameters
    ----------
    weights : array of shape (columns,)
        The coefficients of scaled columns.
    intercept : float
        The intercept in scaled columns.
    has_intercept : bool
        Whether it was learned.

    Returns
    -------
    array of shape (columns + 1,)
        The factors, that of the intercept last; infinite where nothing can be said.
    """
    size = float(np.linalg.norm(weights))
    if not size < FAR_SCORES:
        return np.full(weights.size + 1, np.inf)
    density = np.exp(-0.5 * GRID**2)
    scores = intercept + size * GRID
    curvature = Logistic().curvature(scores, np.ones_like(scores)) * density / (density.sum() * Logistic().smoothness)
    flat, cross, along = (float((curvature * GRID**power).sum()) for power in (0, 1, 2))
    hessian = np.array([[along, cross if has_intercept else 0.0], [cross if has_intercept else 0.0, flat]])
    if not np.linalg.det(hessian) > 0.0:
        return np.full(weights.size + 1, np.inf)
    inverse = np.linalg.inv(hessian)
    variance_along, variance_intercept = np.diag(inverse @ inverse)
    share = (weights / size) ** 2 if size > 0.0 else np.zeros_like(weights)
    squares = (1.0 - share) / flat**2 + share * variance_along
    return np.sqrt(np.append(squares, variance_intercept))
