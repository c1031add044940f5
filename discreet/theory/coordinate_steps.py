"""What noisy proximal steps of random coordinates do to the objective, in expectation.

Theorems and proofs: docs/guarantees/utility.md, section "Coordinate descent".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import at_least_zero, number_in, whole
from discreet._common.types import FloatArray

Numbers = Sequence[float] | FloatArray


def per_coordinate(name: str, values: Numbers) -> FloatArray:
    """Numbers of the coordinates, each positive and finite."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or found.size == 0 or not ((found > 0.0) & np.isfinite(found)).all():
        raise ValueError(f"{name} must hold one positive, finite number per coordinate.")
    return found


@dataclass(frozen=True)
class NoisyCoordinateSteps:
    """Proximal steps of length 1/M_j in coordinates that are drawn at random, with noise in each.

    Norms are |w|_M = sqrt(sum of M_j w_j^2).

    Parameters
    ----------
    chance : float
        Probability with which each coordinate is moved in a step; of the least likely one, if they differ.
    noise : float
        Sum over the coordinates of (expected squared noise) / M_j, weighted by their probabilities over `chance`.
    rate : float, default=0
        In [0, 1]: (a + b) / (1 + b), the smooth part having strong convexity a and the penalty b in the norm of M.
    even : bool, default=True
        Whether all coordinates have the same probability, as theorem G6 needs.
    length : float, default=1
        Step lengths over those that the curvature allows for certain; below 2. Above 1, only theorem G6 applies.

    Examples
    --------
    >>> from discreet.theory.coordinate_steps import NoisyCoordinateSteps
    >>> steps = NoisyCoordinateSteps(chance=0.5, noise=0.04, rate=1.0)
    >>> round(steps.last(20, gap=1.0), 6), round(steps.mean(20, 0.5, gap=1.0)[1], 6)
    (0.020001, 0.069)
    """

    chance: float
    noise: float
    rate: float = 0.0
    even: bool = True
    length: float = 1.0

    def __post_init__(self) -> None:
        number_in("chance", self.chance, 0.0, 1.0, above=True)
        number_in("rate", self.rate, 0.0, 1.0)
        at_least_zero("noise", self.noise)
        if not number_in("length", self.length, 0.0, 2.0, above=True) < 2.0:
            raise ValueError("steps must be shorter than twice what the curvature allows for certain.")

    @property
    def _lost(self) -> float:
        """Which part of the gap a step takes away."""
        return self.chance * self.rate

    @property
    def _added(self) -> float:
        """What the noise adds to the gap in a step."""
        return 0.5 * self.chance * self.noise

    def last(self, steps: int, gap: float) -> float:
        """Return the bound on the expected gap after so many steps from one of at most `gap` (theorem G5)."""
        steps, gap = whole("steps", steps, least=0), at_least_zero("gap", gap)
        if self.length > 1.0:
            return math.inf
        if self._lost == 0.0:
            return gap + steps * self._added
        left = self._left(steps)
        return left * gap + (1.0 - left) * self._added / self._lost

    def mean(self, steps: int, half_square: float, gap: float) -> tuple[float, float]:
        """Return bounds on E |w - w*|_M^2 / 2 and the expected gap of the mean of the iterates 1, ..., `steps`.

        From the same two numbers of the start: the better of theorem G6 and of theorem G5 for every iterate.
        """
        steps = whole("steps", steps, least=1)
        half, gap = at_least_zero("half_square", half_square), at_least_zero("gap", gap)
        beyond = max(0.0, self.length - 1.0) / (2.0 - self.length)
        if beyond > 0.0:
            means = math.inf
        elif self._lost == 0.0:
            means = gap + 0.5 * (steps + 1) * self._added
        else:
            left = (1.0 - self._lost) * (1.0 - self._left(steps)) / (steps * self._lost)
            means = left * gap + (1.0 - left) * self._added / self._lost
        if not self.even:
            return math.inf, means
        whole_gap, noise = half + (1.0 - self.chance + beyond) * gap, (1.0 + beyond) * self.noise
        by_distance = whole_gap / (self.chance * steps) + noise
        return whole_gap + 0.5 * (steps + 1) * self.chance * noise, min(means, by_distance)

    def _left(self, steps: int) -> float:
        return 0.0 if self._lost == 1.0 and steps else math.exp(steps * math.log1p(-self._lost))
