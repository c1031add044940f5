"""The trade-off curves of each definition of differential privacy, and of what was done to the rows."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.rounding import UP
from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.accounting.certificates import deltas_of
from discreet.privacy.accounting.composition import read_composition
from discreet.privacy.accounting.renyi import (
    renyi_advantage,
    renyi_delta,
    renyi_epsilon,
    renyi_false_negatives,
    zcdp_delta,
    zcdp_epsilon,
)
from discreet.privacy.accounting.tradeoff_curve import (
    event_false_negatives,
    gaussian_false_negatives,
    line_false_negatives,
)
from discreet.privacy.budget import Budget, Renyi
from discreet.privacy.relation import Relation
from discreet.privacy.tradeoffs import TradeOff, usual_failure

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

_LARGEST_EXPONENT = 700.0


class ApproximateTradeOff(TradeOff):
    """Of (epsilon, delta)-DP: exact, that of randomised response which publishes the truth with probability delta."""

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else ""))
        self.promised, self.failing = epsilon, delta

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        if self.promised == math.inf:
            return np.ones(epsilons.shape)
        below = -np.expm1(np.minimum(epsilons - self.promised, 0.0)) / (1.0 + math.exp(-self.promised))
        larger = np.nextafter((self.failing + (1.0 - self.failing) * below) * UP, 2.0)
        return np.where(below > 0.0, np.minimum(1.0, larger), self.failing)

    def epsilon(self, delta: float) -> float:
        if delta < self.failing or self.promised == math.inf:
            return math.inf if delta < 1.0 else 0.0
        if delta >= 1.0:
            return 0.0
        # Solve `deltas` for epsilon, in the form that keeps its digits: near the promise, or at a delta near 1.
        more, lie = delta - self.failing, math.exp(-self.promised)
        lost = more / (1.0 - self.failing) * (1.0 + lie)
        left = ((1.0 - delta) - more * lie) / (1.0 - self.failing)
        if left <= 0.0:
            return 0.0
        fall = math.log1p(-lost) if lost < 0.5 else math.log(left)
        return min(self.promised, max(0.0, self.promised * UP + fall))

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        if self.promised == math.inf:
            return np.zeros(false_positives.shape)
        pair = np.array([self.promised]), np.array([self.failing])
        return line_false_negatives(false_positives, *pair)

    def usual_growth(self) -> tuple[float, float]:
        failure = usual_failure(self.failing)
        return self.odds_growth(failure), failure

    def corners(self) -> tuple[float, ...]:
        return (0.0, self.promised) if self.promised < math.inf else ()


class GaussianTradeOff(TradeOff):
    """Of mu-GDP: exact, that of the tests of N(0, 1) against N(mu, 1)."""

    def __init__(self, mu: float) -> None:
        super().__init__(f"mu {mu:g}, Gaussian DP")
        self.mu = mu

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        return np.array([accounting.gaussian_delta(float(e), self.mu) for e in epsilons])

    def epsilon(self, delta: float) -> float:
        return accounting.gaussian_epsilon(delta, self.mu)

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        return gaussian_false_negatives(false_positives, self.mu)


class _DivergenceTradeOff(TradeOff):
    """Of bounds on Renyi divergences: of one order, or of all that zCDP bounds."""

    def __init__(self, name: str, b: FloatArray, cost: FloatArray) -> None:
        super().__init__(name)
        self._b, self._cost = b, cost

    @cached_property
    def _most(self) -> float:
        """The advantage, which is the delta at epsilon 0 and so a bound on all others."""
        return renyi_advantage(self._b, self._cost) if np.isfinite(self._cost).all() else 1.0

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        if not np.isfinite(self._cost).all():
            return np.zeros(false_positives.shape)
        return renyi_false_negatives(false_positives, self._b, self._cost)


class ZcdpTradeOff(_DivergenceTradeOff):
    """Of rho-zCDP: the least errors of coins whose divergences keep the bound at a grid of orders."""

    def __init__(self, rho: float) -> None:
        # Orders close to 1 bind where both errors are alike, larger ones where one of them is small.
        b = np.concatenate([[1e-6, 1e-3], np.geomspace(1e-2, 2.0 + 10.0 / math.sqrt(rho), 40)])
        super().__init__(f"rho {rho:g}, zCDP", b, rho * (1.0 + b))
        self.rho = rho

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        return np.minimum(self._most, [zcdp_delta(self.rho, float(e)) for e in epsilons])

    def epsilon(self, delta: float) -> float:
        return zcdp_epsilon(self.rho, delta)


class RenyiTradeOff(_DivergenceTradeOff):
    """Of Renyi DP of one order: exact."""

    def __init__(self, promise: Renyi) -> None:
        name = f"order {promise.order:g}, epsilon {promise.epsilon:g}, Renyi DP"
        super().__init__(name, np.array([promise.order - 1.0]), np.array([promise.epsilon]))
        self.promise = promise

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        order, cost = self.promise.order, self.promise.epsilon
        return np.minimum(self._most, [renyi_delta(order, cost, float(e)) for e in epsilons])

    def epsilon(self, delta: float) -> float:
        return renyi_epsilon(self.promise.order, self.promise.epsilon, delta)


class EventTradeOff(TradeOff):
    """Of what was done to the rows: exact for Gaussian plans, else the curve of the proved (epsilon, delta)."""

    def __init__(self, event: Any, relation: Relation | str, promised: Budget | None = None) -> None:
        super().__init__("what was done to the rows")
        self.event, self.relation, self.promised = event, Relation(relation), promised
        self._composition = read_composition(event, relation)

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        return deltas_of(self._composition, epsilons)

    def epsilon(self, delta: float) -> float:
        return accounting.epsilon_of(self.event, delta, self.relation) if delta < 1.0 else 0.0

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        return event_false_negatives(self.event, self.relation, false_positives, self.corners())

    def usual_growth(self) -> tuple[float, float] | None:
        if self.promised is not None:
            return self.promised.amount, self.failure(self.promised.amount)
        pure = self._composition.pure_epsilon()
        return (pure, 0.0) if pure < math.inf else None

    def corners(self) -> tuple[float, ...]:
        return () if self.promised is None else (min(self.promised.amount, _LARGEST_EXPONENT),)


def of_budget(budget: Budget) -> TradeOff:
    """The curve of a promise."""
    if budget.rho is not None:
        return ZcdpTradeOff(budget.rho)
    if budget.mu is not None:
        return GaussianTradeOff(budget.mu)
    assert budget.epsilon is not None
    return ApproximateTradeOff(budget.epsilon, budget.delta or 0.0)


def of_guarantee(guarantee: Guarantee) -> TradeOff:
    """The curve of what a guarantee's event describes."""
    if not guarantee.is_private:
        return ApproximateTradeOff(math.inf, 0.0)
    return EventTradeOff(guarantee.event, guarantee.relation, Budget(guarantee.epsilon, guarantee.delta))
