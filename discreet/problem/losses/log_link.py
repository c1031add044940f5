"""Losses of a mean that is exp(margin): counts (Poisson) and positive amounts (Gamma).

Both are exact up to a limit of exp and go on as a parabola beyond it, so that slopes and curvatures of any row stay
finite: docs/guarantees/counts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from discreet._common.checks import number_in
from discreet.problem.arrays import Array, Values, floats
from discreet.problem.losses.scalar import Loss

LIMIT = 8.0  # up to which exp is exact, in units of the mean of the target: docs/benchmarks/counts.md
EXACT_LIMIT = 1e4  # the same without noise: no real table has predictions so far above its mean
LEAST_LIMIT, MOST_LIMIT = 0.1, 1e8
LEAST_AMOUNT = 1e-12  # of the mean: smaller amounts count as so much, as the deviance of 0 is infinite
LARGEST = 1e290  # margins and targets beyond count as so large, since products of larger ones are infinite


@dataclass(frozen=True, slots=True)
class LogLink(Loss):
    """What both have in common: exp is exact up to `limit`, which bounds the curvature."""

    limit: float = LIMIT

    lipschitz = math.inf
    log_link = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", number_in("limit", self.limit, LEAST_LIMIT, MOST_LIMIT))

    @property
    def smoothness(self) -> float:
        return self.limit

    @property
    def usual_curvature(self) -> float:
        return min(1.0, self.limit)  # that of a constant which predicts the mean


@dataclass(frozen=True, slots=True)
class Poisson(LogLink):
    """Half the Poisson deviance with a log link, exp(m) - y m, for targets y >= 0; negative ones count as 0.

    The terms y log y - y of the deviance, which do not depend on the margin, are left out. Beyond m = log(limit) the
    exponential goes on as the parabola with the same value, slope and curvature.

    Guarantee: for every margin and target, 0 <= curvature <= limit.

    Parameters
    ----------
    limit : float, default=8.0
        Up to which mean the loss is exact. Solvers divide the target by its (released) mean, so that in a fit with an
        intercept this is a multiple of the mean of the target.

    Examples
    --------
    >>> from discreet.problem import Poisson
    >>> Poisson().slope([0.0, 0.0], [0.0, 3.0])
    array([ 1., -2.])
    """

    name = "poisson"
    target_power = 1

    def value(self, margin: Values, y: Values) -> Array:
        return _exp_less_linear(floats(margin), _count(y), self.limit)

    def slope(self, margin: Values, y: Values) -> Array:
        return _exp_slope(floats(margin), self.limit) - _count(y)

    def curvature(self, margin: Values, y: Values) -> Array:
        return _exp_curvature(np.broadcast_arrays(floats(margin), floats(y))[0], self.limit)

    def conjugate(self, dual: Values, y: Values) -> Array:
        with np.errstate(over="ignore"):
            return _exp_conjugate(floats(dual) + _count(y), 0.0, self.limit)


@dataclass(frozen=True, slots=True)
class Gamma(LogLink):
    """Half the Gamma deviance with a log link, y exp(-m) + m - log y - 1, for targets y > 0.

    Targets below 1e-12 count as so much. Where y exp(-m) exceeds the limit, the exponential goes on as the parabola
    with the same value, slope and curvature.

    Guarantee: for every margin and target, 0 <= curvature <= limit.

    Parameters
    ----------
    limit : float, default=8.0
        Up to which multiple of the prediction a target counts exactly.

    Examples
    --------
    >>> from discreet.problem import Gamma
    >>> Gamma().slope([0.0, 0.0], [1.0, 3.0])
    array([ 0., -2.])
    """

    name = "gamma"

    def value(self, margin: Values, y: Values) -> Array:
        excess = self._excess(margin, y)
        return _exp_less_linear(excess, np.ones_like(excess), self.limit) - 1.0

    def slope(self, margin: Values, y: Values) -> Array:
        return 1.0 - _exp_slope(self._excess(margin, y), self.limit)

    def curvature(self, margin: Values, y: Values) -> Array:
        return _exp_curvature(self._excess(margin, y), self.limit)

    def conjugate(self, dual: Values, y: Values) -> Array:
        amount = _log_amount(y)
        return _exp_conjugate(1.0 - floats(dual), amount, self.limit) + amount + 1.0

    @staticmethod
    def _excess(margin: Values, y: Values) -> Array:
        """log y - m: the loss depends on nothing else."""
        return _log_amount(y) - floats(margin)


def _count(y: Values) -> Array:
    return np.clip(floats(y), 0.0, LARGEST)


def _log_amount(y: Values) -> Array:
    return np.log(np.maximum(floats(y), LEAST_AMOUNT))


def _exp_less_linear(v: Array, y: Array, limit: float) -> Array:
    """g(v) - y v, g being exp up to log(limit) and a parabola beyond; the parts are factored, as inf - inf is NaN."""
    edge = math.log(limit)
    beyond = np.maximum(v - edge, 0.0)
    inside = np.minimum(v, edge)
    with np.errstate(over="ignore"):
        return np.exp(inside) - y * inside + beyond * (limit + 0.5 * limit * beyond - y)


def _exp_slope(v: Array, limit: float) -> Array:
    """The derivative of g; finite for every number, since a gradient that is clipped is divided by its length."""
    edge = math.log(limit)
    return np.exp(np.minimum(v, edge)) + limit * np.clip(v - edge, 0.0, LARGEST)


def _exp_curvature(v: Array, limit: float) -> Array:
    return np.minimum(np.exp(np.minimum(v, math.log(limit))), limit)


def _exp_conjugate(s: Array, shift: Values, limit: float) -> Array:
    """Supremum of s (v - shift) - g(v), factored like g; infinite for s < 0."""
    inside = np.clip(s, 0.0, limit)
    beyond = np.maximum(s - limit, 0.0)
    with np.errstate(over="ignore"):
        found = xlogy(inside, inside) - inside * (1.0 + floats(shift))
        found = found + beyond * (math.log(limit) - floats(shift) + 0.5 * beyond / limit)
    return np.where(s < 0.0, np.inf, found)
