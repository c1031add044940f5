"""A random number of trials, of which only the best is released.

Proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.privacy import accounting
from discreet.privacy.random.generator import RandomGenerator

LAWS = {"geometric": 1.0, "logarithmic": 0.0}  # eta of the truncated negative binomial
_BITS = 60
_BLOCK = 64


@dataclass(frozen=True)
class RandomTrials:
    """Draws how many trials there are, at least one, and states what the best of them costs.

    Guarantee: if each trial is an independent run of one mechanism that costs at most one of some events, then the best
    trial costs `event(events)`. The number of trials must not be released, nor anything of the other trials.
    """

    law: accounting.TrialsLaw

    @classmethod
    def expecting(cls, mean: float, law: str = "geometric") -> RandomTrials:
        """So many trials on average, at least 1; exactly one trial is not random."""
        if law not in LAWS:
            raise ValueError(f"the law of the number of trials must be one of {', '.join(LAWS)}; got {law!r}.")
        return cls(accounting.TrialsLaw.with_mean(LAWS[law], mean))

    def event(self, events: Sequence[Any]) -> Any:
        """The cost of the best trial, if each costs one of `events`."""
        return accounting.best_of_trials_event(events, self.law.eta, self.law.gamma)

    def draw(self, rng: RandomGenerator) -> int:
        """The number of trials, without rounding: whole random numbers are compared with whole numbers.

        A geometric number k that is kept with probability 1 / k has the logarithmic law.
        """
        if self.law.eta not in LAWS.values():
            raise ValueError(f"only the laws with eta = 0 and eta = 1 can be drawn; got eta = {self.law.eta!r}.")
        while True:
            count = self._geometric(rng)
            if self.law.eta == 1.0 or int(rng.integers(count, 1)[0]) == 0:
                return count

    def _geometric(self, rng: RandomGenerator) -> int:
        """How many draws until one succeeds, each with probability gamma, which is a multiple of 2^-60."""
        below, before = int(self.law.gamma * 2**_BITS), 0
        while True:
            stops = (rng.integers(2**_BITS, _BLOCK) < below).nonzero()[0]
            if stops.size:
                return before + int(stops[0]) + 1
            before += _BLOCK
