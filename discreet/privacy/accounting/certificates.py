"""What a plan costs, and the least noise that keeps a budget: the least epsilon or delta over the certified routes.

The methods of accounting, called routes, are closed form, pure composition, zCDP, bounded range and PLD. Each turns a
composition into an upper bound on epsilon or delta; the least counts, and a certificate names its route. Also what an
attacker can do at best: the trade-off curve of an event, and how often a guess is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from dp_accounting import DpEvent
from scipy.special import ndtr

from discreet.privacy.accounting import closed_forms
from discreet.privacy.accounting.events import read_composition
from discreet.privacy.accounting.pairs import Array, SampledGaussianPair
from discreet.privacy.accounting.pld.convolution import compose, tightest_delta, tightest_epsilon
from discreet.privacy.accounting.pld.discretisation import Parts
from discreet.privacy.accounting.pld.selections import Profile, profile
from discreet.privacy.accounting.releases import Composition
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

# Larger losses are not put on a grid: discretisation.loss_range.
_LARGEST_LOSS = 1e6

# Values of delta around which a whole privacy curve is computed.
_ANCHORS = (0.5, 0.1, 1e-2, 1e-4, 1e-7)
# Sums of floats such as 0.1 + 0.1 + 0.1 may pass a budget of 0.3 by a rounding error, not by more.
_ROUNDING = 1e-12
EventAt = Callable[[float], DpEvent]

_LEAST, _MOST = 1e-12, 1e12


@dataclass(frozen=True)
class Route:
    """A way to account.

    Attributes
    ----------
    name : str
        What a certificate calls it.
    applies : function of a composition
        Whether the route can say anything about the composition.
    epsilon : function of a composition and a delta
        An epsilon that holds with the delta, perhaps infinite.
    deltas : function of a composition and epsilons
        A delta that holds with each epsilon.
    exact : bool
        Whether no other route can do better.
    """

    name: str
    applies: Callable[[Composition], bool]
    epsilon: Callable[[Composition, float], float]
    deltas: Callable[[Composition, Array], Array]
    exact: bool = False


def _pure_deltas(composition: Composition, epsilons: Array) -> Array:
    """Below the sum E of the pure epsilons, delta = (e^E - e^epsilon) / (e^E + 1)."""
    total = composition.pure_epsilon()
    return -np.expm1(np.minimum(epsilons - total, 0.0)) / (1.0 + math.exp(-total))


def _recursive_epsilon(composition: Composition, delta: float) -> float:
    upper = min(closed_forms.zcdp_epsilon(composition.rho(), delta), composition.pure_epsilon())
    found = _selection_profile(composition, upper)
    if found is None or not delta or float(found.delta(np.array([upper]))[0]) > delta:
        return math.inf
    low, high = 0.0, upper
    while high - low > 1e-7 * high:
        trials = np.linspace(low, high, 34)
        fits = np.flatnonzero(found.delta(trials) <= delta)
        first = int(fits[0]) if fits.size else 33
        low, high = (float(trials[first - 1]), float(trials[first])) if first else (0.0, 0.0)
    return high


def _recursive_deltas(composition: Composition, epsilons: Array) -> Array:
    found = _selection_profile(composition, float(np.max(epsilons)))
    return np.ones(epsilons.shape) if found is None else found.delta(epsilons)


def _needs_a_grid(composition: Composition) -> bool:
    """For several selections the recursion is never worse, if it can be afforded."""
    if composition.others or not composition.selections:
        return True
    return sum(times for _, times in composition.selections) == 1 or composition.order is None


def _grid_epsilon(composition: Composition, delta: float) -> float:
    if not delta:
        return math.inf
    directions = _directions(composition, closed_forms.zcdp_epsilon(composition.order_rho, delta))
    if any(_mass_beyond_grid(parts) >= delta for parts in directions):
        return math.inf
    return max(tightest_epsilon(parts, delta) for parts in directions)


def _grid_deltas(composition: Composition, epsilons: Array) -> Array:
    directions = _directions(composition, float(np.max(epsilons)))
    if any(_mass_beyond_grid(parts) > 0.5 for parts in directions):
        return np.ones(epsilons.shape)
    if epsilons.size == 1:
        return np.array([max(tightest_delta(parts, float(epsilons[0])) for parts in directions)])
    # A curve: each composition is tight around one delta, so a few of them cover it.
    tuned = [[compose(parts, delta).delta(epsilons) for delta in _ANCHORS] for parts in directions]
    return np.asarray(np.max(np.min(tuned, axis=1), axis=0))


ROUTES = (
    Route(  # Gaussian releases compose exactly: mu^2 adds up (Dong, Roth and Su 2022, corollary 3.3)
        "closed form (Gaussian DP)",
        lambda composition: composition.only_gaussian,
        lambda composition, delta: closed_forms.gaussian_epsilon(delta, composition.gaussian_mu),
        lambda composition, epsilons: np.array(
            [closed_forms.gaussian_delta(float(x), composition.gaussian_mu) for x in epsilons]
        ),
        exact=True,
    ),
    Route(  # pure epsilons add up
        "pure composition",
        lambda composition: composition.pure_epsilon() < math.inf,
        lambda composition, delta: composition.pure_epsilon(),
        _pure_deltas,
    ),
    Route(  # values of rho add up (Bun and Steinke 2016), converted at the best Renyi order
        "zCDP",
        lambda composition: composition.rho() < math.inf,
        lambda composition, delta: closed_forms.zcdp_epsilon(composition.rho(), delta),
        lambda composition, epsilons: np.array(
            [closed_forms.zcdp_delta(composition.rho(), float(x)) for x in epsilons]
        ),
    ),
    Route(  # the worst adaptive choice at each selection, computed backwards (see `pld.selections`)
        "bounded-range recursion",
        lambda composition: composition.order is not None and not composition.others,
        _recursive_epsilon,
        _recursive_deltas,
    ),
    # Dominating pairs composed on a grid (see `pld.convolution`), the worse of the two directions.
    Route("PLD", _needs_a_grid, _grid_epsilon, _grid_deltas),
)


def _selection_profile(composition: Composition, epsilon: float) -> Profile | None:
    """Return the profile of the ordered releases, wide enough to be read at epsilon."""
    assert composition.order is not None
    rho = composition.order_rho
    # Beyond `reach` the tail exp(-(x - rho)^2 / 4 rho) of the loss has lost a factor 1e5.
    reach = rho + math.sqrt(max(epsilon - rho, 0.0) ** 2 + 46.0 * rho)
    return profile(composition.order, min(reach, 1.01 * composition.pure_epsilon()))


def _mass_beyond_grid(parts: Parts) -> float:
    """The probability that a loss is too large for the grid, where there is almost no noise; a bound on delta below."""
    masses = [(min(1.0, float(pair.above(np.array([_LARGEST_LOSS]))[0][0])), times) for pair, times in parts]
    return 1.0 - math.prod((1.0 - mass) ** times for mass, times in masses)


def _directions(composition: Composition, epsilon: float) -> list[Parts]:
    """Return the pairs to compose, once for each direction in which a pair is not symmetric."""
    mu = composition.gaussian_mu
    common: Parts = []
    grouped = None
    if composition.others and composition.order is not None:
        grouped = _selection_profile(composition, epsilon)
    if grouped is not None:
        common.append((grouped.as_pair(), 1))
        mu = grouped.front
    else:
        common += [(pairs[0], n) for s, n in composition.selections if (pairs := s.pairs()) is not None]
    if mu > 0.0:
        common.append((SampledGaussianPair(1.0, mu), 1))
    both = [(pairs, n) for release, n in composition.others if (pairs := release.pairs()) is not None]
    directions = [common + [(pairs[way], n) for pairs, n in both] for way in (0, 1)]
    return directions if any(pairs[0] is not pairs[1] for pairs, _ in both) else directions[:1]


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
    return _booked(event, relation, "rho")


def mu_of(event: DpEvent, relation: Relation | str) -> float:
    """Return the Gaussian DP cost: exact for Gaussians, without amplification for sampled ones.

    Guarantee: the event is mu-GDP.

    Raises
    ------
    ValueError
        If the event has a release that this package does not book in mu, such as a selection.
    """
    return _booked(event, relation, "mu")


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


def _booked(event: DpEvent, relation: Relation | str, currency: Literal["rho", "mu"]) -> float:
    """The cost in a currency; refused if a private release has none. Without noise it is infinity in all of them."""
    composition = read_composition(event, relation)
    for release, _ in composition.totals:
        if composition.is_private and getattr(release, currency)() == math.inf:
            other = " or in rho" if release.rho() < math.inf else ""
            raise ValueError(f"{release} has no cost in {currency}; use a budget in (epsilon, delta){other}")
    return float(getattr(composition, currency)())


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


def tradeoff(event: DpEvent, relation: Relation | str, points: int = 200) -> tuple[Array, Array]:
    """Return type I errors and, for each, the least type II error that any test can reach.

    Guarantee: no test of "the record is in the table" against "it is not" has errors below the curve. It is
    exact for Gaussian plans; otherwise it is the curve of the proved (epsilon, delta) pairs, a lower bound.
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, got {points!r}")
    alpha = np.concatenate([[0.0], ndtr(np.linspace(-5.0, 5.0, points - 2)), [1.0]])
    return alpha, event_false_negatives(event, relation, alpha)


