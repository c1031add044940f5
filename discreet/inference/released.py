"""What a fit releases for its standard errors. All of it has noise, or is public: docs/guarantees/inference.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.scaling.second_moment import Metric, SecondMoment


@dataclass(frozen=True, eq=False)
class InferenceReleases:
    """Noisy gradients with the weights at which they were taken, and noisy second moments, in the solver's columns.

    Attributes
    ----------
    weights, gradients : array of shape (steps, columns)
        Points at which the mean clipped gradient was released, all with one threshold, and what was released there.
    noise : array of shape (steps,)
        Standard deviation of the noise of each, which is white in the metric.
    metric : Metric
    moment : SecondMoment
        Of the rows, in the solver's columns.
    hessian : SecondMoment
        In the metric, in units of the bound on the curvature.
    meat : SecondMoment or None
        Of the clipped gradients at the estimate, in the metric; None before it is released.
    """

    weights: FloatArray
    gradients: FloatArray
    noise: FloatArray
    metric: Metric
    moment: SecondMoment
    hessian: SecondMoment
    meat: SecondMoment | None = None

    @property
    def variance(self) -> float:
        """Of the noise in the mean of the gradients, each weighted by the inverse of its variance."""
        return 0.0 if self.noise.min() == 0.0 else float(1.0 / (self.noise**-2.0).sum())

    @property
    def mean_weights(self) -> FloatArray:
        return np.asarray(self._precision @ self.weights)

    @property
    def mean_gradient(self) -> FloatArray:
        return np.asarray(self._precision @ self.gradients)

    @property
    def _precision(self) -> FloatArray:
        if self.noise.min() == 0.0:
            return np.full(self.noise.size, 1.0 / self.noise.size)
        weights = self.noise**-2.0
        return np.asarray(weights / weights.sum())
