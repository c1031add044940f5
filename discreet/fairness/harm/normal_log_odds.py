"""Normal, calibrated log-odds: P(y = 1 | score) = 1 / (1 + exp(-score)) for a score that is N(mean, spread^2)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from discreet._common.types import FloatArray

FAR = 9.0  # standard deviations beyond which a normal law has no mass that a double can see
SMALLEST_DEVIATION, LARGEST_DEVIATION = 1e-6, 50.0  # of log-odds: nothing is known, or everything, for all purposes
RAREST = 1e-12  # share of a label, beyond which grids see nothing of it


def normal(score: FloatArray, mean: float, spread: float) -> FloatArray:
    return np.exp(-0.5 * ((score - mean) / spread) ** 2) / (spread * math.sqrt(2.0 * math.pi))


def logistic(score: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(score))


@cache
def _grid() -> tuple[FloatArray, FloatArray]:
    """Points and weights of a standard normal law; sums over an even grid are exact for smooth functions."""
    points = np.linspace(-FAR, FAR, 1_201)
    weights = normal(points, 0.0, 1.0)
    return points, weights / weights.sum()


@cache
def mean_for(rate: float, spread: float) -> float:
    """The mean of calibrated normal log-odds whose favourable share is `rate`."""
    from scipy.optimize import brentq

    points, weights = _grid()
    width = FAR * spread + 40.0
    return float(brentq(lambda mean: logistic(mean + spread * points) @ weights - rate, -width, width, xtol=1e-13))


def area_under_curve(rate: float, spread: float) -> float:
    points, weights = _grid()
    favourable = weights * logistic(mean_for(rate, spread) + spread * points) / rate
    other = (weights - rate * favourable) / (1.0 - rate)
    return float(favourable @ (np.cumsum(other) - 0.5 * other))


@cache
def deviation_for(auc: float, rate: float) -> float:
    """The deviation of calibrated normal log-odds with this area under the curve."""
    from scipy.optimize import brentq

    if auc >= area_under_curve(rate, LARGEST_DEVIATION):
        raise ValueError(f"auc={auc:g} is too near to 1 for normal log-odds.")
    if auc <= area_under_curve(rate, SMALLEST_DEVIATION):
        raise ValueError(f"auc={auc!r} is too near to 0.5: such a model knows nothing.")
    limits = (SMALLEST_DEVIATION, LARGEST_DEVIATION)
    return float(brentq(lambda spread: area_under_curve(rate, spread) - auc, *limits, xtol=1e-9))
