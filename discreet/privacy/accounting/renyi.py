"""Zero-concentrated and Renyi differential privacy: costs by order, and what they say in epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.privacy.accounting.pairs import Array

_HALVINGS = 44  # to 1e-13; what is returned is on the safe side of the answer
_ROUNDING = 1e-12


def epsilon_bound(b: Array, cost: Array, log_delta: float) -> Array:
    """Return, for each order 1 + b with this Renyi cost, an epsilon that holds with delta."""
    return cost - np.log1p(1 / b) - (log_delta + np.log1p(b)) / b


def log_delta_bound(b: Array, cost: Array, epsilon: float) -> Array:
    """Return, for each order 1 + b with this Renyi cost, the logarithm of a delta that holds with epsilon."""
    with np.errstate(over="ignore"):
        return np.maximum(b * (cost - epsilon - np.log1p(1 / b)) - np.log1p(b), -1e300)


def renyi_epsilon(order: float, cost: float, delta: float) -> float:
    """Return an epsilon for which (order, cost)-Renyi DP implies (epsilon, delta)-DP.

    Guarantee: never below the least such epsilon.
    """
    if delta >= 1.0 or cost == 0.0:
        return 0.0
    if delta <= 0.0 or cost == math.inf:
        return math.inf
    b = np.array([order - 1.0])
    found = float(epsilon_bound(b, np.array([cost]), math.log(delta))[0])
    return max(0.0, found + _ROUNDING * (abs(found) + cost))


def renyi_delta(order: float, cost: float, epsilon: float) -> float:
    """Return a delta for which (order, cost)-Renyi DP implies (epsilon, delta)-DP.

    Guarantee: never below the least such delta.
    """
    if cost == 0.0 or epsilon == math.inf:
        return 0.0
    if cost == math.inf:
        return 1.0
    exponent = float(log_delta_bound(np.array([order - 1.0]), np.array([cost]), epsilon)[0])
    return math.exp(min(0.0, exponent + _ROUNDING * (1.0 + abs(exponent)))) + 5e-324


def renyi_false_negatives(false_positives: Array, b: Array, cost: Array) -> Array:
    """Return the least false negatives of any test, given the Renyi divergences of both orders of the tables.

    A test turns the two laws into two coins, whose divergences are no larger; conversely two such coins are a release
    that keeps the promise. So the least error is found by bisection among coins, and more orders only raise it.

    Guarantee: no test has fewer false negatives at these false positives.
    """
    low = np.zeros(false_positives.shape)
    high = 1.0 - false_positives
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        possible = _coins_allowed(false_positives, middle, b, cost)
        low, high = np.where(possible, low, middle), np.where(possible, middle, high)
    return np.where(false_positives == 0.0, 1.0, low)  # nobody who never accuses finds anybody: a finite divergence


def renyi_advantage(b: Array, cost: Array) -> float:
    """Return the most that true minus false positives can be, given the divergences of both orders of the tables.

    The errors that are possible form a convex set, symmetric in the two kinds of error, so that the best attack may be
    taken to have as many of one kind as of the other.

    Guarantee: no test does better.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        error = np.array([0.5 * (1.0 - middle)])
        low, high = (middle, high) if _coins_allowed(error, error, b, cost)[0] else (low, middle)
    return high


def _coins_allowed(false_positives: Array, false_negatives: Array, b: Array, cost: Array) -> Array:
    """Whether coins of heads 1 - false negatives and false positives keep every bound, in both directions."""
    with np.errstate(divide="ignore"):  # each law as the logarithms of its two probabilities
        p = np.log1p(-false_negatives)[:, None], np.log(false_negatives)[:, None]
        q = np.log(false_positives)[:, None], np.log1p(-false_positives)[:, None]
    limit = b * cost * (1.0 + _ROUNDING) + _ROUNDING
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        there, back = (np.logaddexp((1 + b) * x[0] - b * y[0], (1 + b) * x[1] - b * y[1]) for x, y in ((p, q), (q, p)))
    # A comparison with NaN (0 times infinity, at the very ends) is not a proof that the coins are refused.
    return np.asarray(~((there > limit) | (back > limit)).any(axis=1))


_LARGEST_ORDER = 1e150  # any order is valid, and with this one nothing overflows


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon for which rho-zCDP implies (epsilon, delta)-DP.

    Guarantee: for every order a > 1, (a, rho a)-Renyi DP implies the epsilon rho a + log(1 - 1/a) -
    log(delta a) / (a - 1); the best order found is used, and any order is valid.
    """
    if rho == 0.0 or delta >= 1.0:
        return 0.0
    if rho == math.inf or delta <= 0.0:
        return math.inf

    def bound(b: Array) -> Array:
        return epsilon_bound(b, rho * (1 + b), math.log(delta))

    best = math.sqrt((1.0 - math.log(delta)) / rho)
    return max(0.0, _smallest(bound, min(best, _LARGEST_ORDER)) * (1 + 1e-12))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return a delta for which rho-zCDP implies (epsilon, delta)-DP."""
    if rho == 0.0 or epsilon == math.inf:
        return 0.0
    if rho == math.inf:
        return 1.0

    def log_bound(b: Array) -> Array:
        return log_delta_bound(b, rho * (1 + b), epsilon)

    exponent = _smallest(log_bound, min(max(epsilon - rho, rho) / (2 * rho), _LARGEST_ORDER))
    return math.exp(min(0.0, exponent + 1e-12 * (1 + abs(exponent)))) + 5e-324


def _smallest(bound: Callable[[Array], Array], centre: float) -> float:
    """Return the least value of a bound over a - 1 = b > 0: a wide scan, then a narrow one."""
    wide = centre * np.geomspace(1e-4, 1e4, 400)
    best = int(np.argmin(bound(wide)))
    narrow = np.geomspace(wide[max(best - 1, 0)], wide[min(best + 1, 399)], 200)
    return float(np.min(bound(narrow)))
