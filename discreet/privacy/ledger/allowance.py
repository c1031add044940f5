"""What is promised for a data set, and whether all its events together keep the promise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache

from discreet._common.checks import real_number
from discreet.privacy.ledger.total import Total
from discreet.privacy.relation import Relation, Unit

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
    unit : {"row", "person"}
        What neighbours differ in: one row, or one person with all of their rows.
    """

    dataset: str
    epsilon: float
    delta: float
    relation: Relation
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise ValueError(f"dataset must be a name that is not empty, got {self.dataset!r}")
        for name in ("epsilon", "delta"):
            real_number(name, getattr(self, name))
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {self.delta}")

    def covers(self, total: Total) -> bool:
        """Whether all events, composed, are proved to keep the promise, in epsilon or in delta.

        Guarantee: if True, the composition is (epsilon, delta)-DP, up to one part in 10^9 for rounding.
        """
        if self.cost(total) <= self.epsilon * _SLACK:
            return True
        # The two bounds are computed on different grids, and either is a proof. Not for a pure promise: a
        # Gaussian's delta can be so small that it rounds to 0.
        if self.delta == 0:
            return False
        return _delta_of(total, self.epsilon * _SLACK, self.relation) <= self.delta * _SLACK

    def cost(self, total: Total) -> float:
        """Epsilon of all events, composed, at the delta of the promise."""
        return _epsilon_of(total, self.delta, self.relation)

    def cost_of(self, event: str) -> float:
        """Epsilon of one event alone, at the delta of the promise."""
        return self.cost(Total().plus(event))

    def pure_cost_of(self, event: str) -> float:
        """Epsilon of one event alone at delta 0; infinite for Gaussian noise."""
        from discreet.privacy.accounting import event_from_dict, pure_epsilon_of

        return pure_epsilon_of(event_from_dict(json.loads(event)), self.relation)

    def check(self, event: str) -> None:
        """Refuse an event that the accounting does not know, or not under this relation."""
        from discreet.privacy.accounting import event_from_dict
        from discreet.privacy.accounting.composition import read_composition

        read_composition(event_from_dict(json.loads(event)), self.relation)


@lru_cache(maxsize=64)
def _delta_of(total: Total, epsilon: float, relation: Relation) -> float:
    from discreet.privacy.accounting import delta_of

    return float(delta_of(total.event(), epsilon, relation, total.in_order)) if total.runs else 0.0


@lru_cache(maxsize=64)
def _epsilon_of(total: Total, delta: float, relation: Relation) -> float:
    from discreet.privacy.accounting import epsilon_of

    return float(epsilon_of(total.event(), delta, relation, total.in_order)) if total.runs else 0.0
