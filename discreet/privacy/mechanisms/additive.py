"""What a mechanism is, and noise that is added, on a grid: Gaussian and Laplace, also of one budget in fixed shares.

Every mechanism is one frozen object that draws the random numbers of a release and states its privacy cost. It has a
`multiplier`, the ratio of its noise to the sensitivity of what it protects, and an `event`, the cost that follows from
the multiplier. It has no rows and no sensitivity of its own: those come with each draw. Four families differ in what
they draw:

- additive (`AdditiveMechanism`): `release(rng, value, sensitivity)` returns the value with noise; `grid` is for sums
  whose terms are rounded one by one, and for kernels that add the noise themselves;
- sampled (`SampledMechanism` in aggregation.py): `batches(rng, rows, steps)` draws rows, `grid(clip, entries, rows)`
  the noise on their clipped sums, so that the sampling rate of the draw is the one in the event;
- running sums (`RunningSumGaussian` in aggregation.py): correlated noise on every partial sum of a sequence;
- selections: `choose` or `draw` returns one of many candidates, with a method for each kind of candidate.

Numbers leave the rows on a `NoisyGrid` and in no other way. A sum is rounded to a multiple of the grid's step, a power
of two, and the noise is a normal or Laplace number that is rounded to a multiple as well. As the sum is on the grid
already, rounding the noise is the same as rounding the sum of both: the result is a function of the sum with continuous
noise, and every theorem about that holds to the last bit. The step is fixed before the rows are read. Proof:
docs/guarantees/mechanisms.md.

Nobody outside discreet/privacy asks the generator for noise or for Poisson samples of rows: tests/test_architecture.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Sensitivity

Law = Literal["normal", "laplace", "spherical"]
Size = int | tuple[int, ...]

FINEST = 2.0**-30  # step over noise: finer ones would make the draws slower and nothing better
EXACT = 2.0**-50  # step over the sum of the rows' sensitivities: partial sums stay below 2^53 steps, so they are exact
SMALLEST_EXPONENT = -960  # of a step: multiples and quotients of steps are normal numbers


@dataclass(frozen=True)
class NoisyGrid:
    """Where the releases of one mechanism lie, and their noise.

    Attributes
    ----------
    step : float
        Distance between neighbouring points, a power of two; 0: no noise, and nothing is rounded.
    scale : float
        Standard deviation of normal noise or scale of Laplace noise, for the sum as rounded.
    law : {"normal", "laplace", "spherical"}
        Independent entries, or a vector whose density is proportional to exp(-norm / scale).
    sensitivity : float
        How far the rounded value may move between neighbouring tables, in L1 for "laplace", else in L2.
    """

    step: float
    scale: float
    law: Law
    sensitivity: float = math.inf

    @property
    def is_exact(self) -> bool:
        """Whether there is neither noise nor rounding: an infinite budget."""
        return self.step == 0.0

    def noise(self, rng: RandomGenerator, size: Size) -> FloatArray:
        """Independent multiples of the step, for sums that are multiples of it."""
        if self.is_exact:
            return np.zeros(size)
        scale = self.scale / self.step
        if self.law == "spherical":  # a normal vector whose variance has the chi-squared law with one more degree
            scale *= float(np.linalg.norm(rng.normal(math.prod(np.atleast_1d(size)) + 1)))
        draws = rng.rounded_draws("laplace" if self.law == "laplace" else "normal", scale, size)
        draws *= self.step
        return draws

    def nearest(self, value: FloatArray) -> FloatArray:
        """The point of the grid nearest to each entry; dividing by a power of two is exact."""
        return value if self.is_exact else np.rint(value / self.step) * self.step

    def release(self, rng: RandomGenerator, value: FloatArray) -> FloatArray:
        """The value, rounded to the grid, with fresh noise on every entry.

        Guarantee: costs one release of the mechanism that made the grid, if the value moves by no more than the
        sensitivity given there.
        """
        return self.nearest(value) + self.noise(rng, value.shape)


def noisy_grid(law: Law, multiplier: float, sensitivity: float, rounding: float, rows: float) -> NoisyGrid:
    """The grid for noise of `multiplier` times a sensitivity.

    Parameters
    ----------
    law : {"normal", "laplace", "spherical"}
    multiplier : float
        Noise over sensitivity; 0: none.
    sensitivity : float
        How far the value can move before it is rounded.
    rounding : float
        How much further the rounded value can move, in steps: sqrt(entries) in L2, entries in L1.
    rows : float
        How many rows there are, about; sums of that many rounded contributions are then exact.

    Guarantee: the noise has `multiplier` times the sensitivity of the rounded value, which is at most
    sensitivity + step * rounding.
    """
    if multiplier == 0.0 or sensitivity == 0.0:
        return NoisyGrid(0.0, 0.0, law, sensitivity)
    exponent = math.ceil(math.log2(sensitivity) + math.log2(max(multiplier * FINEST, rows * EXACT)))
    # A step may not vanish: below the smallest power the grid is coarse, and the noise large, for the sensitivity.
    step = math.ldexp(1.0, max(exponent, SMALLEST_EXPONENT))
    rounded = sensitivity + step * rounding
    if not multiplier * rounded < math.inf:
        raise OverflowError("the noise of this release is too large for double precision.")
    return NoisyGrid(step, multiplier * rounded, law, rounded)


class Mechanism(Protocol):
    """What a plan needs to know of every mechanism.

    Attributes
    ----------
    multiplier : float
        Noise over sensitivity; 0 stands for no noise, which only an infinite budget allows.
    event : DpEvent
        The cost of all draws that the mechanism was made for.
    """

    @property
    def multiplier(self) -> float: ...

    @property
    def event(self) -> Any: ...


class PricedByMultiplier(ABC):
    """A mechanism whose cost follows from its multiplier."""

    multiplier: float

    @property
    def event(self) -> Any:
        """The cost of all draws; without noise one that no finite budget covers."""
        return accounting.non_private_event() if self.multiplier == 0.0 else self._cost()

    @abstractmethod
    def _cost(self) -> Any:
        """The event of a multiplier above 0."""


class AdditiveMechanism(PricedByMultiplier):
    """A mechanism that adds noise to a vector."""

    @abstractmethod
    def grid(self, sensitivity: Sensitivity, entries: int, rows: float = 1, loose: float = 1.0) -> NoisyGrid:
        """The grid and the noise of one release.

        Parameters
        ----------
        sensitivity : Sensitivity
            How far the value can move between neighbouring tables, before anything is rounded.
        entries : int
            How many numbers are released.
        rows : float
            The public number of rows, for sums whose terms the caller rounds to the grid: they are then exact in
            any order. A sum that is rounded as a whole does not need it.
        loose : float
            How many steps further, per entry, rounding can move the value; 1 for entries or terms that are rounded to
            the nearest point.
        """

    def release(self, rng: RandomGenerator, value: FloatArray, sensitivity: Sensitivity) -> FloatArray:
        """The value with fresh noise on every entry.

        Parameters
        ----------
        rng : RandomGenerator
        value : ndarray
            An exact function of the rows; it is left as it is.
        sensitivity : Sensitivity
            How far the value can move between neighbouring tables.

        Returns
        -------
        ndarray of the same shape

        Guarantee: costs one of the releases that `event` counts, if the value moves by no more than `sensitivity`.
        """
        return self.grid(sensitivity, value.size).release(rng, value)


def noise_scale(multiplier: float, size: float) -> float:
    """The multiplier times a sensitivity; without noise 0, also where nothing is clipped and the size is infinite."""
    return multiplier * size if multiplier > 0.0 else 0.0


@dataclass(frozen=True)
class Gaussian(AdditiveMechanism):
    """Adds N(0, (multiplier * l2 sensitivity)^2) to every entry, `count` times.

    Guarantee: mu-Gaussian DP with mu = sqrt(count) / multiplier, for adaptively chosen queries.
    """

    multiplier: float
    count: int = 1

    def _cost(self) -> Any:
        return accounting.gaussian_event(self.multiplier, self.count)

    def scale(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the noise."""
        return noise_scale(self.multiplier, sensitivity.l2)

    deviation = scale

    def together(self, count: int) -> Gaussian:
        """So many of the releases, all asked the same: their mean has the law of one release with less noise.

        Guarantee: it costs `count` of the releases that `event` counts: docs/guarantees/adaptive.md.
        """
        return Gaussian(self.multiplier / math.sqrt(count))

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

    def _cost(self) -> Any:
        return accounting.laplace_event(self.multiplier, self.count)

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


@dataclass(frozen=True)
class BudgetSplit:
    """Gaussian releases that each take their share of what one release of this multiplier would cost.

    Guarantee: if every part with a positive share is used once, mu-Gaussian DP with mu = sqrt(sum of the
    shares) / multiplier, for adaptively chosen queries. A share of 0 stands for a release that is not made.
    """

    multiplier: float
    shares: tuple[float, ...]

    @property
    def event(self) -> Any:
        used = (k for k, share in enumerate(self.shares) if share > 0.0)
        return accounting.compose(list(map(attrgetter("event"), map(self.part, used))))

    @property
    def whole(self) -> Gaussian:
        """The release that would cost as much as all parts together; its noise is public and serves as a unit."""
        return Gaussian(self.multiplier / math.sqrt(sum(self.shares)))

    def part(self, k: int) -> Gaussian:
        """The mechanism of release k."""
        return Gaussian(self.multiplier / math.sqrt(self.shares[k]))
