"""A bound from the literature: its value, what it is about, how far it is proved, and what it needs of a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet._common.checks import number_in
from discreet._common.codec import written
from discreet.privacy.budget import Budget


@dataclass(frozen=True)
class Bound:
    """A number with the theorem behind it.

    Attributes
    ----------
    value : float
        The bound; infinite where the theorem says nothing.
    quantity : str
        What is bounded, with its norm where it is a distance.
    source : str
        Where the theorem stands.
    proved : bool
        Whether the constant is proved. If not, the value only shows how the quantity grows ("order only", with
        constant 1), and bounds nothing.
    assumptions : tuple of str
        What must hold and cannot be checked from the numbers given.
    settings : mapping of str to float
        Steps, step sizes and the like for which the bound holds.
    probability : float, optional
        The bound holds with at least this probability; None: it bounds an expectation, or holds always.

    Examples
    --------
    >>> from discreet.theory.bound import Bound
    >>> print(Bound(0.25, "expected excess of the mean loss", "a theorem"))
    expected excess of the mean loss <= 0.25 (a theorem)
    >>> print(Bound(0.25, "expected excess of the mean loss", "a theorem", proved=False))
    expected excess of the mean loss: order of 0.25, constant unknown (a theorem)
    """

    value: float
    quantity: str
    source: str
    proved: bool = True
    assumptions: tuple[str, ...] = ()
    settings: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None

    def __post_init__(self) -> None:
        if not self.value >= 0.0:
            raise ValueError(f"a bound must be a number that is at least 0; got {self.value!r}.")
        if self.probability is not None:
            number_in("probability", self.probability, 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the bound as JSON values; an infinite one is written as "inf"."""
        return written(self)

    def __str__(self) -> str:
        often = "" if self.probability is None else f" with probability {self.probability:g}"
        told = f" <= {self.value:.4g}" if self.proved else f": order of {self.value:.4g}, constant unknown"
        return f"{self.quantity}{told}{often} ({self.source})"


def excess_bound(
    value: float, of: str, source: str, failure: float | None, assumptions: Iterable[str], settings: Mapping[str, float]
) -> Bound:
    """A bound on the expected excess of something or, with `failure`, on what the excess passes that seldom."""
    quantity = f"{'excess' if failure else 'expected excess'} of the {of}"
    probability = None if failure is None else 1.0 - failure
    return Bound(value, quantity, source, True, tuple(assumptions), settings, probability)


SMALL_EPSILON, SMALL_DELTA = 1.0, 1.0 / 3.0  # where the closed formulas of the papers hold


def epsilon_and_delta(budget: Budget, most: float = math.inf) -> tuple[float, float]:
    """Epsilon and delta of a budget that is stated by them; epsilon may be at most `most`."""
    if budget.epsilon is None or budget.delta is None or math.isinf(budget.epsilon):
        raise ValueError(f"this bound is stated for a finite epsilon and a delta; got the budget {budget}.")
    if budget.epsilon > most:
        raise ValueError(f"this bound is stated for epsilon of at most {most:g}; got {budget.epsilon:g}.")
    return budget.epsilon, budget.delta


def log_of_delta(delta: float) -> float:
    """ln(1 / delta), for bounds of approximate differential privacy."""
    if not delta > 0.0:
        raise ValueError("this bound is for budgets with delta > 0.")
    return math.log(1.0 / delta)
