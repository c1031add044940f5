"""Deviances of the families of regressors: how bad a prediction is, in the unit of the loss it was trained for.

All are Bregman divergences: 0 where both agree, increasing as the target moves away on either side, and the mean is the
best constant. Section 4 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from discreet._common.types import FloatArray
from discreet.estimators.log_regressors import GammaRegressor, PoissonRegressor

HALVINGS = 200  # of the steps outwards, until an end is found to the last bits


@dataclass(frozen=True)
class Deviance:
    """One family.

    Attributes
    ----------
    name : str
        "squared", "poisson" or "gamma".
    of : function of targets and means
        The deviance; infinite or NaN where the mean is not possible.
    slope : function of a target and a mean
        Its derivative in the target.
    variance : function of a mean
        The variance function v: the second derivative in the target is 2 / v.
    """

    name: str
    of: Callable[[Any, Any], Any]
    slope: Callable[[float, float], float]
    variance: Callable[[float], float]

    def interval(self, centre: float, largest: float) -> tuple[float, float]:
        """The ends of the targets whose deviance from the centre is at most the largest."""
        if self.name == "squared":
            return centre - float(np.sqrt(largest)), centre + float(np.sqrt(largest))
        with np.errstate(all="ignore"):
            lowest = 0.0 if self.of(0.0, centre) <= largest else self._end(centre, largest, -1.0)
            return lowest, self._end(centre, largest, 1.0)

    def _end(self, centre: float, largest: float, sign: float) -> float:
        """Where the deviance reaches the largest one, on one side; by bisection of the logarithm."""
        inside, outside = 0.0, 700.0
        for _ in range(HALVINGS):
            middle = 0.5 * (inside + outside)
            within = self.of(centre * np.exp(sign * middle), centre) <= largest
            inside, outside = (middle, outside) if within else (inside, middle)
        return float(centre * np.exp(sign * inside))


def _poisson(target: FloatArray, mean: FloatArray) -> FloatArray:
    found = 2.0 * (xlogy(target, np.divide(target, mean)) - target + mean)
    return np.where((np.asarray(mean) > 0.0) & (np.asarray(target) >= 0.0), np.maximum(found, 0.0), np.inf)


def _gamma(target: FloatArray, mean: FloatArray) -> FloatArray:
    ratio = np.divide(target, mean)
    found = 2.0 * (ratio - 1.0 - np.log(ratio))
    return np.where((np.asarray(mean) > 0.0) & (np.asarray(target) > 0.0), np.maximum(found, 0.0), np.inf)


SQUARED = Deviance("squared", lambda y, m: np.square(y - m), lambda y, m: 2.0 * (y - m), lambda m: 1.0)
POISSON = Deviance("poisson", _poisson, lambda y, m: 2.0 * float(np.log(max(y, 1e-300) / m)), lambda m: m)
GAMMA = Deviance("gamma", _gamma, lambda y, m: 2.0 * (1.0 / m - 1.0 / max(y, 1e-300)), lambda m: m * m)
BY_NAME = {each.name: each for each in (SQUARED, POISSON, GAMMA)}


def deviance_of(model: Any) -> Deviance:
    """The deviance of what the estimator was trained for; squared errors for all but counts and amounts."""
    families = {PoissonRegressor: POISSON, GammaRegressor: GAMMA}
    return next((family for kind, family in families.items() if isinstance(model, kind)), SQUARED)
