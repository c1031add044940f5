"""What is released about a regressor, and the figures that follow: mean squared error and R2.

Section 4 of docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.metrics import released_sums as released
from discreet.metrics.released_sums import Limits

LARGEST_RATIO = 1e6  # of the error of the model to that of a constant; beyond, nothing is said
FIGURES = ("squared_error", "target", "centred_2")
SPREADS = ("squared_error_2", "centred_3", "centred_4", "error_target", "error_centred_2")


@dataclass(frozen=True, eq=False)
class RegressorMeasure:
    """The columns of a regressor; all of it is public.

    Attributes
    ----------
    model : object
        The regressor.
    low, high : float
        Limits of the target, to which targets and predictions are clipped.
    largest_error : float
        Errors are clipped to this; the width of the limits clips none.
    counted : bool
        Whether the number of rows is released with the rest, since it is not public.
    """

    model: Any
    low: float
    high: float
    largest_error: float
    counted: bool

    @property
    def error_unit(self) -> float:
        """The largest squared error, in units of the squared width of the limits."""
        return (self.largest_error / (self.high - self.low)) ** 2

    @property
    def parts(self) -> tuple[released.Part, ...]:
        """What is released."""
        parts = [released.Part(name) for name in FIGURES] + [
            released.Part(name, weight=released.SPREAD_WEIGHT) for name in SPREADS
        ]
        return tuple(parts + [released.Part("rows")] * self.counted)

    def contributions(self, X: Any, y: Any) -> dict[str, released.Contribution]:
        """What every row adds: powers of its squared error and of its target, all between 0 and 1."""
        target, predicted = self._unit(y), self._unit(self.model.predict(X))
        error = np.square(target - predicted) / self.error_unit
        error = np.where(error >= 0.0, np.minimum(error, 1.0), 1.0)  # NaN counts as the worst
        centred = 2.0 * target - 1.0
        columns = {
            "squared_error": error,
            "target": target,
            "centred_2": centred**2,
            "squared_error_2": error**2,
            "centred_3": 0.5 * (centred**3 + 1.0),
            "centred_4": centred**4,
            "error_target": error * target,
            "error_centred_2": error * centred**2,
            "rows": np.ones(target.size),
        }
        return {name: released.Contribution(column) for name, column in columns.items()}

    def _unit(self, values: Any) -> Any:
        """Values between the limits, as numbers from 0 to 1."""
        return (np.clip(np.asarray(values, dtype=np.float64), self.low, self.high) - self.low) / (self.high - self.low)


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy sums over the rows of e, the squared error, and of w, the squared distance of the target from its mean.

    Both are in units of the squared width of the limits, of which the largest squared error is `error_unit`.
    """

    sums: released.NoisySums
    error_unit: float

    def _unit(self, name: str) -> float:
        return self.error_unit ** {"squared_error_2": 2}.get(name, 1) if "error" in name else 1.0

    def one(self, name: str) -> float:
        """A sum, with errors in units of the squared width."""
        return self._unit(name) * self.sums.one(name)

    def deviation(self, name: str) -> float:
        """Standard deviation of its noise."""
        return self._unit(name) * self.sums.deviation(name)

    @cached_property
    def largest_distance(self) -> float:
        """The largest w that a target between the limits can have."""
        return (0.5 + 0.5 * abs(self.mean)) ** 2

    @cached_property
    def rows(self) -> float:
        return self.sums.one("rows") if self.sums.rows is None else self.sums.rows

    @cached_property
    def rows_noise(self) -> float:
        """Standard deviation of the noise in the number of rows."""
        return self.deviation("rows") if self.sums.rows is None else 0.0

    @cached_property
    def error(self) -> float:
        return self.one("squared_error")

    @cached_property
    def mean(self) -> float:
        """The mean of the centred target, between -1 and 1."""
        return float(np.clip((2.0 * self.one("target") - self.rows) / max(self.rows, 1.0), -1.0, 1.0))

    @cached_property
    def distance(self) -> float:
        """The sum of w."""
        first = 2.0 * self.one("target") - self.rows
        return 0.25 * (self.one("centred_2") - first * first / max(self.rows, 1.0))

    def noise(self, ratio: float, shift: float = 0.0, errors: float = 1.0) -> float:
        """Variance of the noise in errors * error - ratio * distance - shift * rows, to first order."""
        m = self.mean
        rows = abs(ratio * (0.5 * m + 0.25 * m * m)) + abs(shift)
        terms = (
            errors * self.deviation("squared_error"),
            0.25 * ratio * self.deviation("centred_2"),
            ratio * m * self.deviation("target"),
            rows * self.rows_noise,
        )
        return math.fsum(term * term for term in terms)

    def slack(self, ratio: float, deviations: float) -> float:
        """What the error of the mean can add to ratio * distance: a term of second order."""
        noise = self.deviation("target") ** 2 + 0.25 * self.rows_noise**2
        return ratio * deviations**2 * (max(self.distance, 0.0) + noise) / max(self.rows, 1.0)

    @cached_property
    def squares(self) -> tuple[float, float, float]:
        """Sums of e^2, e w and w^2, on the side of a larger variance of e - r w by a deviation of their noise."""
        m, one, spread = self.mean, self.one, self.deviation
        first, third = 2.0 * one("target") - self.rows, 2.0 * one("centred_3") - self.rows
        powers = one("centred_4") - 4.0 * m * third + 6.0 * m**2 * one("centred_2")
        powers += -4.0 * m**3 * first + m**4 * self.rows
        noise = math.hypot(spread("centred_4"), 8.0 * m * spread("centred_3"), 6.0 * m**2 * spread("centred_2"))
        products = one("error_centred_2") - 2.0 * m * (2.0 * one("error_target") - self.error) + m**2 * self.error
        product_noise = math.hypot(spread("error_centred_2"), 4.0 * m * spread("error_target"))
        errors = max(one("squared_error_2") + spread("squared_error_2"), self.error**2 / max(self.rows, 1.0))
        distances = max((powers + noise) / 16.0, self.distance**2 / max(self.rows, 1.0))
        most = math.sqrt(errors * distances)
        return errors, float(np.clip((products - product_noise) / 4.0, -most, most)), distances


