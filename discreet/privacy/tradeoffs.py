"""How well the best attacker can tell whether a row was used: the trade-off curve of a promise, and what follows.

The attacker knows all other rows, sees the result and says "used" or "not used". A false positive says "used" of a row
that was not, a false negative "not used" of one that was. Each definition of differential privacy has its curve, and so
has what was done to the rows. Proofs: docs/guarantees/conversions.md and docs/guarantees/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from discreet._common.checks import at_least_zero, fraction
from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.accounting import closed_forms
from discreet.privacy.accounting.certificates import deltas_of, event_false_negatives
from discreet.privacy.accounting.events import read_composition
from discreet.privacy.budget import Budget
from discreet.privacy.conversions import Renyi
from discreet.privacy.relation import Relation
from discreet.privacy.statement import belief_after

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

_PARTS = np.geomspace(0.01, 0.9, 12)  # of a probability of failure, that go to delta
_CELLS = 500  # of the area under a curve
_ROUNDING = 1e-15  # of a rate of errors close to 1
_LARGEST_EXPONENT = 700.0


class TradeOff(ABC):
    """What a promise allows the best attacker; made by `trade_off`.

    Guarantee: no attack on a release that keeps the promise does better, whatever it knows of other rows.

    Attributes
    ----------
    name : str
        The promise, in words.

    Examples
    --------
    >>> from discreet.privacy import trade_off
    >>> curve = trade_off(1.0, 1e-6)
    >>> curve.false_negative([0.05]).round(3)  # 5 % false alarms: at least 86 % of the rows are missed
    array([0.864])
    >>> round(curve.advantage, 3), round(curve.accuracy(0.5), 3), round(curve.precision(0.1, 0.05), 3)
    (0.462, 0.731, 0.232)
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def deltas(self, epsilons: FloatArray) -> FloatArray:
        """Return the delta that holds together with each epsilon, never below the least one."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds together with a delta, never below the least one; perhaps infinite."""

    @abstractmethod
    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        """The curve, at an array of false positives between 0 and 1."""

    def usual_growth(self) -> tuple[float, float] | None:
        """Return the `odds_growth` of which is spoken if nobody says otherwise, and how often it may be passed.

        None where the promise has no delta, so that somebody must say.
        """
        return None

    def corners(self) -> tuple[float, ...]:
        """Return epsilons at which the profile has a kink."""
        return ()

    def delta(self, epsilon: float) -> float:
        """Return the delta that holds together with an epsilon."""
        return float(self.deltas(np.array([at_least_zero("epsilon", epsilon)]))[0])

    def false_negative(self, false_positive: ArrayLike) -> FloatArray:
        """Return the least rate of false negatives at each rate of false positives.

        Parameters
        ----------
        false_positive : array-like of float
            Rates between 0 and 1.

        Returns
        -------
        ndarray
        """
        rates = np.atleast_1d(np.asarray(false_positive, dtype=np.float64))
        if rates.ndim != 1 or not ((rates >= 0.0) & (rates <= 1.0)).all():
            raise ValueError("false_positive must be a rate between 0 and 1, or a list of such rates.")
        return np.clip(self._false_negatives(rates), 0.0, 1.0 - rates)

    @property
    def advantage(self) -> float:
        """The most that 1 - false positives - false negatives can be: 0 for blind guesses, 1 without privacy."""
        return min(1.0, self.delta(0.0))

    @property
    def area(self) -> float:
        """The largest area under an attacker's ROC curve: 0.5 for blind guesses, 1 without privacy."""
        # A convex curve is at least its value in the middle of a cell, on average over the cell.
        middles = (np.arange(_CELLS) + 0.5) / _CELLS
        return float(1.0 - np.mean(self.false_negative(middles)))

    def accuracy(self, prior: float) -> float:
        """Return how often a guess can be right, for who thought it `prior` likely that the row was used."""
        rarer = min(fraction("prior", prior), 1.0 - prior)
        if rarer == 0.0:
            return 1.0
        return min(1.0, 1.0 - rarer + rarer * self.delta(math.log((1.0 - rarer) / rarer)))

    def precision(self, prior: float, false_positive: float) -> float:
        """Return how many of those called "used" can really be: the positive predictive value of an attack.

        Parameters
        ----------
        prior : float
            The share of used rows among those that are asked about.
        false_positive : float
            Which share of the rows that were not used the attack may call "used".

        Returns
        -------
        float
        """
        found = self._found(fraction("false_positive", false_positive))
        right, wrong = fraction("prior", prior) * found, (1.0 - prior) * false_positive
        return 1.0 if wrong == 0.0 and right > 0.0 else right / max(right + wrong, 5e-324)

    def _found(self, false_positive: float) -> float:
        """The most true positives, rounded up, also where they are so few that 1 - false negatives has no digit."""
        rate = np.array([false_positive])
        smallest = min(1e-9, max(false_positive, 1e-300))  # a delta that matters beside so few false positives
        epsilons = closed_forms.epsilon_grid(self.epsilon(smallest), self.corners())
        lines = closed_forms.line_true_positives(rate, epsilons, self.deltas(epsilons))
        return min(float(lines[0]), 1.0 - float(self.false_negative(rate)[0]) + _ROUNDING)

    def failure(self, epsilon: float) -> float:
        """Return how often, at most, a result multiplies the odds about one row by more than exp(epsilon)."""
        if epsilon == math.inf or self.delta(epsilon) == 0.0:
            return abs(self.delta(epsilon))
        return closed_forms.excess_bound(self.deltas, at_least_zero("epsilon", epsilon), self.corners())

    def odds_growth(self, failure: float | None = None) -> float:
        """Return the logarithm of what odds are multiplied by at most, except with probability `failure`.

        It is above the epsilon of a promise with delta > 0: such a promise alone does not say that odds seldom grow by
        more than exp(epsilon), only that they seldom grow by much more.

        Parameters
        ----------
        failure : float, optional
            By default 0 for a pure promise and `usual_failure(delta)` for one with a delta. For a guarantee the default
            is the growth of exp(epsilon) that its statement tells, together with how often it is passed.

        Returns
        -------
        float
        """
        if failure is None:
            usual = self.usual_growth()
            if usual is None:
                raise ValueError(
                    f"say how often the bound may be passed, such as failure=1e-6: {self.name} has no delta."
                )
            return usual[0]
        if fraction("failure", failure) == 0.0:
            return self.epsilon(0.0)
        # P(odds grow by more than e^g) <= delta / (1 - e^(epsilon - g)) for every pair that holds; solved for g.
        pairs = [(self.epsilon(failure * part), failure * part) for part in _PARTS]
        pairs += [(corner, self.delta(corner)) for corner in self.corners()]
        found = [epsilon - math.log1p(-delta / failure) for epsilon, delta in pairs if delta < failure]
        return min([*found, self.epsilon(0.0)])

    def growth_and_failure(self, failure: float | None = None) -> tuple[float, float]:
        """Return the `odds_growth`, and how often it may be passed."""
        growth = self.odds_growth(failure)
        return growth, failure if failure is not None else (self.usual_growth() or (growth, 0.0))[1]

    def posterior(self, prior: float, failure: float | None = None) -> float:
        """Return the most that a belief of `prior` that the row was used can become, except with `failure`.

        Parameters
        ----------
        prior : float
            The belief before the result is seen.
        failure : float, optional
            How often a result may allow more; see `odds_growth`.

        Returns
        -------
        float
        """
        growth = self.odds_growth(failure)
        return 0.0 if fraction("prior", prior) == 0.0 else belief_after(prior, growth)


