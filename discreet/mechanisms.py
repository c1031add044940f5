"""Mechanisms: one object draws the noise and states what it costs, so the two cannot disagree.

A mechanism stores only its noise multiplier, the ratio of the noise (standard deviation or Laplace
scale) to the sensitivity of what it protects. How far a released quantity can move between neighbouring
tables is computed here and nowhere else, so the factor 2 of the replace relation is applied exactly once.
The proofs are in docs/guarantees/mechanisms.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import accounting
from discreet.relation import Relation

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.randomness import RandomStream

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """How far a vector can move between neighbouring tables, in the Euclidean and in the L1 norm."""

    l2: float
    l1: float

    def __mul__(self, factor: float) -> Sensitivity:
        return Sensitivity(self.l2 * factor, self.l1 * factor)


def clipped_sum(relation: Relation, dimension: int = 1) -> Sensitivity:
    """Sum over the rows of vectors clipped to Euclidean norm 1.

    Guarantee: a replaced row moves the sum by at most 2, a removed or null row by at most 1; in L1 by at
    most sqrt(dimension) times that (Cauchy-Schwarz).
    """
    return Sensitivity(float(relation.factor), relation.factor * math.sqrt(dimension))


def one_hot_counts(relation: Relation, columns: int) -> Sensitivity:
    """Histograms of several columns; each row puts one count (at most 1) into one bin of each column.

    Guarantee: replacing a row takes one count from a bin and adds one to another in every column, so the
    vector of counts moves by at most sqrt(2 columns); a removed row moves it by sqrt(columns).
    """
    return Sensitivity(math.sqrt(relation.factor * columns), float(relation.factor * columns))


def counted_rows() -> Sensitivity:
    """The number of rows with some property.

    Guarantee: one row, replaced, removed or null, changes a count by at most 1.
    """
    return Sensitivity(1.0, 1.0)


def bounded_moments(relation: Relation, columns: int) -> Sensitivity:
    """Sums of x and of x^2 for several columns with |x| <= 1, released together.

    Guarantee: with d = a - b and s = a + b, |d| + |s| <= 2, the squared move of one column is
    d^2 (1 + s^2) <= 4 and the L1 move |d| (1 + |s|) <= 9/4, so the second moments ride along for free
    under replacement; a removed row moves each column by (1, 1) at most.
    """
    if relation is Relation.REPLACE:
        return Sensitivity(2.0 * math.sqrt(columns), 2.25 * columns)
    return Sensitivity(math.sqrt(2.0 * columns), 2.0 * columns)


@dataclass(frozen=True)
class Gaussian:
    """Adds N(0, (multiplier * l2 sensitivity)^2) to every entry, `count` times.

    Guarantee: mu-Gaussian DP with mu = sqrt(count) / multiplier, for adaptively chosen queries.
    """

    multiplier: float
    count: int = 1

    @property
    def event(self) -> Any:
        return _event_unless_silent(self.multiplier, accounting.gaussian_event, self.count)

    def scale(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise."""
        return self.multiplier * sensitivity.l2

    deviation = scale

    def noise(self, rng: RandomStream, sensitivity: Sensitivity, size: int | tuple[int, ...]) -> FloatArray:
        draws = rng.normal(size)
        draws *= self.scale(sensitivity)
        return draws


@dataclass(frozen=True)
class Laplace:
    """Adds Laplace noise of scale multiplier * l1 sensitivity to every entry, `count` times.

    Guarantee: pure epsilon-DP with epsilon = count / multiplier, for adaptively chosen queries.
    """

    multiplier: float
    count: int = 1

    @property
    def event(self) -> Any:
        return _event_unless_silent(self.multiplier, accounting.laplace_event, self.count)

    def scale(self, sensitivity: Sensitivity) -> float:
        """Scale parameter of the Laplace noise."""
        return self.multiplier * sensitivity.l1

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(2.0) * self.scale(sensitivity)

    def noise(self, rng: RandomStream, sensitivity: Sensitivity, size: int | tuple[int, ...]) -> FloatArray:
        draws = rng.laplace(size)
        draws *= self.scale(sensitivity)
        return draws


