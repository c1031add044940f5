"""What noisy proximal steps of random coordinates do to the objective, in expectation.

Theorem and proof: docs/guarantees/utility.md, section "Coordinate descent".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet._common.checks import at_least_zero, number_in, whole


@dataclass(frozen=True)
class NoisyCoordinateSteps:
    """E[F - F*] after a step is at most (1 - rate) times what it was, plus `added`.

    Parameters
    ----------
    rate : float
        In [0, 1]: chance of the least likely coordinate times (a + b) / (1 + b), where the smooth part has strong
        convexity a and the penalty b in the norm of the step lengths, sum of M_j w_j^2.
    added : float
        Mean over the coordinates drawn of (expected squared noise) / (2 (M_j + l2_j)).

    Examples
    --------
    >>> from discreet.theory.coordinate_steps import NoisyCoordinateSteps
    >>> steps = NoisyCoordinateSteps(rate=0.5, added=0.01)
    >>> round(steps.after(20, gap=1.0), 6), round(steps.mean_after(20, gap=1.0), 6)
    (0.020001, 0.069)
    """

    rate: float
    added: float

    def __post_init__(self) -> None:
        number_in("rate", self.rate, 0.0, 1.0)
        at_least_zero("added", self.added)

    def after(self, steps: int, gap: float) -> float:
        """Return the bound on the expected gap after so many steps from an expected gap of at most `gap`."""
        steps, gap = whole("steps", steps, least=0), at_least_zero("gap", gap)
        if self.rate == 0.0:
            return gap + steps * self.added
        left = 0.0 if self.rate == 1.0 and steps else math.exp(steps * _log_of_rest(self.rate))
        return left * gap + (1.0 - left) * self.added / self.rate

    def mean_after(self, steps: int, gap: float) -> float:
        """Return the mean of the bounds after 1, 2, ..., `steps` steps, which bounds the gap of the mean iterate."""
        steps, gap = whole("steps", steps, least=1), at_least_zero("gap", gap)
        if self.rate == 0.0:
            return gap + 0.5 * (steps + 1) * self.added
        gone = 1.0 if self.rate == 1.0 else -math.expm1(steps * _log_of_rest(self.rate))
        left = (1.0 - self.rate) * gone / (steps * self.rate)
        return left * gap + (1.0 - left) * self.added / self.rate


def _log_of_rest(rate: float) -> float:
    return math.log1p(-rate) if rate < 1.0 else 0.0
