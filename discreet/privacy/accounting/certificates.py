"""What a plan costs: the least epsilon or delta over the certified routes, and the route that gave it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from discreet.privacy.accounting.composition import Composition, read_composition
from discreet.privacy.accounting.pairs import Array
from discreet.privacy.accounting.routes import ROUTES
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Sums of floats such as 0.1 + 0.1 + 0.1 may pass a budget of 0.3 by a rounding error, not by more.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Certificate:
    """A proved (epsilon, delta) with the route of the proof."""

    epsilon: float
    delta: float
    route: str


def certify(event: DpEvent, delta: float, relation: Relation | str, in_order: bool = True) -> Certificate:
    """Return the least epsilon proved for an event at delta, and by which route.

    With `in_order=False` the proof does not use the order in which the event lists its releases.

    Guarantee: a run described by the event is (epsilon, delta)-DP under the relation.
    """
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be at least 0 and below 1, got {delta!r}")
    return certify_composition(read_composition(event, relation, in_order), float(delta))


def epsilon_of(event: DpEvent, delta: float, relation: Relation | str, in_order: bool = True) -> float:
    """Return the least epsilon proved for an event at delta; see `certify`.

    Guarantee: a run described by the event is (epsilon, delta)-DP under the relation.
    """
    return certify(event, delta, relation, in_order).epsilon


def delta_of(event: DpEvent, epsilon: float, relation: Relation | str, in_order: bool = True) -> float:
    """Return the least delta proved for an event at epsilon; see `certify`.

    Guarantee: a run described by the event is (epsilon, delta)-DP under the relation.
    """
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")
    return float(deltas_of(read_composition(event, relation, in_order), np.array([float(epsilon)]))[0])


def rho_of(event: DpEvent, relation: Relation | str) -> float:
    """Return the zCDP cost: exact for Gaussians, epsilon^2 / 8 for selections, else epsilon^2 / 2.

    Guarantee: the event is rho-zCDP. A sampled Gaussian is charged without amplification.

    Raises
    ------
    ValueError
        If the event has a release that this package does not book in rho: objective perturbation.
    """
    composition = read_composition(event, relation)
    _refuse_unbooked(composition, "rho", [release.rho() for release, _ in composition.totals])
    return composition.rho()


def mu_of(event: DpEvent, relation: Relation | str) -> float:
    """Return the Gaussian DP cost: exact for Gaussians, without amplification for sampled ones.

    Guarantee: the event is mu-GDP.

    Raises
    ------
    ValueError
        If the event has a release that this package does not book in mu, such as a selection.
    """
    composition = read_composition(event, relation)
    _refuse_unbooked(composition, "mu", [release.mu() for release, _ in composition.totals])
    return composition.mu()


def pure_epsilon_of(event: DpEvent, relation: Relation | str) -> float:
    """Return the pure DP cost: the sum over the releases, infinite if one of them is Gaussian.

    Guarantee: the event is epsilon-DP with delta = 0.
    """
    return read_composition(event, relation).pure_epsilon()


def fits(event: DpEvent, budget: Budget, relation: Relation | str) -> bool:
    """Whether an event stays within a budget.

    Guarantee: if True, a run described by the event keeps the promise of the budget under the relation.
    """
    if budget.is_infinite:
        read_composition(event, relation)  # what is not known is refused all the same
        return True
    return amount_of(event, budget, relation) <= budget.amount * (1.0 + _ROUNDING)


def amount_of(event: DpEvent, budget: Budget, relation: Relation | str) -> float:
    """Return what an event costs in the unit of a budget: its epsilon at the delta of the budget, its rho or its mu.

    Guarantee: a run described by the event keeps the promise of a budget of this amount under the relation.
    """
    if budget.kind == "zcdp":
        return rho_of(event, relation)
    if budget.kind == "gdp":
        return mu_of(event, relation)
    if budget.kind == "pure":
        return pure_epsilon_of(event, relation)
    return epsilon_of(event, budget.delta or 0.0, relation)


def _refuse_unbooked(composition: Composition, currency: str, costs: list[float]) -> None:
    """Refuse a private release that has no cost in a currency; one without noise costs infinity in all of them."""
    for (release, _), cost in zip(composition.totals, costs, strict=True):
        if composition.is_private and cost == math.inf:
            other = " or in rho" if release.rho() < math.inf else ""
            raise ValueError(f"{release} has no cost in {currency}; use a budget in (epsilon, delta){other}")


def deltas_of(composition: Composition, epsilons: Array) -> Array:
    """Return the least proved delta at each epsilon."""
    if not composition.totals:
        return np.zeros(epsilons.shape)
    best = np.ones(epsilons.shape)
    if not composition.is_private:
        return best
    for route in ROUTES:
        if route.applies(composition) and np.any(best > 0.0):
            best = np.minimum(best, route.deltas(composition, epsilons))
            if route.exact:
                break
    # A delta too small for a float is not zero: only a pure release has none.
    return np.where(epsilons < composition.pure_epsilon(), np.maximum(best, 5e-324), best)


@lru_cache(maxsize=512)
def certify_composition(composition: Composition, delta: float) -> Certificate:
    """Return the least epsilon proved for a composition at delta, and by which route."""
    if not composition.totals:
        return Certificate(0.0, delta, "nothing is released")
    best = Certificate(math.inf, delta, "no guarantee")
    if not composition.is_private:
        return best
    for route in ROUTES:
        if route.applies(composition):
            epsilon = float(route.epsilon(composition, delta))
            if epsilon < best.epsilon:
                best = Certificate(epsilon, delta, route.name)
            if route.exact or best.epsilon == 0.0:
                break
    return best
