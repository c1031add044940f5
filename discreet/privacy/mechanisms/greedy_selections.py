"""Private choices of the best of many scores, each followed by the release of the chosen entry of a sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.mechanisms.additive import (
    AdditiveMechanism,
    Gaussian,
    Laplace,
    NoisyGrid,
    noise_scale,
)
from discreet.privacy.mechanisms.selections import TopSelections
from discreet.privacy.mechanisms.sensitivity import Sensitivity
from discreet.privacy.random.generator import RandomGenerator


@dataclass(frozen=True)
class GumbelGreedy(AdditiveMechanism):
    """`count` times: select one of many scores by the exponential mechanism, then release its gradient entry.

    Gumbel noise of scale multiplier * D on scores of sensitivity D is the exponential mechanism with
    epsilon = 2 / multiplier; the entry gets Gaussian noise of the same multiplier, so both halves of a step
    cost the same rho. With `measured`, a second number of the chosen coordinate is released, for an eighth of what the
    two cost together.

    Guarantee: the events of a step, in this order: a selection of bounded range 2 / multiplier, a Gaussian, and with
    `measured` a Gaussian of twice the multiplier.
    """

    multiplier: float
    count: int
    measured: bool = False

    def _cost(self) -> Any:
        parts = [accounting.selection_event(2.0 / self.multiplier), accounting.gaussian_event(self.multiplier)]
        if self.measured:
            parts.append(self.of_measurement.event)
        return accounting.compose(parts * self.count)

    @property
    def of_measurement(self) -> Gaussian:
        """The mechanism of the second number of a chosen coordinate."""
        return Gaussian(2.0 * self.multiplier)

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise on an entry."""
        return noise_scale(self.multiplier, sensitivity.l2)

    def choose(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        return TopSelections(self.multiplier, 1).choose(rng, scores, sensitivity)

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """The grid and the noise of a chosen entry."""
        return Gaussian(self.multiplier).grid(sensitivity, entries, rows, loose)


@dataclass(frozen=True)
class LaplaceGreedy(AdditiveMechanism):
    """The same with Laplace noise in both places, as the thesis has it, at its true cost.

    Report-noisy-max with Laplace noise of scale multiplier * D is (2 / multiplier)-DP, twice what is printed,
    and not of bounded range: nothing better is known of it.

    Guarantee: the events of a step: a pure release of epsilon 2 / multiplier, a Laplace release.
    """

    multiplier: float
    count: int

    def _cost(self) -> Any:
        choices = accounting.pure_event(2.0 / self.multiplier, self.count)
        return accounting.compose([choices, accounting.laplace_event(self.multiplier, self.count)])

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise on an entry."""
        return math.sqrt(2.0) * noise_scale(self.multiplier, sensitivity.l1)

    def choose(self, rng: RandomGenerator, scores: FloatArray, sensitivity: Sensitivity) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        if self.multiplier == 0.0:
            return int(np.argmax(scores))
        return int(np.argmax(scores + self.multiplier * sensitivity.l1 * rng.laplace(scores.size)))

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """The grid and the noise of a chosen entry."""
        return Laplace(self.multiplier).grid(sensitivity, entries, rows, loose)
