"""The distance of an average of iterates from the fixed point: by expected shortfalls.

Theorem and proof: docs/guarantees/utility.md, section "Averages of iterates".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in, whole
from discreet._common.types import FloatArray
from discreet.theory.distance import ContractionDistance

LARGEST_CENTRE = 1e6  # noncentralities up to which the noncentral law is evaluated; beyond it, the triangle inequality


@dataclass(frozen=True, eq=False)
class AveragedContractionDistance(ContractionDistance):
    """The mean of the last `averaged` iterates of u <- R(u) + noise, for a contraction R.

    The quantile of a mean is at most the mean of the expected shortfalls (the mean beyond the quantile); that of a
    single iterate is at most the one of the noncentral chi law that dominates it.
    """

    averaged: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole("averaged", self.averaged, least=1) > self.steps:
            raise ValueError(f"averaged must be at most steps={self.steps}; got {self.averaged}.")

    def radius(self, failure: float) -> float:
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        times = np.arange(self.steps - self.averaged + 1, self.steps + 1, dtype=np.float64)
        squared = self.contraction**2
        collected = times if squared == 1.0 else (1.0 - squared**times) / (1.0 - squared)
        spread, left = self.deviation * np.sqrt(collected), self.contraction**times * self.start
        return self.error + float(_shortfalls(self.size, spread, left, failure).mean())


def _shortfalls(size: int, spread: FloatArray, left: FloatArray, failure: float) -> FloatArray:
    """Bounds on the expected shortfalls of |m + noise| with |m| = left and `size` entries of deviation `spread`.

    That of the norm is at most the root of that of its square, E[Y; Y > q] / failure, which for a noncentral
    chi-squared Y with k degrees of freedom and centre c is (k P(Y_{k+2} > q) + c P(Y_{k+4} > q)) / failure.
    """
    from scipy.stats import chi2, ncx2

    away = left + spread * math.sqrt(size * float(chi2.sf(chi2.isf(failure, size), size + 2)) / failure)
    near = (spread > 0.0) & (left <= math.sqrt(LARGEST_CENTRE) * spread)
    if near.any():
        s, centre = spread[near], (left[near] / spread[near]) ** 2
        q = ncx2.isf(failure, size, centre)
        beyond = size * ncx2.sf(q, size + 2, centre) + centre * ncx2.sf(q, size + 4, centre)
        exact = s * np.sqrt(beyond / failure)
        away[near] = np.where(np.isfinite(exact), np.minimum(exact, away[near]), away[near])
    return np.asarray(away)
