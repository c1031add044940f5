"""What noisy steps, of gradients or of coordinates, do to the objective and to the distance from the optimum.

In expectation. Theorems and proofs: docs/guarantees/utility.md, sections "Gradient methods" and "Coordinate descent".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import at_least_zero, number_in, whole
from discreet._common.types import FloatArray
from discreet.theory.fixed_point import NoisyContraction


@dataclass(frozen=True)
class NoisyGradientSteps:
    """w <- prox(w - step (gradient + noise)), averaged over the iterates `first` to `steps`.

    Parameters
    ----------
    step : float
        Step length.
    steps : int
        Number of steps.
    first : int
        The first iterate that is averaged; 0 is the start, and then the last iterate is left out. `steps` alone: the
        last one.
    noise : float
        Largest expected squared norm of the noise in a gradient: of batches and of privacy.
    radius : float
        Bound on the distance of the start from the optimum.
    gap : float
        Bound on the excess of the objective at the start; needed for steps longer than 1 / smoothness with a penalty.
    lipschitz : float
        Bound on the norm of the gradient; may be infinite.
    smoothness : float
        Largest curvature of the smooth part; may be infinite.
    strong_convexity, penalty_convexity : float
        Strong convexity of the smooth part and of the penalty.
    penalty : {"none", "set", "l2", "any"}
        No penalty, a projection, a multiple of the squared norm by its proximal map, or anything with a proximal map.
    """

    step: float
    steps: int
    first: int
    noise: float
    radius: float
    gap: float = math.inf
    lipschitz: float = math.inf
    smoothness: float = math.inf
    strong_convexity: float = 0.0
    penalty_convexity: float = 0.0
    penalty: str = "none"

    def __post_init__(self) -> None:
        number_in("step", self.step, 0.0, above=True)
        whole("steps", self.steps, least=1)
        if whole("first", self.first, least=0) > self.steps:
            raise ValueError(f"first must be at most steps={self.steps}; got {self.first}.")
        for name in ("noise", "radius", "gap", "lipschitz", "smoothness", "strong_convexity", "penalty_convexity"):
            at_least_zero(name, getattr(self, name))
        if self.strong_convexity > self.smoothness:
            raise ValueError("strong_convexity cannot exceed smoothness.")

    @property
    def averaged(self) -> int:
        """Number of iterates in the mean."""
        return self.steps - self.first + (self.first > 0)

    def excess(self) -> dict[str, float]:
        """Return the bounds on the expected excess of the objective at the mean iterate, by the names of their proofs.

        Empty if none applies.
        """
        found = {
            "Lipschitz": self._by_lipschitz(),
            "smooth": self._by_smoothness(),
            "proximal": self._by_proximal_steps(),
            "strongly convex": self._by_distance(),
        }
        return {name: value for name, value in found.items() if value < math.inf}

    def _mean(self, per_step: float, gain: float, before: int) -> float:
        """(E |e|^2 + n c) / (2 gain n), for n averaged iterates, after `before` steps that each added at most c."""
        reached = self.radius**2 + before * per_step
        return (reached + self.averaged * per_step) / (2.0 * gain * self.averaged)

    def _by_lipschitz(self) -> float:
        if self.penalty not in ("none", "set"):
            return math.inf
        return self._mean(self.step**2 * (self.lipschitz**2 + self.noise), self.step, self.first)

    def _by_smoothness(self) -> float:
        left = 2.0 - self.step * self.smoothness
        if self.penalty != "none" or not left > 0.0:
            return math.inf
        return self._mean(self.step**2 * self.noise, self.step * min(1.0, left), self.first)

    def _by_proximal_steps(self) -> float:
        length = self.step * self.smoothness
        if self.first == 0 or not length < 2.0:
            return math.inf
        beyond = max(0.0, length - 1.0) / (2.0 - length)
        start = beyond * self.gap if beyond > 0.0 else 0.0
        noise = 2.0 * (1.0 + beyond) * self.step**2 * self.noise
        return self._mean(noise, self.step, self.first - 1) + start / self.averaged

    def _by_distance(self) -> float:
        if self.penalty not in ("none", "l2") or math.isinf(self.smoothness):
            return math.inf
        return 0.5 * (self.smoothness + self.penalty_convexity) * self.squared_distance()

    def squared_distance(self) -> float:
        """Return the bound on the expected squared distance of the mean iterate; infinite where nothing contracts."""
        g, shrink = self.step, 1.0 + self.step * self.penalty_convexity
        if math.isinf(self.smoothness):
            return math.inf
        kept = max(abs(1.0 - g * self.strong_convexity), abs(1.0 - g * self.smoothness)) / shrink
        if kept >= 1.0:
            return math.inf
        run = NoisyContraction(kept, (g / shrink) ** 2 * self.noise)
        start, squared = self.radius**2, kept**2
        left = squared**self.first * (1.0 - squared**self.averaged) / (1.0 - squared) / self.averaged
        return run.limit + left * (start - run.limit)


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
    >>> from discreet.theory.steps import NoisyCoordinateSteps
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
