"""A promise in any of five definitions of differential privacy: a budget, or Renyi DP of one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from discreet._common.checks import at_least_zero, number_in
from discreet.privacy.budget import Budget

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
