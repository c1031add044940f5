"""The one release of an evaluation: histograms and sums of bounded columns over the rows, together, with noise.

And confidence limits for figures of the population that the rows were drawn from: a candidate u is rejected if the
released statistic is further from what u says than the noise and the random draw of the rows explain. Sections 1 and 2
of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.codec import checked
from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.data.rows import on_term_grid
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Additive, Sensitivity, additive, histograms_and_fractions
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.scaling.learn import Noise

# Weight of sums that only say how far a figure scatters: they need less precision than the figure itself. A power of
# two, so that multiplying by it is exact.
SPREAD_WEIGHT = 0.25


@dataclass(frozen=True)
class Part:
    """One histogram, or one sum of a column between 0 and 1.

    Attributes
    ----------
    name : str
        What it is called in the release.
    bins : int
        Number of bins of a histogram; 0 for the sum of a column.
    weight : float
        What it is multiplied by before the noise is added; a larger weight means less noise on this part.
    """

    name: str
    bins: int = 0
    weight: float = 1.0

    @property
    def size(self) -> int:
        return max(self.bins, 1)


@dataclass(frozen=True, eq=False)
class Contribution:
    """What the rows add to a part: `amounts` between 0 and 1, and for a histogram the bin that each is added to."""

    amounts: FloatArray
    places: IntArray | None = None

    def total(self, part: Part, weight: FloatArray | None) -> FloatArray:
        """The sum over the rows, each times its weight; exact, since all terms are multiples of a power of two."""
        amounts = np.where(self.amounts >= 0.0, np.minimum(self.amounts, 1.0), 1.0)  # NaN counts as 1
        terms = on_term_grid(amounts if weight is None else amounts * weight)
        if self.places is None:
            return np.array([terms.sum()])
        return np.bincount(self.places, weights=terms, minlength=part.bins).astype(np.float64)


def check_one_each(found: Mapping[str, Contribution], rows: int) -> None:
    """Every row must add one amount to each part: the sensitivity rests on it."""
    for name, added in found.items():
        shapes = {np.shape(values) for values in (added.amounts, added.places) if values is not None}
        if shapes != {(rows,)}:
            raise RuntimeError(f"the rows do not add one amount each to {name}; nothing was released.")


def plan_sums(
    public: Public, budget: Budget, parts: tuple[Part, ...], look: tuple[Part, ...] = (), share: float = 0.0
) -> ReleasePlan:
    """One release of all parts; before it, with a share of the budget, a look that decides limits and bins of them."""
    first = {"look": additive(budget, share)} if look else {}
    mechanisms = first | {"mechanism": additive(budget, WHOLE - share if look else WHOLE)}
    settings = {"parts": parts, "relation": public.relation} | ({"look_parts": look} if look else {})
    return ReleasePlan("evaluation", public, budget, mechanisms, settings)


def sensitivity_of(parts: tuple[Part, ...], relation: Relation) -> Sensitivity:
    """How far a row moves all parts together."""
    histograms = [part.weight for part in parts if part.bins]
    return histograms_and_fractions(relation, histograms, [part.weight for part in parts if not part.bins])


def grid_of(mechanism: Additive, parts: tuple[Part, ...], relation: Relation) -> NoisyGrid:
    """The grid and the noise of all parts."""
    return mechanism.grid(sensitivity_of(parts, relation), sum(part.size for part in parts))


def look_noise(plan: ReleasePlan) -> Noise:
    """The noise in the counts of a look."""
    parts = plan.look_parts
    return Noise(plan.look, sensitivity_of(parts, plan.relation), sum(part.size for part in parts))


def totals_of(parts: tuple[Part, ...], found: Mapping[str, Contribution], weight: FloatArray | None) -> FloatArray:
    """The exact sums of all parts, one after the other. Not private."""
    return np.concatenate([found[part.name].total(part, weight) for part in parts])


def release_sums(
    plan: ReleasePlan, exact: FloatArray, rows: float | None, rng: RandomGenerator, look: bool = False
) -> NoisySums:
    """The sums of what all rows add, with noise; `rows` is their number where that is public.

    Guarantee: costs exactly the event of the plan's mechanism, or of its look.
    """
    parts = plan.look_parts if look else plan.parts
    grid = grid_of(plan.look if look else plan.mechanism, parts, plan.relation)
    scales = np.concatenate([np.full(part.size, part.weight) for part in parts])
    deviation = grid.scale * (math.sqrt(2.0) if grid.law == "laplace" else 1.0)
    values = grid.release(rng, exact * scales) / scales
    return NoisySums(parts, values, deviation / scales, grid.law == "laplace", rows)


@dataclass(frozen=True, eq=False)
class NoisySums:
    """What was released: everything that an evaluation says is computed from this.

    Attributes
    ----------
    parts : tuple of Part
        What the numbers are, in this order.
    values : ndarray
        The numbers.
    deviations : ndarray
        Standard deviation of the noise on each.
    laplace : bool
        Whether the noise is Laplace noise; else it is Gaussian.
    rows : float or None
        The number of rows, where it is public.
    """

    parts: tuple[Part, ...]
    values: FloatArray
    deviations: FloatArray
    laplace: bool
    rows: float | None

    def places(self, name: str) -> slice:
        """Where the numbers of a part are."""
        start = 0
        for part in self.parts:
            if part.name == name:
                return slice(start, start + part.size)
            start += part.size
        raise KeyError(name)

    def of(self, name: str) -> FloatArray:
        """The numbers of a part."""
        return self.values[self.places(name)]

    def one(self, name: str) -> float:
        """The sum of a column."""
        return float(self.of(name)[0])

    def deviation(self, name: str) -> float:
        """Standard deviation of the noise on each number of a part."""
        return float(self.deviations[self.places(name)][0])

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and noise by part, as JSON values."""
        return {
            part.name: {"values": self.of(part.name).tolist(), "noise_std": self.deviation(part.name)}
            for part in self.parts
        }


