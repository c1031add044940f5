"""What a promise means for one person: beliefs and guesses instead of epsilon and delta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.privacy import accounting
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.privacy.tradeoffs import TradeOff

PRIORS = (0.5, 0.1, 0.01)  # beliefs before, of which a statement tells the belief after


@dataclass(frozen=True)
class Meaning:
    """What whoever knows all other rows can come to know about one.

    Attributes
    ----------
    beliefs : tuple of (float, float)
        Beliefs before seeing the result that a certain row was used, and the most that each can become.
    failure : float
        At most this often, the result lets a belief become larger than that.
    guess : float
        Who guesses whether the row was used, having thought it 50 % likely, is right at most this often.
    """

    beliefs: tuple[tuple[float, float], ...]
    failure: float
    guess: float

    @classmethod
    def of(cls, epsilon: float, delta: float, event: Any, relation: Relation) -> Meaning:
        """The meaning of an (epsilon, delta) promise that an event proves."""
        if not math.isfinite(epsilon):
            return cls(tuple((prior, 1.0) for prior in PRIORS), 1.0, 1.0)
        beliefs = tuple((prior, belief_after(prior, epsilon)) for prior in PRIORS)
        from discreet.privacy.tradeoffs import ApproximateTradeOff

        # Both bounds hold: that of the numbers promised, and that of what was really done.
        promised = ApproximateTradeOff(epsilon, delta).accuracy(0.5)
        guess = min(1.0, promised, accounting.guess_accuracy(event, relation))
        return cls(beliefs, accounting.excess_probability(event, epsilon, relation), guess)

    @classmethod
    def of_curve(cls, curve: TradeOff, failure: float | None = None) -> Meaning:
        """The meaning of a trade-off curve; one without a delta needs `failure`, how often a belief may be larger."""
        growth = curve.odds_growth(failure)
        often = failure if failure is not None else (curve.usual_growth() or (growth, 0.0))[1]
        return cls(tuple((prior, belief_after(prior, growth)) for prior in PRIORS), often, curve.accuracy(0.5))

    def to_dict(self) -> dict[str, Any]:
        """Return the meaning as JSON values."""
        beliefs = [{"before": before, "after_at_most": after} for before, after in self.beliefs]
        return {"beliefs": beliefs, "failure_at_most": self.failure, "guess_at_most": self.guess}


def belief_after(before: float, epsilon: float) -> float:
    """Return the most that a belief can become when its odds grow by at most exp(epsilon): Bayes' theorem."""
    return before / (before + (1.0 - before) * math.exp(min(-epsilon, 700.0)))


def percent_at_most(fraction: float) -> str:
    """A percentage, rounded up; near 100 % with as many digits as tell it from there."""
    left = 100.0 * (1.0 - fraction)
    if left < 1e-10:
        return "practically 100 %"
    digits = max(1, 1 - math.floor(math.log10(left)))
    return f"{math.ceil(fraction * 100.0 * 10**digits) / 10**digits:.{digits}f} %"