@dataclass(frozen=True)
class PoissonGaussian:
    """Gaussian noise on the clipped sum over a Poisson sample of the rows, `count` times.

    The multiplier is the standard deviation over the clipping norm C, not over the distance: the
    accountant's pair for the replace relation already shifts by +C on one side and -C on the other.

    Guarantee: the dominating pairs of docs/guarantees/sgd.md, composed as privacy-loss distributions.
    """

    multiplier: float
    rate: float
    count: int

    @property
    def event(self) -> Any:
        def event(multiplier: float, count: int) -> Any:
            return accounting.poisson_event(self.rate, multiplier, count)

        return _event_unless_silent(self.multiplier, event, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on the sum."""
        return self.multiplier * clip


@dataclass(frozen=True)
class FixedSizeGaussian:
    """Gaussian noise on the clipped sum over a batch of fixed size drawn without replacement.

    Whatever the relation, the row that leaves the batch is replaced by another one, so the pair shifts by
    2C: the multiplier is the standard deviation over 2C. Refused for add/remove, where n is private.
    """

    multiplier: float
    rows: int
    batch: int
    count: int

    @property
    def event(self) -> Any:
        def event(multiplier: float, count: int) -> Any:
            return accounting.fixed_size_event(self.rows, self.batch, multiplier, count)

        return _event_unless_silent(self.multiplier, event, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on the sum."""
        return self.multiplier * 2.0 * clip


@dataclass(frozen=True)
class GumbelGreedy:
    """`count` times: select one of many scores by the exponential mechanism, then release its gradient entry.

    Gumbel noise of scale multiplier * D on scores of sensitivity D is the exponential mechanism with
    epsilon = 2 / multiplier; the entry gets Gaussian noise of the same multiplier, so both halves of a step
    cost the same rho.

    Guarantee: the events of a step, in this order: a selection of bounded range 2 / multiplier, a Gaussian.
    """

    multiplier: float
    count: int

    @property
    def event(self) -> Any:
        def step(multiplier: float, count: int) -> Any:
            pair = [accounting.selection_event(2.0 / multiplier), accounting.gaussian_event(multiplier)]
            return accounting.compose(pair * count)

        return _event_unless_silent(self.multiplier, step, self.count)

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise on an entry."""
        return self.multiplier * sensitivity.l2

    def choose(self, rng: RandomStream, scores: FloatArray, sensitivity: Sensitivity | None) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        if sensitivity is None:
            return int(np.argmax(scores))
        return int(np.argmax(scores + self.multiplier * sensitivity.l2 * rng.gumbel(scores.size)))

    def noise(self, rng: RandomStream, sensitivity: Sensitivity, size: int) -> FloatArray:
        return rng.normal(size) * self.deviation(sensitivity)


@dataclass(frozen=True)
class LaplaceGreedy:
    """The same with Laplace noise in both places, as the thesis has it, at its true cost.

    Report-noisy-max with Laplace noise of scale multiplier * D is (2 / multiplier)-DP, twice what is printed,
    and not of bounded range: it is booked as a randomised response of that epsilon, which dominates it.

    Guarantee: the events of a step: a randomised response of epsilon 2 / multiplier, a Laplace release.
    """

    multiplier: float
    count: int

    @property
    def event(self) -> Any:
        def step(multiplier: float, count: int) -> Any:
            lie = 2.0 / (1.0 + math.exp(2.0 / multiplier))
            return accounting.compose(
                [accounting.randomised_response_event(lie, 2, count), accounting.laplace_event(multiplier, count)]
            )

        return _event_unless_silent(self.multiplier, step, self.count)

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise on an entry."""
        return math.sqrt(2.0) * self.multiplier * sensitivity.l1

    def choose(self, rng: RandomStream, scores: FloatArray, sensitivity: Sensitivity | None) -> int:
        """The index of the largest score after noise; nothing else of the scores is released."""
        if sensitivity is None:
            return int(np.argmax(scores))
        return int(np.argmax(scores + self.multiplier * sensitivity.l1 * rng.laplace(scores.size)))

    def noise(self, rng: RandomStream, sensitivity: Sensitivity, size: int) -> FloatArray:
        return rng.laplace(size) * self.multiplier * sensitivity.l1


Additive = Gaussian | Laplace


def additive(budget: Budget, share: float, count: int = 1) -> Additive:
    """The additive mechanism that spends a share of the budget on `count` equal releases.

    Shares add in the currency in which the mechanism composes exactly: mu^2 for Gaussian noise, epsilon
    for Laplace noise (pure budgets). An infinite budget gives a mechanism without noise.
    """
    if budget.is_infinite:
        return Gaussian(0.0, count)
    if budget.kind == "pure":
        assert budget.epsilon is not None
        return Laplace(count / (share * budget.epsilon), count)
    return Gaussian(math.sqrt(count / share) / budget.gaussian_mu(), count)


def _event_unless_silent(multiplier: float, make: Any, count: int) -> Any:
    return accounting.non_private_event() if multiplier == 0.0 else make(multiplier, count)