def last_rejected(rejected: Callable[[float], bool], halvings: int = 60) -> float:
    """How far the points from 0 on are rejected; those that are rejected form an interval.

    Bisection ends at a point that is rejected, so that rounding can only widen an interval of accepted points.
    """
    if not rejected(0.0):
        return 0.0
    if rejected(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


Function = Callable[[float], float]
UNKNOWN = {"value": math.nan, "low": -math.inf, "high": math.inf, "noise_std": math.inf}  # what null stands for
HALVINGS = 40  # of a range of candidates: finer than any noise


def quantile(failure: float, laplace: bool = False) -> float:
    """How many standard deviations an error exceeds with probability `failure`, on either side together.

    Of one Laplace variable it is larger, at small probabilities, than of sums of several or of a normal one.
    """
    from scipy.special import ndtri

    normal = -float(ndtri(0.5 * failure))
    return max(normal, -math.log(failure) / math.sqrt(2.0)) if laplace else normal


@dataclass(frozen=True, eq=False)
class Test:
    """A statistic that is 0 on average at the true u, and decreases in u; and how far it scatters.

    Attributes
    ----------
    statistic : function of u
        Computed from what was released.
    variance : function of u
        Of the draw of the rows and of the noise; the square root must be convex.
    largest : function of u
        What one row can add to the statistic at most.
    slack : function of u
        What terms of second order can add to the statistic.
    """

    __test__ = False  # not a test of pytest

    statistic: Function
    variance: Function
    largest: Function
    slack: Function = lambda u: 0.0

    def limits(self, deviations: float, low: float, high: float) -> tuple[float, float]:
        """The ends of the candidates between `low` and `high` that are not rejected.

        If noise moves the estimate beyond an end, the statistic is taken as if the estimate were that end. This brings
        it nearer to 0 at every candidate, so that no more are rejected, and no interval is short because the estimate
        is far outside.
        """
        width = high - low
        beyond = max(self.statistic(high), 0.0) + min(self.statistic(low), 0.0)

        def rejected(u: float, sign: float) -> bool:
            return sign * (self.statistic(u) - beyond) > self._accepted(u, deviations)

        lower = low + width * last_rejected(lambda s: rejected(low + width * s, 1.0), HALVINGS)
        upper = high - width * last_rejected(lambda s: rejected(high - width * s, -1.0), HALVINGS)
        return lower, upper

    def _accepted(self, u: float, deviations: float) -> float:
        """How far from 0 the statistic may be.

        The variance is estimated, as if there were `deviations` squared more rows at the largest value: where few
        rows decide, an estimate of the variance alone would be too small. Adding the largest value is the
        correction for counts, half the step between them or more.
        """
        most = self.largest(u)
        spread = math.sqrt(max(self.variance(u), 0.0) + (deviations * most) ** 2)
        return deviations * spread + most + self.slack(u)


@dataclass(frozen=True)
class Limits:
    """An estimate with its confidence limits.

    Attributes
    ----------
    value : float
        The estimate, moved between the limits; NaN if nothing is known.
    low, high : float
        The confidence limits.
    noise_std : float
        Standard deviation of the noise in the value; the random draw of the rows is not in it.

    Examples
    --------
    See `evaluate`.
    """

    value: float
    low: float
    high: float
    noise_std: float

    def to_dict(self) -> dict[str, float | None]:
        """The numbers as JSON values; what is not known is null."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, content: Any) -> Limits:
        """What `to_dict` wrote; anything else is a ValueError."""
        found = checked(dict.fromkeys(UNKNOWN, float | None), tuple(UNKNOWN), content, "a figure")
        limits = cls(**{name: UNKNOWN[name] if number is None else number for name, number in found.items()})
        if limits.low > limits.high or limits.noise_std < 0.0:
            raise ValueError("the limits of a figure are not in order.")
        return limits

    def texts(self) -> list[str]:
        """Value, limits and noise for people; a dash where nothing is known."""
        numbers = (self.value, self.low, self.high, self.noise_std)
        return [f"{number:.4g}" if math.isfinite(number) else "-" for number in numbers]

    def scaled(self, factor: float, shift: float = 0.0) -> Limits:
        """The same for a linear function of the figure; a negative factor turns the limits round."""
        ends = sorted((shift + factor * self.low, shift + factor * self.high))
        return Limits(shift + factor * self.value, ends[0], ends[1], abs(factor) * self.noise_std)


def limits_of(test: Test, value: float, noise_std: float, deviations: float, low: float, high: float) -> Limits:
    """The limits of a test, with an estimate that is moved between them."""
    lower, upper = test.limits(deviations, low, high)
    if math.isnan(value) or not noise_std < math.inf:
        return Limits(math.nan, low, high, math.inf)
    return Limits(float(np.clip(value, lower, upper)), lower, upper, noise_std)


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of disjoint bins, which every row is in one of; `rows` is their sum, where that is public."""

    values: FloatArray
    deviation: float
    laplace: bool
    rows: float | None

    @classmethod
    def of(cls, sums: NoisySums, name: str) -> Counts:
        """The counts of a histogram, moved so that they add up to the number of rows where that is public."""
        values = sums.of(name)
        if sums.rows is not None:
            values = values + (sums.rows - values.sum()) / values.size
        return cls(values, sums.deviation(name), sums.laplace, sums.rows)

    @property
    def total(self) -> float:
        """The number of rows, exact or with noise."""
        return float(self.values.sum()) if self.rows is None else self.rows

    def noise(self, amounts: FloatArray) -> float:
        """Variance of the noise in the sum of these multiples of the counts; a known sum of all takes some away."""
        centre = 0.0 if self.rows is None else float(amounts.mean())
        return self.deviation**2 * float(np.square(amounts - centre).sum())

    def mean(
        self,
        amounts: FloatArray,
        base: FloatArray,
        failure: float,
        low: float = 0.0,
        high: float = 1.0,
        slack: float = 0.0,
    ) -> Limits:
        """The mean of `amounts`, one for each bin, over the rows in the bins of `base`; amounts are 0 elsewhere."""
        whole = float(self.values @ base)
        positive = np.maximum(self.values, 0.0)

        def noise_variance(u: float) -> float:
            return self.noise(amounts - u * base)

        test = Test(
            statistic=lambda u: float(amounts @ self.values) - u * whole,
            variance=lambda u: float(np.square(amounts - u * base) @ positive) + noise_variance(u),
            largest=lambda u: float(np.abs(amounts - u * base).max()),
            slack=lambda _: slack,
        )
        value = float(amounts @ self.values) / whole if whole > 0.0 else math.nan
        spread = math.sqrt(noise_variance(value)) / whole if whole > 0.0 else math.inf
        return limits_of(test, value, spread, quantile(failure, self.laplace), low, high)
