"""What is released about a regressor, and the figures that follow: errors of the model and of a constant, R2 or D2.

Both errors are clipped alike, at a deviance that a look at the rows has shown privately. Section 4 of
docs/guarantees/evaluation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.metrics import released_sums as released
from discreet.metrics.deviances import SQUARED, Deviance
from discreet.metrics.released_sums import Limits
from discreet.scaling import histograms
from discreet.scaling.learn import TARGET_TAIL, Noise

LARGEST_RATIO = 1e6  # of the error of the model to that of a constant; beyond, nothing is said
LOOK_SHARE = 0.2  # of the budget, to learn how large errors are
OCTAVES = -histograms.LOWEST_EXPONENT  # of deviances below the largest possible one that the look tells apart
TARGET_WEIGHT = 0.5  # of the sum that says where the mean lies: it enters squared
FIGURES = ("error", "distance")
SPREADS = ("error_2", "error_distance", "distance_2")


@dataclass(frozen=True, eq=False)
class RegressorMeasure:
    """The columns of a regressor; all of it is public, or released before.

    Attributes
    ----------
    model : object
        The regressor.
    low, high : float
        Limits to which targets and predictions are clipped; infinite where none is declared.
    centre : float
        About where targets lie: the constant that errors of a constant are summed for.
    most : float
        The largest deviance that is thought possible.
    counted : bool
        Whether the number of rows is released with the rest, since it is not public.
    deviance : Deviance
        What an error is.
    largest : float or None
        The deviance to which errors are clipped; None: it is learned first.
    """

    model: Any
    low: float
    high: float
    centre: float
    most: float
    counted: bool
    deviance: Deviance = SQUARED
    largest: float | None = None

    @property
    def look(self) -> ErrorLook | None:
        """What is to be learned first; None if nothing is."""
        return ErrorLook(self) if self.largest is None else None

    def after(self, sums: released.NoisySums, noise: Noise) -> RegressorMeasure:
        """The measure with the largest deviance that a look has shown."""
        ends = [_end(sums.of(part.name), noise) for part in ErrorLook(self).parts]
        return replace(self, largest=(max(ends) or 1.0) * self.most)

    @property
    def unit(self) -> float:
        """The largest deviance; before it is learned, the largest possible one."""
        return self.most if self.largest is None else self.largest

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The interval to which targets are clipped for the error of the constant."""
        return self.deviance.interval(self.centre, self.unit)

    @property
    def parts(self) -> tuple[released.Part, ...]:
        """What is released."""
        parts = [released.Part(name) for name in FIGURES] + [released.Part("target", weight=TARGET_WEIGHT)]
        parts += [released.Part(name, weight=released.SPREAD_WEIGHT) for name in SPREADS]
        return tuple(parts + [released.Part("rows")] * self.counted)

    def deviances(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Deviances of the targets from the predictions and from the centre, and the targets."""
        target, predicted = (
            np.clip(np.asarray(each, dtype=np.float64), self.low, self.high) for each in (y, self.model.predict(X))
        )
        return self.deviance.of(target, predicted), self.deviance.of(target, self.centre), target

    def contributions(self, X: Any, y: Any) -> dict[str, released.Contribution]:
        """What every row adds: both errors, their products, and its target, all between 0 and 1."""
        *found, target = self.deviances(X, y)
        error, distance = (_fractions(each / self.unit) for each in found)
        low, high = self.ends
        columns = {
            "error": error,
            "distance": distance,
            "target": (np.clip(target, low, high) - low) / (high - low),
            "error_2": error**2,
            "error_distance": error * distance,
            "distance_2": distance**2,
            "rows": np.ones(target.size),
        }
        return {name: released.Contribution(column) for name, column in columns.items()}


@dataclass(frozen=True, eq=False)
class ErrorLook:
    """Rows by the binary exponent of the errors of the model and of a constant, over the largest possible one."""

    measure: RegressorMeasure

    parts = (released.Part("errors", OCTAVES + 1), released.Part("distances", OCTAVES + 1))

    @property
    def model(self) -> Any:
        return self.measure.model

    def contributions(self, X: Any, y: Any) -> dict[str, released.Contribution]:
        """The bin of each row; the last one holds those without error."""
        found = self.measure.deviances(X, y)[:2]
        places = [_octaves(_fractions(each / self.measure.most)) for each in found]
        ones = np.ones(places[0].size)
        return {part.name: released.Contribution(ones, each) for part, each in zip(self.parts, places, strict=True)}


def _fractions(values: FloatArray) -> FloatArray:
    """Values moved between 0 and 1; NaN counts as the worst."""
    return np.where(values >= 0.0, np.minimum(values, 1.0), 1.0)


def _octaves(fractions: FloatArray) -> Any:
    """The bin of each number between 0 and 1; the last of the octaves ends at 1."""
    places = histograms.exponent_bins(fractions).astype(np.int64)
    return np.where(fractions == 0.0, OCTAVES, np.minimum(places, OCTAVES - 1))


def _end(counts: FloatArray, noise: Noise) -> float:
    """Where the bulk of the rows ends, over the largest possible deviance; 0 if none stands out of the noise."""
    levels = noise.levels(known=False, tail=TARGET_TAIL)
    if noise.mechanism.multiplier == 0.0:
        levels = levels._replace(windows=())
    return histograms.radius_of(counts, *levels)


def share_beyond(
    measure: RegressorMeasure, seen: released.NoisySums, sums: released.NoisySums, failure: float
) -> float:
    """An upper limit for the share of rows whose errors are clipped, of the model or of the constant, from a look.

    Where the number of rows is not public it is that of the sums, less its noise: rows of weight 0 have no share.
    """
    assert measure.largest is not None
    first = OCTAVES + round(math.log2(measure.largest / measure.most))
    deviations = released.quantile(0.5 * failure, sums.laplace)
    rows = sums.one("rows") - deviations * sums.deviation("rows") if sums.rows is None else sums.rows
    found: list[float] = []
    for part in ErrorLook(measure).parts:
        counts = seen.of(part.name)[first:OCTAVES]
        found.append(counts.sum() + deviations * seen.deviation(part.name) * math.sqrt(counts.size))
    return float(np.clip(max(found) / rows, 0.0, 1.0)) if rows > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Errors:
    """Noisy sums over the rows, in units of the largest deviance: e of the model's errors, w of the constant's."""

    measure: RegressorMeasure
    sums: released.NoisySums

    @cached_property
    def rows(self) -> float:
        return self.sums.one("rows") if self.sums.rows is None else self.sums.rows

    @cached_property
    def rows_noise(self) -> float:
        """Standard deviation of the noise in the number of rows."""
        return self.sums.deviation("rows") if self.sums.rows is None else 0.0

    @cached_property
    def error(self) -> float:
        return self.sums.one("error")

    @cached_property
    def mean(self) -> float:
        """The mean of the clipped target."""
        low, high = self.measure.ends
        return low + (high - low) * float(np.clip(self.sums.one("target") / max(self.rows, 1.0), 0.0, 1.0))

    @cached_property
    def shift(self) -> float:
        """How much larger the mean of the errors of the centre is than that of the errors of the mean."""
        return float(self.measure.deviance.of(self.mean, self.measure.centre)) / self.measure.unit

    @cached_property
    def slope(self) -> float:
        """Of the shift, in the mean."""
        return self.measure.deviance.slope(self.mean, self.measure.centre) / self.measure.unit

    @cached_property
    def distance(self) -> float:
        """The sum of the errors of the mean."""
        return self.sums.one("distance") - self.rows * self.shift

    @cached_property
    def scatter(self) -> float:
        """An upper bound of the sum of squared distances of the targets from their mean."""
        low, high = self.measure.ends
        most = self.rows * (high - self.mean) * (self.mean - low)
        known = self.measure.unit * self.distance * self.measure.deviance.variance(high)
        return max(min(most, known), 0.0)

    def noise(self, ratio: float, shift: float = 0.0, errors: float = 1.0) -> float:
        """Variance of the noise in errors * error - ratio * distance - shift * rows, to first order."""
        low, high = self.measure.ends
        rows = abs(ratio * (self.shift - self.slope * (self.mean - low))) + abs(shift)
        terms = (
            errors * self.sums.deviation("error"),
            ratio * self.sums.deviation("distance"),
            ratio * self.slope * (high - low) * self.sums.deviation("target"),
            rows * self.rows_noise,
        )
        return math.fsum(term * term for term in terms)

    def slack(self, ratio: float, deviations: float) -> float:
        """What the error of the mean can add to ratio * distance: a term of second order."""
        low, high = self.measure.ends
        noise = ((high - low) * self.sums.deviation("target")) ** 2 + ((self.mean - low) * self.rows_noise) ** 2
        unit = self.measure.unit * max(self.measure.deviance.variance(self.mean), 1e-300)
        return ratio * deviations**2 * (self.scatter + noise) / (max(self.rows, 1.0) * unit)

    @cached_property
    def _products(self) -> FloatArray:
        """Sums of e^2, e w and w^2 as a matrix, from which noise may not leave negative eigenvalues."""
        names = np.array([["error_2", "error_distance"], ["error_distance", "distance_2"]])
        values, vectors = np.linalg.eigh(np.vectorize(self.sums.one)(names))
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def squares(self, errors: float, ratio: float) -> float:
        """Sum of the squares of what the rows add to errors * error - ratio * distance; see the page."""
        use, b = np.array([errors, -ratio]), ratio * self.shift
        total = errors * self.error - ratio * self.sums.one("distance")
        near = float(use @ self._products @ use) + 2.0 * b * total + self.rows * b * b
        near = max(near, (total + self.rows * b) ** 2 / max(self.rows, 1.0), 0.0)
        return (math.sqrt(near) + abs(ratio * self.slope) * math.sqrt(self.scatter)) ** 2


def regression_figures(measure: RegressorMeasure, sums: released.NoisySums, failure: float) -> dict[str, Limits]:
    """R2 or D2, the mean error of the model and of the mean, and by how much the first is smaller."""
    found, deviations = Errors(measure, sums), released.quantile(failure, sums.laplace)
    ratio, error = ("r2", "mean_squared_error") if measure.deviance is SQUARED else ("d2", "mean_deviance")
    means = {
        error: _mean(found, (1.0, 0.0), deviations),
        f"{error}_of_constant": _mean(found, (0.0, -1.0), deviations),
        f"{error}_gain": _mean(found, (-1.0, -1.0), deviations, -1.0),
    }
    return {ratio: _ratio(found, deviations)} | {name: each.scaled(measure.unit) for name, each in means.items()}


def _mean(found: Errors, uses: tuple[float, float], deviations: float, low: float = 0.0) -> Limits:
    """The limits of a mean; `uses` says how often error and distance are in it, the distance with the other sign."""
    errors, ratio = uses
    total, rows, squares = errors * found.error - ratio * found.distance, found.rows, found.squares(*uses)
    test = released.Test(
        statistic=lambda u: total - u * rows,
        variance=lambda u: squares - 2.0 * u * total + u * u * max(rows, 0.0) + found.noise(ratio, u, errors),
        largest=lambda u: max(1.0 - u, u - low),
        slack=lambda _: found.slack(abs(ratio), deviations),
    )
    value = total / rows if rows > 0.0 else math.nan
    spread = math.sqrt(found.noise(ratio, 0.0, errors)) / rows if rows > 0.0 else math.inf
    return released.limits_of(test, value, spread, deviations, low, 1.0)


def _ratio(found: Errors, deviations: float) -> Limits:
    """1 less the ratio of the two errors; minus infinity as lower limit where the noise hides how targets vary."""
    test = released.Test(
        statistic=lambda r: found.error - r * found.distance,
        variance=lambda r: found.squares(1.0, r) + found.noise(r),
        largest=lambda r: max(1.0, r),
        slack=lambda r: found.slack(r, deviations),
    )
    low, high = test.limits(deviations, 0.0, LARGEST_RATIO)
    high = math.inf if high == LARGEST_RATIO else high
    if not found.distance > 0.0:
        return Limits(math.nan, -math.inf, 1.0, math.inf)
    ratio = found.error / found.distance
    spread = math.sqrt(found.noise(ratio)) / found.distance
    return Limits(1.0 - float(np.clip(ratio, low, high)), 1.0 - high, 1.0 - low, spread)