def event_false_negatives(
    event: DpEvent, relation: Relation | str, false_positives: Array, also_at: tuple[float, ...] = ()
) -> Array:
    """Return the least type II error at each type I error; `also_at` are epsilons whose delta is used as well.

    Guarantee: that of `tradeoff`.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return np.zeros(false_positives.shape)
    if composition.only_gaussian:
        return closed_forms.gaussian_false_negatives(false_positives, composition.gaussian_mu)
    epsilons = closed_forms.epsilon_grid(certify(event, 1e-9, relation).epsilon, also_at)
    return closed_forms.line_false_negatives(false_positives, epsilons, deltas_of(composition, epsilons))


def guess_accuracy(event: DpEvent, relation: Relation | str) -> float:
    """Return the most often that a guess between two neighbouring tables can be right, if both were equally likely.

    Guarantee: no attack is right more often; it is half of one plus delta at epsilon 0. docs/guarantees/accounting.md.
    """
    return 0.5 + 0.5 * min(1.0, float(deltas_of(read_composition(event, relation), np.zeros(1))[0]))


def excess_probability(event: DpEvent, epsilon: float, relation: Relation | str) -> float:
    """Return a bound on the probability that a result multiplies somebody's odds by more than exp(epsilon).

    It is not the tail of the privacy loss of the noise: who sees only part of a result, or a function of it, may pass
    exp(epsilon) more often than who sees all of it (and then by less).

    Guarantee: never below the truth, for the result and whatever is computed from it. docs/guarantees/accounting.md.
    """
    composition = read_composition(event, relation)
    if not composition.is_private:
        return 1.0
    if composition.pure_epsilon() <= epsilon * (1.0 + _ROUNDING):
        return 0.0
    return closed_forms.excess_bound(lambda smaller: deltas_of(composition, smaller), epsilon)
