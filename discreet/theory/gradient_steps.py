"""What noisy gradient steps do to the objective and to the distance from the optimum, in expectation.

Theorems and proofs: docs/guarantees/utility.md, section "Gradient methods".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet._common.checks import at_least_zero, number_in, whole
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
