"""The covariance of the estimate: sampling, the noise of the gradients, and the noise of the Hessian.

Derivation and assumptions: docs/inference.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.inference.estimate import OneStepEstimate
from discreet.inference.released import InferenceReleases
from discreet.problem.column_scaling import ColumnScaling


@dataclass(frozen=True, eq=False)
class Covariance:
    """Of the estimate in some columns: all of it, and the part that would be left without noise."""

    total: FloatArray
    sampling: FloatArray

    def mapped(self, matrix: FloatArray) -> Covariance:
        """That of the matrix times the estimate."""
        return Covariance(matrix @ self.total @ matrix.T, matrix @ self.sampling @ matrix.T)


def covariance(released: InferenceReleases, found: OneStepEstimate, rows: int) -> Covariance:
    """The covariance in the solver's columns; `rows` is the public number of rows, by which sums were divided."""
    size, bread, square = found.w.size, found.inverse, found.deviation**2
    sampling = shrunk_meat(released, found) / rows
    moved, identity = found.moved, np.eye(size)
    inner = sampling + released.variance * identity
    inner = inner + 0.5 * square * (float(moved @ moved) * identity + np.outer(moved, moved))
    error = bread @ inner @ bread  # by which the iterates miss the truth beside that step
    inner = inner + 0.5 * square * (np.trace(error) * identity + error)
    total = bread @ inner @ bread
    back = released.metric.vectors / np.sqrt(released.metric.values)
    return Covariance(total, bread @ sampling @ bread).mapped(back)


def shrunk_meat(released: InferenceReleases, found: OneStepEstimate) -> FloatArray:
    """The second moment of the clipped gradients, shrunk towards a multiple of the Hessian as far as noise hides it.

    Where the model holds it is such a multiple. Negative eigenvalues, which are noise, become 0.
    """
    if released.meat is None:
        raise ValueError("the second moment of the gradients has not been released.")
    meat, hessian = released.meat.matrix, found.hessian
    level = float(np.trace(meat)) / max(float(np.trace(hessian)), 1e-12)
    gap = meat - level * hessian
    size = hessian.shape[0]
    noise = (released.meat.deviation**2 + (level * found.deviation) ** 2) * size * (size + 1) / 2
    square = float((gap**2).sum())
    kept = max(0.0, 1.0 - noise / square) if square > 0.0 else 1.0
    values, vectors = np.linalg.eigh(level * hessian + kept * gap)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def to_user(scaling: ColumnScaling, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """The matrix and the shift that take weights of scaled columns to those of the user's, the intercept last."""
    p = scaling.columns
    matrix, shift = np.zeros((p + intercept, p + intercept)), np.zeros(p + intercept)
    matrix[:p, :p] = np.diag(scaling.gain)
    if intercept:
        matrix[p, :p] = -scaling.shift * scaling.gain
        matrix[p, p], shift[p] = 1.0, scaling.target_shift
    return matrix, shift
