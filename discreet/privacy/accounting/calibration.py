"""The least noise that keeps a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.privacy.accounting.certificates import amount_of
from discreet.privacy.accounting.composition import read_composition
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

EventAt = Callable[[float], "DpEvent"]

_LEAST, _MOST = 1e-12, 1e12


@dataclass(frozen=True)
class _Target:
    """A cost that falls as the noise grows, and the interval [least, most] in which it should land."""

    cost: Callable[[float], float]
    least: float
    most: float


def calibrate(event_at: EventAt, budget: Budget, relation: Relation | str, start: float = 1.0) -> float:
    """Return the smallest noise multiplier whose event stays within the budget.

    Where the cost has a closed form (Gaussian plans; pure, zCDP and GDP budgets) nothing is wasted; elsewhere
    the certified epsilon lies within 0.1 % below the promised one.

    Guarantee: the event at the returned multiplier fits the budget.

    Parameters
    ----------
    event_at : callable
        Maps a noise multiplier to the plan's event; more noise must not cost more.
    budget : Budget
        The promise. An infinite one needs no noise: the result is 0.
    relation : Relation or str
        Which tables are neighbours.
    start : float
        Where the search begins: a multiplier near the result saves time.
    """
    if budget.is_infinite:
        return 0.0
    return _search(_target(event_at, budget, Relation(relation), start), budget, start)


def _target(event_at: EventAt, budget: Budget, relation: Relation, start: float) -> _Target:
    amount = budget.amount
    least = amount * (1 - (9e-4 if budget.kind == "approximate" else 1e-12))
    if budget.kind == "approximate" and read_composition(event_at(start), relation).only_gaussian:
        # One part in 10^12 keeps the epsilon computed back from mu at or below the promised one.
        mu = budget.gaussian_mu() * (1 - 1e-12)
        return _Target(lambda z: read_composition(event_at(z), relation).mu(), mu * (1 - 1e-12), mu)
    return _Target(lambda z: amount_of(event_at(z), budget, relation), least, amount)


def _search(target: _Target, budget: Budget, start: float) -> float:
    """Secant steps on log cost against log noise, kept inside a bracket; what is returned was tried and fits."""
    aim = math.log(0.5 * (target.least + target.most))
    too_little, enough = math.log(_LEAST), math.inf
    x = math.log(start)
    cost = target.cost(math.exp(x))
    previous: tuple[float, float] | None = None
    for _ in range(200):
        if cost > target.most:
            too_little = max(too_little, x)
        else:
            enough = min(enough, x)
            if enough < math.log(_LEAST) + 1.0:
                return 0.0
            if cost >= target.least or enough - too_little < 1e-13:
                return math.exp(enough)
        if too_little > math.log(_MOST):
            raise ValueError(_refusal(target, budget))
        new = _next(x, _log(cost), previous, aim, too_little, enough)
        previous = (x, _log(cost)) if 0.0 < cost < math.inf else None
        x, cost = new, target.cost(math.exp(new))
    return math.exp(enough)


def _next(x: float, cost: float, previous: tuple[float, float] | None, aim: float, low: float, high: float) -> float:
    """Return the next point: a secant step (slope -1 to begin with), or the middle of the bracket."""
    if math.isfinite(cost):
        slope = -1.0
        if previous is not None and previous[0] != x:
            slope = min((cost - previous[1]) / (x - previous[0]), -1e-2)
        step = min(max((aim - cost) / slope, -5.0), 5.0)
        if low < x + step < high:
            return x + step
    if high == math.inf:
        return low + 3.0 if math.isfinite(low) else x + 3.0
    return 0.5 * (max(low, high - 6.0) + high)


def _log(cost: float) -> float:
    return math.log(cost) if cost > 0.0 else -math.inf


def _refusal(target: _Target, budget: Budget) -> str:
    least = target.cost(_MOST)
    if least == math.inf:
        return f"no amount of noise gives a finite cost for the budget {budget}; Gaussian noise needs delta > 0"
    return f"what does not depend on the noise costs {least:g} alone, over the budget {budget}"
