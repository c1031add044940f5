"""The estimate that intervals are for: one Newton step from the mean of the later iterates.

With the mean gradient g and the Hessian H, both released, it is mean - H^-1 g: the noise of all gradients is used, and
nothing is left of a penalty or of where the steps began. Derivation: docs/inference.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.inference.released import InferenceReleases
from discreet.problem.losses import Loss, Squared

NODES, MASSES = np.polynomial.hermite_e.hermegauss(40)
LEAST_EIGENVALUE = 1e-3  # of the largest one; where noise hides an eigenvalue, nothing is said anyway
ROUNDS = 3  # in which the Hessian of a loss that is not quadratic follows the estimate


@dataclass(frozen=True, eq=False)
class OneStepEstimate:
    """The estimate in the solver's columns, and what its covariance needs, in the metric.

    Attributes
    ----------
    w : array of shape (columns,)
    hessian : array of shape (columns, columns)
    deviation : float
        Of the noise on the diagonal of the Hessian; off the diagonal it is sqrt(1/2) times that.
    moved : array of shape (columns,)
        The step from the estimate back to the mean of the iterates.
    """

    w: FloatArray
    hessian: FloatArray
    deviation: float
    moved: FloatArray

    @property
    def inverse(self) -> FloatArray:
        return inverse(self.hessian)

    @property
    def length(self) -> float:
        """How far the step went, in the norm of the Hessian."""
        return math.sqrt(max(float(self.moved @ self.hessian @ self.moved), 0.0))


def inverse(hessian: FloatArray) -> FloatArray:
    """The inverse of a symmetric matrix, its eigenvalues kept away from 0."""
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors / np.maximum(values, LEAST_EIGENVALUE * max(values[-1], 1e-12))) @ vectors.T)


def estimate(released: InferenceReleases, loss: Loss, intercept: bool) -> OneStepEstimate:
    """The estimate from what was released; `intercept` says whether the last column is the one of ones."""
    metric, mean = released.metric, released.mean_weights
    gradient = metric.whiten(released.mean_gradient)
    root, w, at = np.sqrt(metric.values), mean, mean
    for _ in range(1 if isinstance(loss, Squared) else ROUNDS):
        hessian, deviation = _hessian(released, loss, intercept, at)
        moved = inverse(hessian) @ gradient
        w = mean - metric.vectors @ (moved / root)
        at = 0.5 * (w + mean)  # the mean curvature on the way is that half way
    return OneStepEstimate(w, hessian, deviation, moved)


def _hessian(released: InferenceReleases, loss: Loss, intercept: bool, w: FloatArray) -> tuple[FloatArray, float]:
    """The Hessian in the metric: the released one and what the second moment lets expect, weighted by their noise.

    How wrong the expected one is, is estimated from the distance between the two.
    """
    metric, moment = released.metric, released.moment
    curved, noise = loss.smoothness * released.hessian.matrix, loss.smoothness * released.hessian.deviation
    scales = np.sqrt(np.outer(metric.values, metric.values))
    plain = _whitened(released, moment.matrix)
    expected = _whitened(released, expected_hessian(moment.matrix, w, loss, intercept))
    # As large as the clipped rows leave it.
    expected = expected * max(float(np.trace(curved) / max(np.trace(expected), 1e-12)), 0.0)
    level = float(np.trace(expected)) / max(float(np.trace(plain)), 1e-12)
    variance = (level * moment.deviation / scales) ** 2  # of the expected one, on the diagonal
    if noise == 0.0:
        return curved, 0.0
    entries = 0.5 * (1.0 + np.eye(variance.shape[0]))  # off the diagonal the noise has half of the variance
    gap = curved - expected
    wrong = max(float((gap**2 - entries * (noise**2 + variance)).sum() / entries.sum()), 0.0)
    part = (variance + wrong) / (variance + wrong + noise**2)
    found = expected + part * gap
    return 0.5 * (found + found.T), noise * math.sqrt(float((entries * part).sum() / entries.sum()))


def _whitened(released: InferenceReleases, matrix: FloatArray) -> FloatArray:
    whitening = released.metric.whitening
    return np.asarray(whitening.T @ matrix @ whitening)


def expected_hessian(moment: FloatArray, w: FloatArray, loss: Loss, intercept: bool) -> FloatArray:
    """E[h(z'w) z z'] for normal rows z with this second moment, h being the curvature of the loss.

    With scores s = z'w of mean m and variance v, z is its mean + a (s - m) / sqrt(v) + a rest without s.
    """
    if isinstance(loss, Squared):
        return moment
    weight = float(moment[-1, -1]) if intercept else 1.0  # of all rows together
    moment = moment / weight
    centre = moment[:, -1] if intercept else np.zeros(w.size)
    spread = moment - np.outer(centre, centre)
    along = spread @ w
    variance = max(float(w @ along), 1e-12)
    scores = float(centre @ w) + math.sqrt(variance) * NODES
    along = along / math.sqrt(variance)
    h = MASSES / MASSES.sum() * _usual_curvature(loss, scores)
    none, one, two = (float((h * NODES**k).sum()) for k in range(3))
    outer = np.outer(centre, along)
    rest = spread - np.outer(along, along)
    found = none * (rest + np.outer(centre, centre)) + one * (outer + outer.T) + two * np.outer(along, along)
    return np.asarray(weight * found)


def _usual_curvature(loss: Loss, scores: FloatArray) -> FloatArray:
    """The expected curvature at these scores where the model holds; that of labels does not depend on the label."""
    if loss.classification:
        return np.asarray(loss.curvature(scores, np.ones_like(scores)))
    return np.asarray(loss.curvature(scores, np.exp(np.clip(scores, -50.0, 50.0))))
