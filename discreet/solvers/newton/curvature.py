"""The curvature of the model that a step minimises, from noisy second moments: so large that steps do not overshoot.

Post-processing of released numbers. Derivation: docs/guarantees/newton.md, steps 1 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray

if TYPE_CHECKING:
    from discreet.scaling.second_moment import SecondMoment

# Tuned on public tables, and never read from rows: docs/defaults.md.
LEAST_CURVATURE = 0.05  # in units of its bound: no step is more than 20 times as long as one that is safe everywhere


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
