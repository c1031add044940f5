"""Noise for methods that release a minimiser once: on the minimiser itself, or on the objective before minimising.

Also how far the result of gradient steps on a fixed sequence of batches can move between neighbouring tables: a step
never takes two runs farther apart, except the step on the batch that has the changed row. Proofs:
docs/guarantees/output-perturbation.md, docs/guarantees/objective-perturbation.md and docs/guarantees/bolt-on.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.mechanisms.additive import AdditiveMechanism, NoisyGrid, PricedByMultiplier, noisy_grid
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


def batch_sum(relation: Relation) -> Sensitivity:
    """Sum over a batch of vectors of norm at most 1; if rows may be added, the weight of a batch is thinned to a limit.

    Guarantee: as `clipped_sum`; an added row may also displace as much weight of the others as it brings.
    """
    if relation is Relation.ADD_REMOVE:
        return mechanisms.clipped_sum(Relation.REPLACE)
    return mechanisms.clipped_sum(relation)


def path_end(
    relation: Relation, loss: Loss, radius: float, step: float, batch_rows: int, shrink: float, batches: int,
    passes: int, averaged: int = 0,
) -> Sensitivity:  # fmt: skip
    """The last iterate of so many passes over the batches, or the mean of the iterates of the last `averaged` passes.

    Rows have norm at most `radius`; a step divides the sum over its batch by `batch_rows`, and its proximal map brings
    points closer by the factor `shrink`.

    Guarantee: for steps of at most 2 / (smoothness radius^2), for any order of the batches that all passes share.
    """
    visits = shrink ** (1.0 + batches * np.arange(passes))
    # What is left of the moves of all visits to the changed row, after each pass that is averaged.
    remaining = float(np.cumsum(visits)[-max(averaged, 1) :].mean())
    l2 = batch_sum(relation).l2 * loss.lipschitz * radius * step / batch_rows * remaining
    return Sensitivity(l2, math.inf)


def rounding_of(farthest: float, steps: int, dimension: int) -> float:
    """How far roundings can move the end of gradient steps that stay within `farthest` of 0, between two tables.

    A step rounds each entry four times at most, by half a unit in the last place, on either table.
    """
    return 4.0 * steps * math.sqrt(dimension) * float(np.spacing(farthest))


def thinned(weight: FloatArray | None, rows: int, parts: Sequence[IndexArray], limit: float) -> FloatArray:
    """The weights of the rows, scaled down in every batch whose weight exceeds the limit."""
    result = np.ones(rows) if weight is None else weight.copy()
    for part in parts:
        result[part] *= min(1.0, limit / max(float(result[part].sum()), 1.0))
    return result