def usual_failure(delta: float) -> float:
    """Return how often a belief may pass its bound, unless a probability is given: ten times delta.

    Of a large delta it is halfway from delta to 1: a bound that may always be passed would say nothing.
    """
    return min(10.0 * delta, 0.5 + 0.5 * delta)


def trade_off(promise: Any, delta: float | None = None, relation: Any = None) -> TradeOff:
    """Return what a promise, or what was really done to the rows, allows the best attacker.

    Parameters
    ----------
    promise : float, Budget, Renyi, Guarantee, fitted model or event
        An epsilon (with `delta`); a promise in another definition; or a guarantee, a model or an event, whose curve
        is that of what was done and mostly better than that of the epsilon and delta alone.
    delta : float, optional
        With an epsilon; 0 if it is left out.
    relation : Relation or str, optional
        With an event: which tables are neighbours.

    Returns
    -------
    TradeOff

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy import trade_off
    >>> round(trade_off(1.0).advantage, 4), round(trade_off(Budget.gdp(0.5)).advantage, 4)
    (0.4621, 0.1974)
    """
    promise = getattr(promise, "guarantee_", promise)
    if delta is not None or isinstance(promise, Real):
        promise = Budget(promise, 0.0 if delta is None else delta)
    if isinstance(promise, Renyi):
        return RenyiTradeOff(promise)
    if isinstance(promise, Budget):
        return of_budget(promise)
    if hasattr(promise, "event") and hasattr(promise, "relation"):
        if relation is not None and Relation(relation) is not promise.relation:
            raise ValueError(f"the guarantee is about the relation {promise.relation}; leave out `relation`.")
        return of_guarantee(promise)
    if relation is None:
        raise ValueError("give the relation under which the event is meant, such as relation='replace'.")
    return EventTradeOff(promise, relation)


