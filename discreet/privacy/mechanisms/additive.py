"""Noise that is added: Gaussian and Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.privacy import accounting
from discreet.privacy.mechanisms.base import AdditiveMechanism, event_unless_noiseless, noise_scale
from discreet.privacy.mechanisms.grid import NoisyGrid, noisy_grid
from discreet.privacy.mechanisms.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget


@dataclass(frozen=True)
class Gaussian(AdditiveMechanism):
    """Adds N(0, (multiplier * l2 sensitivity)^2) to every entry, `count` times.

    Guarantee: mu-Gaussian DP with mu = sqrt(count) / multiplier, for adaptively chosen queries.
    """

    multiplier: float
    count: int = 1

    @property
    def event(self) -> Any:
        return event_unless_noiseless(self.multiplier, accounting.gaussian_event, self.count)

    def scale(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise."""
        return noise_scale(self.multiplier, sensitivity.l2)

    deviation = scale

    def level(self, sensitivity: Sensitivity, probability: float, entries: int = 1) -> float:
        """The level that the noise in a sum of so many entries exceeds with this probability, at most 1/2."""
        from scipy.special import ndtri

        return -float(ndtri(probability)) * math.sqrt(entries) * self.scale(sensitivity)

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """Rounded normal noise; rounding moves a vector by at most sqrt(entries) steps more."""
        return noisy_grid("normal", self.multiplier, sensitivity.l2, loose * math.sqrt(entries), rows)


@dataclass(frozen=True)
class Laplace(AdditiveMechanism):
    """Adds Laplace noise of scale multiplier * l1 sensitivity to every entry, `count` times.

    Guarantee: pure epsilon-DP with epsilon = count / multiplier, for adaptively chosen queries.
    """

    multiplier: float
    count: int = 1

    @property
    def event(self) -> Any:
        return event_unless_noiseless(self.multiplier, accounting.laplace_event, self.count)

    def scale(self, sensitivity: Sensitivity) -> float:
        """Scale parameter of the Laplace noise."""
        return noise_scale(self.multiplier, sensitivity.l1)

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(2.0) * self.scale(sensitivity)

    def level(self, sensitivity: Sensitivity, probability: float, entries: int = 1) -> float:
        """The level that the noise in a sum of so many entries exceeds with this probability (at most), at most 1/2."""
        if entries == 1:
            return math.log(0.5 / probability) * self.scale(sensitivity)
        bounds = (  # Chernoff: the moment generating function of one entry of scale 1 is 1 / (1 - t^2)
            (math.log(1.0 / probability) - entries * math.log1p(-((step / 64) ** 2))) / (step / 64)
            for step in range(1, 64)
        )
        return min(bounds) * self.scale(sensitivity)

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """Rounded Laplace noise; rounding moves a vector by at most `entries` steps more in L1."""
        return noisy_grid("laplace", self.multiplier, sensitivity.l1, loose * entries, rows)


Additive = Gaussian | Laplace


def additive(budget: Budget, share: float, count: int = 1) -> Additive:
    """The additive mechanism that spends a share of the budget on `count` equal releases.

    The shares add up in the unit in which the mechanism composes exactly: mu^2 for Gaussian noise, epsilon
    for Laplace noise (pure budgets). An infinite budget gives a mechanism without noise.
    """
    if budget.is_infinite:
        return Gaussian(0.0, count)
    if budget.kind == "pure":
        assert budget.epsilon is not None
        return Laplace(count / (share * budget.epsilon), count)
    return Gaussian(math.sqrt(count / share) / budget.gaussian_mu(), count)
