"""From one definition of differential privacy to another: which promise follows from which, and which does not.

A promise is a `Budget` (pure, approximate, zero-concentrated or Gaussian DP) or a `Renyi`. Theorems and proofs:
docs/guarantees/conversions.md. Every number is rounded to the side on which the promise stays true.

Also what a promise for one row means for several rows, and under another neighbouring relation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet._common.checks import at_least_zero, fraction, number_in, one_of, whole
from discreet.privacy.accounting.closed_forms import UP, product_above
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation, relation_from

Definition = Literal["pure", "approximate", "zcdp", "renyi", "gdp"]


@dataclass(frozen=True)
class Renyi:
    """A promise of Renyi differential privacy of one order: the divergence of that order is at most epsilon.

    Parameters
    ----------
    order : float
        The order alpha, above 1 and finite.
    epsilon : float
        The largest divergence between the results of two neighbouring tables.

    Examples
    --------
    >>> from discreet.privacy import conversions
    >>> print(conversions.convert(conversions.Renyi(8.0, 0.5), "approximate", delta=1e-6))
    (epsilon = 2.04305, delta = 1e-06)
    """

    order: float
    epsilon: float

    def __post_init__(self) -> None:
        number_in("order", self.order, 1.0, above=True)
        at_least_zero("epsilon", self.epsilon)

    def __str__(self) -> str:
        return f"(order = {self.order:g}, epsilon = {self.epsilon:g}, Renyi DP)"


Promise: TypeAlias = Budget | Renyi


def kind_of(promise: Promise) -> Definition:
    """Return which definition a promise is in: "pure", "approximate", "zcdp", "renyi" or "gdp".

    Parameters
    ----------
    promise : Budget or Renyi

    Returns
    -------
    str

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import kind_of
    >>> kind_of(Budget.zcdp(0.1))
    'zcdp'
    """
    if isinstance(promise, Renyi):
        return "renyi"
    if not isinstance(promise, Budget):
        raise TypeError(f"a promise is a Budget or a Renyi, got {type(promise).__name__}")
    return promise.kind


def group(promise: Promise, rows: int) -> Promise:
    """Return what a promise for one row means for a person, or a household, with several rows.

    Guarantee: the returned promise holds for tables that differ in at most so many rows.

    Parameters
    ----------
    promise : Budget or Renyi
        What holds for tables that differ in one row.
    rows : int
        How many rows the group has.

    Returns
    -------
    Budget or Renyi
        In the same definition; of Renyi DP, at a smaller order.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import group
    >>> print(group(Budget(0.5, 1e-8), 4))
    (epsilon = 2, delta = 9.84869e-08)
    >>> print(group(Budget.gdp(0.2), 3))
    (mu = 0.6, Gaussian DP)
    """
    rows = whole("rows", rows, least=1)
    if rows == 1:
        return promise
    if isinstance(promise, Renyi):
        return _renyi_group(promise, rows)
    if promise.rho is not None:
        return Budget.zcdp(product_above(rows, rows, promise.rho))
    if promise.mu is not None:
        return Budget.gdp(product_above(rows, promise.mu))
    assert promise.epsilon is not None
    if not promise.delta:
        return Budget.pure(product_above(rows, promise.epsilon))
    return _approximate_group(promise.epsilon, promise.delta, rows)


def change_relation(promise: Promise, before: Relation | str, after: Relation | str) -> Promise:
    """Return what a promise under one neighbouring relation means under another one.

    To replace a row is to remove one and to add one, or to empty one and to fill it: a group of two. A plan made for
    the relation itself is never worse, and often better, since its sensitivity is known.

    Guarantee: the returned promise holds under `after`.

    Parameters
    ----------
    promise : Budget or Renyi
    before, after : Relation or str
        Only from "add_remove" or "zero_out" to "replace" does anything follow.

    Returns
    -------
    Budget or Renyi

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import change_relation
    >>> print(change_relation(Budget(1.0, 1e-6), "add_remove", "replace"))
    (epsilon = 2, delta = 3.71828e-06)
    """
    first, second = relation_from(before), relation_from(after)
    if first is second:
        return promise
    if second is not Relation.REPLACE:
        raise ValueError(
            f"nothing follows from {first} for {second}: a promise under replace is about tables with equally many "
            "rows of people, and the number of rows, or a null row, may be public under one relation only."
        )
    return group(promise, 2)


def _approximate_group(epsilon: float, delta: float, rows: int) -> Budget:
    """The sum of delta e^(i epsilon), i from 0 to rows - 1; by logarithms, as e^(i epsilon) alone may be too large."""
    together = product_above(rows, epsilon)
    shrink = math.expm1(-together) / math.expm1(-epsilon)
    exponent = product_above(rows - 1, epsilon) + math.log(delta) + math.log(shrink)
    if exponent >= 0.0:
        raise ValueError(f"{Budget(epsilon, delta)} says nothing about {rows} rows: delta would be 1 or more.")
    return Budget(together, min(math.nextafter(math.exp(exponent) * UP, 1.0), math.nextafter(1.0, 0.0)))


def _renyi_group(promise: Renyi, rows: int) -> Renyi:
    """Mironov (2017), on group privacy: twice the rows for half the order and three times the divergence."""
    doublings = (rows - 1).bit_length()
    order = math.ldexp(promise.order, -doublings)
    if order < 2.0:
        raise ValueError(
            f"{promise} says nothing about {rows} rows: its order must be at least {2 ** (doublings + 1)}."
        )
    return Renyi(order, product_above(3**doublings, promise.epsilon))


DEFINITIONS: tuple[Definition, ...] = ("pure", "approximate", "zcdp", "renyi", "gdp")
_SMALLEST_EPSILON = 1e-12  # a budget has a positive epsilon; a smaller one is stated as this


def convert(
    promise: Promise,
    to: Definition,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    order: float | None = None,
) -> Promise:
    """Return the promise that follows from another one, in another definition of differential privacy.

    Guarantee: whatever keeps the given promise keeps the returned one, under the same neighbouring relation.

    Parameters
    ----------
    promise : Budget or Renyi
        What is known to hold.
    to : {"pure", "approximate", "zcdp", "renyi", "gdp"}
        The definition wanted.
    delta, epsilon : float, optional
        For "approximate", one of them; the other one is computed.
    order : float, optional
        For "renyi", the order wanted.

    Returns
    -------
    Budget or Renyi

    Raises
    ------
    ValueError
        The promise says nothing in the definition wanted; the message tells why.

    Examples
    --------
    >>> from discreet import Budget
    >>> from discreet.privacy.conversions import convert
    >>> print(convert(Budget.zcdp(0.1), "approximate", delta=1e-6))
    (epsilon = 2.14194, delta = 1e-06)
    >>> print(convert(Budget.pure(1.0), "zcdp"))
    (rho = 0.462117, zCDP)
    >>> print(convert(Budget.gdp(0.5), "renyi", order=4.0))
    (order = 4, epsilon = 0.5, Renyi DP)
    """
    one_of("to", to, DEFINITIONS)
    _check_wanted(to, delta, epsilon, order)
    kind = kind_of(promise)
    if to == "approximate":
        return _approximate(promise, delta, epsilon)
    if to == "renyi":
        assert order is not None
        return Renyi(order, _renyi_cost(promise, number_in("order", order, 1.0, above=True)))
    if kind == to:
        return promise
    if (kind, to) not in _CLOSED:
        raise ValueError(f"{promise} implies no {to} promise: {_reason(kind, to)}")
    assert isinstance(promise, Budget)
    return _CLOSED[kind, to](promise)


def pure_to_zcdp(epsilon: float) -> float:
    """Return the least rho such that every epsilon-DP release is rho-zCDP: epsilon * tanh(epsilon / 2).

    It is at most epsilon^2 / 2, the value in most texts, and attained by randomised response.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy.conversions import pure_to_zcdp
    >>> round(pure_to_zcdp(1.0), 6), round(pure_to_zcdp(10.0), 2)  # epsilon^2 / 2 would be 0.5 and 50
    (0.462117, 10.0)
    """
    epsilon = at_least_zero("epsilon", epsilon)
    return product_above(epsilon, math.nextafter(math.tanh(0.5 * epsilon) * UP, 2.0)) if epsilon else 0.0


def bounded_range_to_zcdp(epsilon: float) -> float:
    """Return the rho of a selection of bounded range epsilon, as the exponential mechanism makes: epsilon^2 / 8.

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy.conversions import bounded_range_to_zcdp
    >>> round(bounded_range_to_zcdp(1.0), 6)
    0.125
    """
    epsilon = at_least_zero("epsilon", epsilon)
    return product_above(epsilon, epsilon, 0.125)


def pure_to_renyi(epsilon: float, order: float) -> float:
    """Return the largest Renyi divergence of an order that epsilon-DP allows, attained by randomised response.

    Parameters
    ----------
    epsilon : float
    order : float
        Above 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy.conversions import pure_to_renyi
    >>> round(pure_to_renyi(1.0, 2.0), 4), round(pure_to_renyi(1.0, 1000.0), 4)
    (0.7353, 0.9997)
    """
    epsilon, order = at_least_zero("epsilon", epsilon), number_in("order", order, 1.0, above=True)
    if epsilon == math.inf:
        return math.inf
    # log of cosh((order - 1/2) epsilon) / cosh(epsilon / 2), without large numbers
    ends = math.log1p(math.exp(-(2.0 * order - 1.0) * epsilon)) - math.log1p(math.exp(-epsilon))
    return min(epsilon, pure_to_zcdp(epsilon) * order, (epsilon + ends / (order - 1.0)) * UP + 1e-15 / (order - 1.0))


def pure_to_gdp(epsilon: float) -> float:
    """Return the least mu such that every epsilon-DP release is mu-GDP: 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

    Parameters
    ----------
    epsilon : float

    Returns
    -------
    float

    Examples
    --------
    >>> from discreet.privacy.conversions import pure_to_gdp
    >>> round(pure_to_gdp(1.0), 4)
    1.232
    """
    from scipy.special import erfinv, log_ndtr, ndtri_exp

    epsilon = at_least_zero("epsilon", epsilon)
    if epsilon in (0.0, math.inf):
        return epsilon
    if epsilon < 1.0:  # Phi(mu / 2) - 1/2 = tanh(epsilon / 2) / 2, which keeps its digits
        return math.nextafter(math.sqrt(8.0) * float(erfinv(math.nextafter(math.tanh(0.5 * epsilon), 1.0))) * UP, 2.0)
    least = -math.log1p(math.exp(-epsilon)) - epsilon  # the logarithm of 1 / (1 + e^epsilon)
    mu = -2.0 * float(ndtri_exp(least)) * UP
    while log_ndtr(-0.5 * mu) > least:
        mu *= UP
    return mu


def _check_wanted(to: str, delta: float | None, epsilon: float | None, order: float | None) -> None:
    if (to == "approximate") != (delta is not None or epsilon is not None) or None not in (delta, epsilon):
        raise ValueError('give one of delta and epsilon for to="approximate", and for nothing else.')
    if (to == "renyi") != (order is not None):
        raise ValueError('give the order for to="renyi", and for nothing else.')


def _approximate(promise: Promise, delta: float | None, epsilon: float | None) -> Promise:
    from discreet.privacy.tradeoffs import trade_off

    curve = trade_off(promise)
    if epsilon is not None:
        found = curve.delta(at_least_zero("epsilon", epsilon))
        if not found < 1.0:
            raise ValueError(f"{promise} implies no delta below 1 at epsilon = {epsilon:g}.")
        return Budget(max(epsilon, _SMALLEST_EPSILON), found)
    assert delta is not None
    least = curve.epsilon(fraction("delta", delta))
    if least == math.inf and not (isinstance(promise, Budget) and promise.is_infinite):
        raise ValueError(f"{promise} implies no approximate promise at delta = {delta:g}: {_no_delta(promise)}")
    return Budget(max(least, _SMALLEST_EPSILON), delta)


def _no_delta(promise: Promise) -> str:
    if kind_of(promise) == "approximate":
        return "a promise that may fail with a larger probability says nothing about a smaller one."
    return "a delta of 0 is pure DP, which Gaussian noise keeps at no epsilon."


def _renyi_cost(promise: Promise, order: float) -> float:
    if isinstance(promise, Renyi):
        if order > promise.order:
            raise ValueError(
                f"{promise} says nothing about the larger order {order:g}: its divergence may be infinite."
            )
        return promise.epsilon
    if promise.rho is not None:
        return product_above(promise.rho, order)
    if promise.mu is not None:
        return product_above(0.5, promise.mu, promise.mu, order)
    assert promise.epsilon is not None
    if promise.delta:
        raise ValueError(f"{promise} implies no renyi promise: {_MAY_FAIL}")
    return pure_to_renyi(promise.epsilon, order)


_CLOSED: dict[tuple[str, str], Callable[[Budget], Budget]] = {
    ("pure", "zcdp"): lambda promise: Budget.zcdp(pure_to_zcdp(promise.amount)),
    ("pure", "gdp"): lambda promise: Budget.gdp(pure_to_gdp(promise.amount)),
    ("gdp", "zcdp"): lambda promise: Budget.zcdp(product_above(0.5, promise.amount, promise.amount)),
}

_MAY_FAIL = (
    "with probability delta it may publish a row, which no finite epsilon, rho, mu or Renyi divergence covers. Convert "
    "the event that the promise was made of instead."
)
_ONE_ORDER = "a divergence of one order says nothing about larger orders, which may be infinite."
_NO_PURE = "Gaussian noise keeps it, and its likelihood ratios are not bounded."


def _reason(kind: str, to: str) -> str:
    """Why one definition does not follow from another."""
    if kind == "approximate":
        return _MAY_FAIL
    if to == "pure":
        return _NO_PURE
    if kind == "renyi":
        return _ONE_ORDER
    return (
        "a finite mu exists, but none is proved here; use trade_off(promise) for the curve, or the event, whose mu is "
        "known if all its noise is Gaussian."
    )
