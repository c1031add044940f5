"""Confidence limits for figures of a population, from noisy sums over rows that were drawn from it.

A candidate u is rejected if the released statistic is further from what u says than the noise and the random draw of
the rows explain. Section 2 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.codec import checked
from discreet._common.types import FloatArray
from discreet.metrics.released_sums import NoisySums

HALVINGS = 60


def last_rejected(rejected: Callable[[float], bool], halvings: int = HALVINGS) -> float:
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
