"""What is promised for a data set, and whether a list of events keeps the promise.

Events come as JSON text, as the ledger stores them: text can be remembered, so that the same composition
is not computed twice.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from discreet.privacy.relation import Relation

# A DpEvent; the package it comes from is imported by the accounting alone.
Event = Any
# A plan calibrated to exactly the whole budget may miss it by rounding. The slack is granted once, to the
# composition of everything, so it does not add up over reservations.
_SLACK = 1.0 + 1e-9


@dataclass(frozen=True)
class Allowance:
    """What was promised for a data set, over all its events.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    epsilon, delta : float
        What the composition of all events must keep.
    relation : Relation
        Which tables count as neighbours.
    """

    dataset: str
    epsilon: float
    delta: float
    relation: Relation

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise ValueError(f"dataset must be a name that is not empty, got {self.dataset!r}")
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta}")

    def covers(self, events: tuple[str, ...]) -> bool:
        """Whether the events, composed, are proved to keep the promise, in epsilon or in delta.

        Guarantee: if True, the composition is (epsilon, delta)-DP, up to one part in 10^9 for rounding.
        """
        if self.cost(events) <= self.epsilon * _SLACK:
            return True
        # The two bounds are computed on different grids, and either is a proof. Not for a pure promise: a
        # Gaussian's delta can be so small that it rounds to 0.
        if self.delta == 0:
            return False
        return _delta_of(events, self.epsilon * _SLACK, self.relation) <= self.delta * _SLACK

    def cost(self, events: tuple[str, ...]) -> float:
        """Epsilon of the events, composed, at the delta of the promise."""
        return _epsilon_of(events, self.delta, self.relation)


def event_text(event: Event) -> str:
    """Write an event as JSON, the form in which the ledger keeps it."""
    from discreet.privacy.accounting import event_to_dict

    return json.dumps(event_to_dict(event), sort_keys=True)


def _composed(events: tuple[str, ...]) -> Event:
    from discreet.privacy.accounting import compose, event_from_dict

    return compose([event_from_dict(json.loads(event)) for event in events])


@lru_cache(maxsize=256)
def _delta_of(events: tuple[str, ...], epsilon: float, relation: Relation) -> float:
    from discreet.privacy.accounting import delta_of

    return float(delta_of(_composed(events), epsilon, relation)) if events else 0.0


@lru_cache(maxsize=256)
def _epsilon_of(events: tuple[str, ...], delta: float, relation: Relation) -> float:
    from discreet.privacy.accounting import epsilon_of

    return float(epsilon_of(_composed(events), delta, relation)) if events else 0.0
