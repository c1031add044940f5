"""Put a privacy loss on a grid without ever understating it, and the moments and the Renyi bound that follow.

The connect-the-dots rule: the mass that P and Q give to the losses between two neighbouring grid points is moved to
these two points so that both totals are kept. The new pair has the chords of the old profile (as a function of
e^epsilon) for its profile, and a chord of a convex function lies above it: the new pair dominates the old one.

K(t) = log E e^(t * loss), summed over all releases, is t times the Renyi divergence of order 1 + t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair

# Above this loss e^loss times a tail of Q is not reliable; rounding every loss up is.
_ROUND_UP_FROM = 600.0


@dataclass(frozen=True)
class LossLaw:
    """A privacy loss with finitely many values: masses under P, and the mass of an infinite loss."""

    losses: Array
    masses: Array
    infinity: float

    def log_moment(self, order: float) -> float:
        """Return log E_P[e^(order * loss)], leaving out the infinite loss."""
        exponents = order * self.losses
        top = float(np.max(exponents))
        return top + float(np.log(np.sum(self.masses * np.exp(exponents - top))))

    def moment_error(self, order: float) -> float:
        """Return a bound on the rounding error of `log_moment`: of its sum, and of the exponents."""
        return 4e-15 + 3e-16 * abs(order) * float(np.max(np.abs(self.losses)))

    def tilted_masses(self, order: float) -> Array:
        """Return the masses multiplied by e^(order * loss) and normalised to sum to one."""
        return np.exp(np.log(self.masses) + order * self.losses - self.log_moment(order))


def connect_dots(pair: Pair, losses: Array) -> LossLaw:
    """Return a law on the given increasing losses, 0 and a negative one among them, that dominates `pair`.

    Guarantee: the hockey-stick divergence of the result is at least that of the pair at every epsilon; losses
    above the grid become infinite, losses below it are raised to its first point, and rounding goes upwards.
    """
    zero = int(np.searchsorted(losses, 0.0))
    p_below, q_below = pair.below(losses[:zero])
    p_above, q_above = pair.above(losses[zero:])
    p_steps, p_error = _steps(p_below, p_above)
    q_steps, q_error = _steps(q_below, q_above)
    growth = np.exp(np.minimum(losses[:-1], _ROUND_UP_FROM))
    share = -np.expm1(-np.diff(losses))
    raised = (p_steps - growth * q_steps + p_error + growth * q_error) / share
    raised = np.where(losses[:-1] > _ROUND_UP_FROM, p_steps, np.clip(raised, 0.0, p_steps))
    masses = np.append(p_steps - raised, 0.0)
    masses[1:] += raised
    masses[0] += p_below[0]
    held = masses > 0.0
    return LossLaw(losses[held], masses[held], float(p_above[-1]))


def _steps(below: Array, above: Array) -> tuple[Array, Array]:
    """Return the mass between neighbouring points and a bound on its rounding error."""
    middle = 1.0 - above[0] - below[-1]
    steps = np.concatenate([np.diff(below), [middle], -np.diff(above)])
    size = np.concatenate([below[1:], [1.0], above[:-1]])
    # exp(-y^2 / 2) loses about y^2 / 2 = -log(size) units in the last place.
    error = size * (2e-15 - 5e-16 * np.log(np.maximum(size, 1e-300)))
    return np.maximum(steps, 0.0), error


def loss_range(pair: Pair, mass: float) -> tuple[float, float]:
    """Return (down, up) such that P puts at most `mass` below -down, and at most `mass` above up."""
    candidates = np.geomspace(1e-12, 1e6, 800)
    return _first_small(pair.below(-candidates)[0], mass), _first_small(pair.above(candidates)[0], mass)


def _first_small(tails: Array, mass: float) -> float:
    too_much = np.flatnonzero(tails > mass)
    return float(np.geomspace(1e-12, 1e6, 800)[min(too_much[-1] + 1, 799)]) if too_much.size else 1e-12


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
