"""From zero-concentrated differential privacy (rho) to epsilon and delta."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.privacy.accounting.pairs import Array
from discreet.privacy.accounting.renyi import epsilon_bound, log_delta_bound

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
