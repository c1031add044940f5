"""Moments of privacy losses on a grid, and the Renyi bound that follows from them.

K(t) = log E e^(t * loss), summed over all releases, is t times the Renyi divergence of order 1 + t.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair
from discreet.privacy.accounting.pld.discretisation import LossLaw, connect_dots, loss_range

Parts = list[tuple[Pair, int]]
Laws = list[tuple[LossLaw, int]]

# Share of the target delta that truncated tails may take.
TRUNCATION = 1e-5


def negligible_mass(parts: Parts, delta: float) -> float:
    """Return the tail of one release that may be counted as an infinite loss."""
    return TRUNCATION * delta / sum(times for _, times in parts)


def roughly(parts: Parts, delta: float) -> Laws:
    """Put each pair on a coarse grid, geometric on both sides of zero."""
    laws: Laws = []
    for pair, times in parts:
        down, up = loss_range(pair, negligible_mass(parts, delta))
        grid = np.geomspace(1e-10, 1.0, 1200)
        laws.append((connect_dots(pair, np.concatenate([-down * grid[::-1], [0.0], up * grid])), times))
    return laws


def log_moment(laws: Laws, order: float) -> float:
    """Return K(order)."""
    return sum(times * law.log_moment(order) for law, times in laws)


def moment_error(laws: Laws, order: float) -> float:
    """Return a bound on the rounding error of K(order)."""
    return sum(times * law.moment_error(order) for law, times in laws)


def log_moments(laws: Laws, orders: Array) -> Array:
    """Return K at many orders, for choices that prove nothing."""
    total = np.zeros(orders.shape)
    for law, times in laws:
        exponents = orders[:, None] * law.losses + np.log(law.masses)
        top = np.max(exponents, axis=1)
        total += times * (top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1)))
    return total


def infinite_mass(laws: Laws) -> float:
    """Return the probability that a loss is infinite."""
    return -math.expm1(sum(times * math.log1p(-law.infinity) for law, times in laws))


def renyi_epsilon(laws: Laws, order: float, delta: float) -> float:
    """Return the epsilon of Renyi DP at 1 + order."""
    return (log_moment(laws, order) - math.log(delta) - _log_gain(order)) / order


def renyi_delta(laws: Laws, order: float, epsilon: float) -> float:
    """Return the logarithm of the delta of Renyi DP at 1 + order."""
    return log_moment(laws, order) - order * epsilon - _log_gain(order)


def _log_gain(order: float) -> float:
    """Return -log of the largest (1 - e^-x) e^(-order x) over x > 0."""
    return order * math.log1p(1.0 / order) + math.log1p(order)


def best_order(laws: Laws, delta: float) -> float:
    """Return the order that makes the Renyi bound on epsilon least; its tilted mean is near that epsilon.

    The search narrows down, because with rare large losses K leaps from nearly 0 to its slope within a few per
    cent of an order. A bounded loss can make the best order infinite; the smallest nearly best one serves as well.
    """
    orders = np.geomspace(1e-4, 1e7, 104)
    for _ in range(4):
        gains = orders * np.log1p(1.0 / orders) + np.log1p(orders)
        bounds = (log_moments(laws, orders) - math.log(delta) - gains) / orders
        least = float(np.min(bounds))
        best = int(np.flatnonzero(bounds <= least + 1e-3 * abs(least))[0])
        order = float(orders[best])
        orders = np.geomspace(orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)], 9)
    return order


def certified_renyi_epsilon(laws: Laws, delta: float) -> float:
    """Return an upper bound on epsilon at delta, rounding errors and infinite losses included."""
    left = delta - infinite_mass(laws)
    if left <= 0.0:
        return math.inf
    order = best_order(laws, left)
    return max(0.0, renyi_epsilon(laws, order, left) + _slack(laws, order) / order)


def certified_renyi_delta(laws: Laws, epsilon: float, order: float) -> float:
    """Return an upper bound on delta at epsilon, rounding errors and infinite losses included."""
    return min(1.0, math.exp(min(0.0, renyi_delta(laws, order, epsilon) + _slack(laws, order))) + infinite_mass(laws))


def _slack(laws: Laws, order: float) -> float:
    """Bound the rounding error of K, of the gain and of their sum."""
    return moment_error(laws, order) + 1e-15 * (abs(log_moment(laws, order)) + order) + 1e-12
