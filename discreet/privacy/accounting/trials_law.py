"""The law of a random number of trials, at least one: a truncated negative binomial.

With the generating function f(s) = E s^K, all that the accounting of "the best of K trials" needs is f' and f.
Proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import real_number
from discreet.privacy.accounting.pairs import Array

_GRID = 2.0**60  # probabilities are multiples of its inverse, so that they can be drawn exactly
_LEAST = 2.0**-40


@dataclass(frozen=True)
class TrialsLaw:
    """The number of trials K, with f'(s) proportional to (1 - (1 - gamma) s)^-(eta + 1).

    eta = 1 is the geometric law, eta = 0 the logarithmic one. A smaller gamma means more trials.
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        if not real_number("eta", self.eta) > -1.0 or self.eta > 100.0:
            raise ValueError(f"eta must lie above -1 and be at most 100, got {self.eta!r}")
        if not _LEAST <= real_number("gamma", self.gamma) < 1.0:
            raise ValueError(f"gamma must be at least 2^-40 and below 1, got {self.gamma!r}")

    @classmethod
    def with_mean(cls, eta: float, mean: float) -> TrialsLaw:
        """The law with this expected number of trials, above 1, to the rounding of gamma."""
        if not 1.0 < real_number("mean", mean) <= 1e6:
            raise ValueError(f"the expected number of trials must be above 1 and at most 10^6, got {mean!r}")
        low, high = math.log(_LEAST), 0.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if cls(eta, math.exp(middle)).mean > mean else (low, middle)
        return cls(eta, math.floor(math.exp(high) * _GRID) / _GRID)

    @property
    def mean(self) -> float:
        """The expected number of trials."""
        return float(self.rate(np.zeros(1))[0])

    def rate(self, tail: Array) -> Array:
        """f'(1 - tail): how much likelier the best of K trials is than one trial, where a share `tail` is better."""
        mixed = self.gamma + (1.0 - self.gamma) * tail
        return np.asarray(self._scale * (1.0 - self.gamma) * mixed ** -(self.eta + 1.0))

    def any_of(self, probability: Array) -> Array:
        """1 - f(1 - p): the probability that an event of probability p happens in at least one of K trials."""
        logs = np.log1p((1.0 - self.gamma) / self.gamma * probability)
        if self.eta == 0.0:
            return np.asarray(self._scale * logs)
        return np.asarray(-self._scale * self.gamma**-self.eta / self.eta * np.expm1(-self.eta * logs))

    @property
    def _scale(self) -> float:
        """What makes f(1) = 1."""
        if self.eta == 0.0:
            return -1.0 / math.log(self.gamma)
        return self.eta / math.expm1(-self.eta * math.log(self.gamma))