def advantage(promise: Any, delta: float | None = None, relation: Any = None) -> float:
    """Return how much better than blind guessing the best attacker is: true minus false positives, at most.

    Parameters
    ----------
    promise, delta, relation
        As for `trade_off`.

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy import advantage
    >>> round(advantage(1.0, 1e-6), 4)
    0.4621
    """
    return trade_off(promise, delta, relation).advantage


def posterior(
    prior: float, promise: Any, delta: float | None = None, relation: Any = None, failure: float | None = None
) -> float:
    """Return the most that a belief that somebody's row was used can become by a result.

    With a delta above 0 this holds except with probability `failure`, which is part of the statement.

    Parameters
    ----------
    prior : float
        The belief before.
    promise, delta, relation
        As for `trade_off`.
    failure : float, optional
        How often a result may allow more; by default 0 for a pure promise and ten times delta for one with a delta
        (`usual_failure`).

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy import posterior
    >>> round(posterior(0.5, 1.0), 4), round(posterior(0.01, 1.0), 4)
    (0.7311, 0.0267)
    >>> round(posterior(0.5, 1.0, 1e-6, failure=1e-5), 4)
    0.7513
    """
    return trade_off(promise, delta, relation).posterior(prior, failure)


class ApproximateTradeOff(TradeOff):
    """Of (epsilon, delta)-DP: exact, that of randomised response which publishes the truth with probability delta."""

    def __init__(self, epsilon: float, delta: float) -> None:
        super().__init__(f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else ""))
        self.promised, self.failing = epsilon, delta

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        if self.promised == math.inf:
            return np.ones(epsilons.shape)
        below = -np.expm1(np.minimum(epsilons - self.promised, 0.0)) / (1.0 + math.exp(-self.promised))
        larger = np.nextafter((self.failing + (1.0 - self.failing) * below) * closed_forms.UP, 2.0)
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
        return min(self.promised, max(0.0, self.promised * closed_forms.UP + fall))

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        if self.promised == math.inf:
            return np.zeros(false_positives.shape)
        pair = np.array([self.promised]), np.array([self.failing])
        return closed_forms.line_false_negatives(false_positives, *pair)

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
        return closed_forms.gaussian_false_negatives(false_positives, self.mu)


class _DivergenceTradeOff(TradeOff):
    """Of bounds on Renyi divergences: of one order, or of all that zCDP bounds."""

    def __init__(self, name: str, b: FloatArray, cost: FloatArray) -> None:
        super().__init__(name)
        self._b, self._cost = b, cost

    @cached_property
    def _most(self) -> float:
        """The advantage, which is the delta at epsilon 0 and so a bound on all others."""
        return closed_forms.renyi_advantage(self._b, self._cost) if np.isfinite(self._cost).all() else 1.0

    def _false_negatives(self, false_positives: FloatArray) -> FloatArray:
        if not np.isfinite(self._cost).all():
            return np.zeros(false_positives.shape)
        return closed_forms.renyi_false_negatives(false_positives, self._b, self._cost)


class ZcdpTradeOff(_DivergenceTradeOff):
    """Of rho-zCDP: the least errors of coins whose divergences keep the bound at a grid of orders."""

    def __init__(self, rho: float) -> None:
        # Orders close to 1 bind where both errors are alike, larger ones where one of them is small.
        b = np.concatenate([[1e-6, 1e-3], np.geomspace(1e-2, 2.0 + 10.0 / math.sqrt(rho), 40)])
        super().__init__(f"rho {rho:g}, zCDP", b, rho * (1.0 + b))
        self.rho = rho

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        return np.minimum(self._most, [closed_forms.zcdp_delta(self.rho, float(e)) for e in epsilons])

    def epsilon(self, delta: float) -> float:
        return closed_forms.zcdp_epsilon(self.rho, delta)


class RenyiTradeOff(_DivergenceTradeOff):
    """Of Renyi DP of one order: exact."""

    def __init__(self, promise: Renyi) -> None:
        name = f"order {promise.order:g}, epsilon {promise.epsilon:g}, Renyi DP"
        super().__init__(name, np.array([promise.order - 1.0]), np.array([promise.epsilon]))
        self.promise = promise

    def deltas(self, epsilons: FloatArray) -> FloatArray:
        order, cost = self.promise.order, self.promise.epsilon
        return np.minimum(self._most, [closed_forms.renyi_delta(order, cost, float(e)) for e in epsilons])

    def epsilon(self, delta: float) -> float:
        return closed_forms.renyi_epsilon(self.promise.order, self.promise.epsilon, delta)


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
