"""Auditing with one training run: many canaries at once, each in the table or not by its own coin.

Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (2023): if the coins decide between
neighbouring tables one by one, an attacker who guesses `guesses` of them is right no more often than by randomised
response with the promised epsilon, up to a term for delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import BoolArray, FloatArray
from discreet.audit.targets import target_of
from discreet.data.rows import Data
from discreet.privacy.random.generator import RandomGenerator, secure_generator
from discreet.privacy.relation import Relation

CONFIDENCE = 0.95  # one run shows little: what auditors usually ask for
LARGEST_EPSILON = 50.0


def one_run_p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """How probable so many right guesses are at most, if the mechanism is (epsilon, delta)-DP.

    Parameters
    ----------
    right, guesses, canaries : int
        How many guesses were right, how many were made, and how many coins there are; the others were abstained from.
    epsilon, delta : float
        The promise that is tested.
    """
    from scipy.stats import binom

    if not 0 <= right <= guesses <= canaries:
        raise ValueError(f"need 0 <= right <= guesses <= canaries; got {right}, {guesses}, {canaries}.")
    chance = 1.0 / (1.0 + np.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    # The largest mean chance of falling short by 1, 2, ... right guesses: what a delta can buy.
    short = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, chance))
    worst = float((short / np.arange(1, right + 1)).max(initial=0.0))
    return min(1.0, tail + 2.0 * canaries * delta * worst)


def one_run_lower_bound(right: int, guesses: int, canaries: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """The largest epsilon that so many right guesses refute.

    Guarantee: if the mechanism is (epsilon, delta)-DP, the result exceeds epsilon with probability at most
    1 - confidence.

    Examples
    --------
    >>> from discreet.audit import one_run_lower_bound
    >>> round(one_run_lower_bound(right=95, guesses=100, canaries=1000, delta=1e-6), 2)
    2.17
    """
    low, high = 0.0, LARGEST_EPSILON
    if one_run_p_value(right, guesses, canaries, 0.0, delta) > 1.0 - confidence:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        refuted = one_run_p_value(right, guesses, canaries, middle, delta) <= 1.0 - confidence
        low, high = (middle, high) if refuted else (low, middle)
    return low


@dataclass(frozen=True)
class OneRun:
    """What one run with canaries shows.

    Attributes
    ----------
    epsilon : float
        The lower bound.
    promised : float or None
        The epsilon of the promise.
    right, guesses, canaries : int
    confidence : float
    """

    epsilon: float
    promised: float | None
    right: int
    guesses: int
    canaries: int
    confidence: float

    @property
    def passed(self) -> bool:
        """Whether the bound is at most the promise."""
        return self.promised is None or self.epsilon <= self.promised

    def __str__(self) -> str:
        promise = "nothing" if self.promised is None else f"epsilon {self.promised:.6g}"
        return (
            f"{self.right} of {self.guesses} guesses about {self.canaries} canaries were right: epsilon is at least "
            f"{self.epsilon:.3f} (confidence {self.confidence:g}); {promise} is promised"
        )


def one_run_audit(
    audited: Any,
    canaries: int = 500,
    *,
    guesses: int | None = None,
    others: Data | None = None,
    size: float = 1.0,
    delta: float | None = None,
    confidence: float = CONFIDENCE,
    rng: RandomGenerator | None = None,
) -> OneRun:
    """Audit a classifier or a plan of a solver for -1/+1 labels by one run on a table with canaries.

    Canary i is a row with one entry, `size` in column i, and label +1. By its coin it is turned around (replace), null
    (zero_out) or left out (add_remove). The attacker guesses from the sign and size of coefficient i.

    Parameters
    ----------
    audited : classifier with classes [-1, 1], Plan or Target
        What is trained, for tables with as many columns as there are canaries.
    canaries : int
        How many rows are canaries.
    guesses : int, optional
        On how many of them the attacker commits, half on each side; by default on half of them.
    others : Data, optional
        Rows that are in the table besides.
    size : float
        The size of a canary's entry: the largest that the declared bounds leave as it is.
    delta : float, optional
        By default that of the promise.
    confidence : float
        Of the bound.
    rng : RandomGenerator, optional
        Draws the coins and the noise.

    Returns
    -------
    OneRun

    Guarantee: if the mechanism keeps its promise, the bound exceeds it with probability at most 1 - confidence.
    """
    target, generator = target_of(audited), rng or secure_generator()
    coins = generator.integers(2, canaries).astype(bool)
    table = with_canaries(coins, target.relation, others, size)
    guarantee = target.guarantee_for(with_canaries(np.ones(canaries, dtype=bool), target.relation, others, size))
    outputs = target.run(table, generator)
    scores = np.ravel(outputs["coef"] if "coef" in outputs else outputs["coef_"])
    made = min(canaries, guesses or max(2, canaries // 2))
    order = np.argsort(scores)
    certain_out, certain_in = order[: made // 2], order[canaries - (made - made // 2) :]
    right = int((~coins[certain_out]).sum() + coins[certain_in].sum())
    used = delta if delta is not None else 0.0 if guarantee is None else guarantee.delta
    bound = one_run_lower_bound(right, made, canaries, used, confidence)
    return OneRun(bound, None if guarantee is None else guarantee.epsilon, right, made, canaries, confidence)


def with_canaries(coins: BoolArray, relation: Relation, others: Data | None = None, size: float = 1.0) -> Data:
    """The table in which canary i is as its coin says: turned around, null or left out where it is False."""
    X: FloatArray = size * np.eye(coins.size)
    y, weight = np.ones(coins.size), np.ones(coins.size)
    if relation is Relation.REPLACE:
        X[~coins] *= -1.0
    elif relation is Relation.ZERO_OUT:
        weight[~coins] = 0.0
    else:
        X, y, weight = X[coins], y[coins], weight[coins]
    if others is None:
        return Data(X, y, weight)
    rest = np.ones(others.rows) if others.weight is None else others.weight
    return Data(np.vstack([X, others.X]), np.append(y, others.y), np.append(weight, rest))
