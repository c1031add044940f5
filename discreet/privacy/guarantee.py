"""What is promised: the guarantee that comes with every private result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

# The leak of a run whose noise can be drawn again.
SEEDED = (
    "the noise was drawn from a seed or a NumPy generator: whoever knows it can remove the noise, and a second table "
    "fitted in the same way with the same seed gets the same noise"
)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """An (epsilon, delta) promise, the neighbouring relation it holds for, and the event that proves it.

    Attributes
    ----------
    epsilon, delta : float
        What was promised; epsilon is infinite for a result without privacy.
    relation : Relation
        Which tables count as neighbours.
    event : DpEvent
        What was done to the rows, in the vocabulary of dp-accounting.
    leaks : tuple of str
        What was read from the rows outside the guarantee, such as the classes; and `SEEDED`, if the noise came from a
        seed or from a NumPy generator.

    Examples
    --------
    >>> from discreet import LogisticRegression
    >>> promise = LogisticRegression(epsilon=1.0, bounds=(0.0, 1.0)).plan(n_samples=1000, n_features=3).guarantee
    >>> promise.epsilon, promise.delta
    (1.0, 1e-06)
    >>> bool(promise.epsilon_at(1e-3) < 1.0)  # a larger delta goes with a smaller epsilon
    True
    """

    epsilon: float
    delta: float
    relation: Relation
    event: Any
    leaks: tuple[str, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)

    @property
    def certified(self) -> Any:
        """The accountant's own finding at the promised delta: epsilon, delta and the route that proves it."""
        return accounting.certify(self.event, self.delta, self.relation)

    def with_seed(self) -> Guarantee:
        """Return the same guarantee for a run whose noise came from a seed, which is named as a leak."""
        return replace(self, leaks=tuple(dict.fromkeys([*self.leaks, SEEDED])))

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that holds together with another delta."""
        return accounting.epsilon_of(self.event, delta, self.relation) if self.is_private else math.inf

    def delta_at(self, epsilon: float) -> float:
        """Return the delta that holds together with another epsilon."""
        return accounting.delta_of(self.event, epsilon, self.relation) if self.is_private else 1.0

    def tradeoff(self, points: int = 200) -> tuple[FloatArray, FloatArray]:
        """Return the best that any attacker can do: type I errors and the smallest possible type II errors.

        Parameters
        ----------
        points : int, default=200
            How many points of the curve.

        Returns
        -------
        tuple of two ndarray
            Type I errors between 0 and 1, and for each the smallest type II error.
        """
        if not self.is_private:
            return np.array([0.0, 1.0]), np.array([0.0, 0.0])
        return accounting.tradeoff(self.event, self.relation, points)

    def statement(self) -> str:
        """Return a paragraph that can be quoted to people who decide about the data."""
        if not self.is_private:
            return "This result was computed without privacy protection (epsilon is infinite)."
        return (
            f"This result is ({self.epsilon:.6g}, {self.delta:.3g})-differentially private: "
            f"{self.relation.explanation}. For every set of possible results S and every two neighbouring "
            f"tables A and B, P[result from A in S] <= exp({self.epsilon:.6g}) * P[result from B in S] + "
            f"{self.delta:.3g}. The protection covers everything released from the training rows: the "
            "coefficients, the intercept and any scales that were learned. It covers one row per person, holds "
            "against an attacker who knows all other rows, and does not weaken when the result is processed "
            "further. It does not cover facts declared as public (number of rows, column names, bounds, classes) "
            "or other releases from the same table, which a ledger adds up."
            + "".join(
                f" It does not hold against everybody: {leak}."
                if leak == SEEDED
                else f" Outside this guarantee, {leak} were read from the rows."
                for leak in self.leaks
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as a JSON-safe dictionary."""
        return {
            "epsilon": self.epsilon if self.is_private else "inf",
            "delta": self.delta,
            "relation": str(self.relation),
            "event": accounting.event_to_dict(self.event),
            "leaks": list(self.leaks),
            "statement": self.statement(),
        }


def guarantee_for(event: Any, budget: Budget, relation: Relation, rows: int, leaks: tuple[str, ...] = ()) -> Guarantee:
    """The promise a budget makes; zCDP and GDP budgets are stated at delta = 1/rows^2."""
    if budget.is_infinite:
        return Guarantee(math.inf, 0.0, relation, event, leaks)
    if budget.kind in ("zcdp", "gdp"):
        delta = 1.0 / max(rows, 2) ** 2
        return Guarantee(accounting.epsilon_of(event, delta, relation), delta, relation, event, leaks)
    assert budget.epsilon is not None
    assert budget.delta is not None
    return Guarantee(budget.epsilon, budget.delta, relation, event, leaks)
