"""Slopes and curvatures: before the first step from the problem alone, then from noisy second moments.

The curvature of the model that a step minimises is so large that steps do not overshoot. Post-processing of released
numbers. Derivation: docs/guarantees/newton.md, steps 1 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.solvers._shared.clipping import planned_slope

if TYPE_CHECKING:
    from discreet.problem.losses import Loss
    from discreet.problem.penalties import PenaltyTerms
    from discreet.problem.problem import Problem
    from discreet.scaling.second_moment import SecondMoment

# Tuned on public tables, and never read from rows: docs/defaults.md.
LEAST_CURVATURE = 0.05  # in units of its bound: no step is more than 20 times as long as one that is safe everywhere
MEDIAN_RESIDUAL = 0.6745  # of normal residuals, in standard deviations
CAUTION = 2.0  # steps are so much shorter than usual curvatures allow, since curvatures grow along with a fit


@dataclass(frozen=True, eq=False)
class Curvature:
    """The curvature of the model in the metric, in units of its bound: eigenvectors and values.

    `progress` is the part of the way to the minimum that a step goes along each of them: what is expected of the
    gradients' curvature, over that of the model.
    """

    vectors: FloatArray
    model: FloatArray
    progress: FloatArray

    @property
    def matrix(self) -> FloatArray:
        return np.asarray((self.vectors * self.model) @ self.vectors.T)


def likely_values(moment: SecondMoment) -> FloatArray:
    """What the eigenvalues would be without noise.

    Within the edge of the noise it is the noise that orders them, and only their mean says where they lie.
    """
    values, edge = np.linalg.eigvalsh(moment.matrix), moment.noise_edge
    return np.maximum(values - edge, max(float(np.minimum(values, edge).mean()), 0.0))


def safe_curvature(moment: SecondMoment) -> Curvature:
    """The noisy Hessian in the metric, in units of the bound on the curvature; so large that steps do not overshoot.

    It is lifted by the edge of its noise. In directions of little curvature few rows have a say, and the mean of all
    directions keeps the steps short there. The progress is that of the Hessian without noise, or half of the way where
    the noise hides it.
    """
    values, vectors = np.linalg.eigh(moment.matrix)
    lifted = np.maximum(values + moment.noise_edge, max(float(values.mean()), LEAST_CURVATURE))
    model = np.minimum(lifted, 1.0)
    return Curvature(vectors, model, np.clip(values / model, 0.5, 1.0))


def first_curvature(loss: Loss) -> float:
    """That of the model before any is learned: its bound, or less where that is far from usual."""
    return min(loss.smoothness, CAUTION * loss.usual_curvature)


def is_free(terms: PenaltyTerms) -> bool:
    """Whether no weight has bounds."""
    return bool((np.isneginf(terms.low) & np.isposinf(terms.high)).all())


def first_slope(problem: Problem) -> float:
    """The median of the slopes at the start, in units of a usual one: those of labels at margin 0, or residuals."""
    loss = problem.loss
    if not loss.classification:
        return MEDIAN_RESIDUAL
    labels = np.array([-1.0, 1.0]) if loss.outputs == 1 else np.arange(loss.outputs, dtype=np.float64)
    margins = np.zeros(2) if loss.outputs == 1 else np.zeros((labels.size, loss.outputs))
    slopes = np.reshape(loss.slope(margins, labels), (labels.size, -1))
    return float(np.linalg.norm(slopes, axis=1).max()) / planned_slope(problem)


def least_shrinkage(problem: Problem) -> float:
    """By how much the threshold may fall halfway.

    Residuals shrink; slopes of labels grow where labels are rare, and these few rows, which may be too few to be seen
    in the counts, must not be clipped.
    """
    return 1.0 if problem.loss.classification else 0.5