def regression_figures(measure: RegressorMeasure, sums: released.NoisySums, failure: float) -> dict[str, Limits]:
    """Mean squared error of the model and of the mean, by how much the first is smaller, and R2."""
    moments, deviations = Moments(sums, measure.error_unit), released.quantile(failure, sums.laplace)
    errors, products, distances = moments.squares
    unit = (measure.high - measure.low) ** 2
    gain = moments.distance - moments.error
    gain_squares = max(errors - 2.0 * products + distances, gain**2 / max(moments.rows, 1.0))
    return {
        "r2": _r2(moments, deviations),
        "mean_squared_error": _mean(moments, moments.error, errors, (1.0, 0.0), deviations).scaled(unit),
        "mean_squared_error_of_constant": _mean(moments, moments.distance, distances, (0.0, 1.0), deviations).scaled(
            unit
        ),
        "mean_squared_error_gain": _mean(moments, gain, gain_squares, (1.0, 1.0), deviations, -1.0).scaled(unit),
    }


def _mean(
    moments: Moments,
    total: float,
    squares: float,
    uses: tuple[float, float],
    deviations: float,
    low: float = 0.0,
) -> Limits:
    """The limits of total / rows; `squares` is the sum of the squares of what the rows add to the total.

    `uses` says how often the error and the distance are in the total.
    """
    errors, ratio = uses
    ends = errors * moments.error_unit, ratio * moments.largest_distance  # what one row can add, with either sign
    lowest, highest = (-ends[0], ends[1]) if low < 0.0 else (0.0, max(ends))
    rows, value = moments.rows, total / moments.rows if moments.rows > 0.0 else math.nan
    test = released.Test(
        statistic=lambda u: total - u * rows,
        variance=lambda u: squares - 2.0 * u * total + u * u * max(rows, 0.0) + moments.noise(ratio, u, errors),
        largest=lambda u: max(highest - u, u - lowest),
        slack=lambda _: moments.slack(ratio, deviations),
    )
    spread = math.sqrt(moments.noise(ratio, 0.0, errors)) / rows if rows > 0.0 else math.inf
    return released.limits_of(test, value, spread, deviations, low, 1.0)


def _r2(moments: Moments, deviations: float) -> Limits:
    """1 less the ratio of the two errors; minus infinity as lower limit where the noise hides how targets vary."""
    errors, products, distances = moments.squares
    test = released.Test(
        statistic=lambda r: moments.error - r * moments.distance,
        variance=lambda r: errors - 2.0 * r * products + r * r * distances + moments.noise(r),
        largest=lambda r: max(moments.error_unit, r * moments.largest_distance),
        slack=lambda r: moments.slack(r, deviations),
    )
    low, high = test.limits(deviations, 0.0, LARGEST_RATIO)
    high = math.inf if high == LARGEST_RATIO else high
    if not moments.distance > 0.0:
        return Limits(math.nan, -math.inf, 1.0, math.inf)
    ratio = moments.error / moments.distance
    spread = math.sqrt(moments.noise(ratio)) / moments.distance
    return Limits(1.0 - float(np.clip(ratio, low, high)), 1.0 - high, 1.0 - low, spread)
