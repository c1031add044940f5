"""Noise for methods that release a minimiser once: on the minimiser itself, or on the objective before minimising.

Proofs: docs/guarantees/output-perturbation.md and docs/guarantees/objective-perturbation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.mechanisms.additive import (
    AdditiveMechanism,
    NoisyGrid,
    PricedByMultiplier,
    noisy_grid,
)
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.problem.losses import Loss


# The noise that hides the error of the minimiser has so many times the multiplier of the objective's noise: 1 % of
# the cost, in mu^2 for Gaussian noise and in epsilon for Gamma noise.
GAUSSIAN_OUTPUT_RATIO, GAMMA_OUTPUT_RATIO = 10.0, 100.0


def gradient_sum(relation: Relation, loss: Loss, radius: float) -> Sensitivity:
    """Sum over the rows of the gradients of a Lipschitz loss, for rows of norm at most `radius`.

    Guarantee: the sum moves by at most lipschitz * radius, at every point; by twice that if a row is replaced.
    """
    return mechanisms.clipped_sum(relation) * (loss.lipschitz * radius)


def within(distance: float) -> Sensitivity:
    """A vector known up to `distance`, whatever the table: two such vectors differ by at most twice that."""
    return Sensitivity(2.0 * distance, math.inf)


def minimiser(gradient: Sensitivity, convexity: float, rows: int, distance: float) -> Sensitivity:
    """A point within `distance` of the minimiser of a mean of losses plus l2 penalties of at least `convexity`.

    Guarantee: multiplied by the roots of the l2 penalties, it moves by at most gradient / (rows sqrt(convexity))
    + 2 distance; the distance is measured after the same multiplication.
    """
    return Sensitivity(gradient.l2 / (rows * math.sqrt(convexity)) + within(distance).l2, math.inf)


@dataclass(frozen=True)
class SphericalLaplace(AdditiveMechanism):
    """Adds a vector with density proportional to exp(-||z|| / scale), scale = multiplier * l2 sensitivity.

    Guarantee: pure epsilon-DP with epsilon = 1 / multiplier, in every dimension.
    """

    multiplier: float

    def _cost(self) -> Any:
        return accounting.pure_event(1.0 / self.multiplier)

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """Spherical noise, rounded; rounding moves a vector by at most sqrt(entries) steps more."""
        return noisy_grid("spherical", self.multiplier, sensitivity.l2, loose * math.sqrt(entries), rows)


OutputNoise = mechanisms.Gaussian | SphericalLaplace


@dataclass(frozen=True)
class ObjectiveNoise(PricedByMultiplier):
    """A random linear term in the objective, and noise on the result that hides how well it was minimised.

    `shift` bounds the log-ratio of the Hessian determinants of neighbours; `tails` is for the accounting.

    Guarantee: Gaussian: the event of docs/guarantees/objective-perturbation.md with a small Gaussian release after
    it; Gamma (`pure`): epsilon-DP with epsilon = shift + 1 / multiplier + 1 / (100 multiplier).
    """

    multiplier: float
    shift: float
    tails: int
    pure: bool

    def _cost(self) -> Any:
        if self.pure:
            objective = accounting.pure_event(self.shift + 1.0 / self.multiplier)
        else:
            objective = accounting.objective_event(self.shift, self.multiplier, self.tails)
        return accounting.compose([objective, self.output_noise.event])

    @property
    def output_noise(self) -> OutputNoise:
        """The mechanism that hides the error of the minimiser."""
        if self.pure:
            return SphericalLaplace(GAMMA_OUTPUT_RATIO * self.multiplier)
        return mechanisms.Gaussian(GAUSSIAN_OUTPUT_RATIO * self.multiplier)

    @property
    def linear(self) -> OutputNoise:
        """The mechanism that draws the linear term."""
        return SphericalLaplace(self.multiplier) if self.pure else mechanisms.Gaussian(self.multiplier)


def tails_of(relation: Relation, loss: Loss) -> int:
    """How many Gaussian tails bound the privacy loss of objective perturbation.

    Guarantee: one if the slope keeps its sign; else two for a row that vanishes and four for one that is replaced.
    """
    if loss.monotone:
        return 1
    return 4 if relation is Relation.REPLACE else 2


def log_determinants(loss: Loss, radius: float, rows: int, convexity: float) -> float:
    """How far the log-determinant of the Hessian can move: one row adds a matrix of rank 1.

    Guarantee: log(1 + smoothness * radius^2 / (rows * convexity)), whatever the relation.
    """
    return math.log1p(loss.smoothness * radius**2 / (rows * convexity))
