"""PrivateQuantiles: quantiles of every column, and the map to uniform scores that they define.

An interval has equally spaced points, fixed in advance, and `QuantileSelection` selects one of them by its rank. Points
between two neighbouring values share one rank, so they are kept as runs. What is released is a function of an integer:
its last digits hold no trace of the values around it. Theorem and proof: docs/guarantees/preprocessing.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.data.public import Public
from discreet.data.rows import Data, column, exact_weights
from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.ranges import declared_or_learned, plan_range
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import QuantileSelection
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import ReleasePlan

# More points resolve wide ranges better, and make it harder for a value that many rows share to be found.
STEPS = 2**40
POINTS = STEPS + 1  # both ends are points


def place_of(values: FloatArray, low: float, high: float) -> IntArray:
    """The number of the point nearest to each value, clipped to [low, high]; low must be below high."""
    fraction = (np.clip(values, low, high) - low) / (high - low)
    return np.rint(fraction * STEPS).astype(np.int64)


def value_of(places: IntArray, low: float, high: float) -> FloatArray:
    """The values at the points with these numbers; whole numbers are met exactly in ranges of powers of two."""
    return np.clip(low + places / STEPS * (high - low), low, high)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of neighbouring points with the same ranks: the empty stretches, and each point that has values.

    `below` is the weight at points before a point of the run, `upto` that weight with the point's own included.
    """

    first: IntArray
    points: IntArray
    below: FloatArray
    upto: FloatArray
    total: float

    @classmethod
    def around(cls, places: IntArray, weight: FloatArray | None) -> Runs:
        """The runs that rows at these points leave."""
        occupied, where = np.unique(places, return_inverse=True)
        mass = np.bincount(where, weights=exact_weights(weight), minlength=occupied.size)
        reached = np.concatenate([[0.0], np.cumsum(mass)])
        starts, ends = np.append(0, occupied + 1), np.append(occupied, POINTS)
        return cls(
            first=np.concatenate([starts, occupied]),
            points=np.concatenate([ends - starts, np.ones_like(occupied)]),
            below=np.concatenate([reached, reached[:-1]]),
            upto=np.concatenate([reached, reached[1:]]),
            total=float(reached[-1]),
        )

    def rank_error(self, quantile: float) -> FloatArray:
        """How far quantile * total lies outside [below, upto], for the points of each run."""
        wanted = quantile * self.total
        return np.maximum(0.0, np.maximum(self.below - wanted, wanted - self.upto))


RANGE_SHARE = 0.25  # of the budget, where bounds are not declared


def plan_quantiles(public: Public, budget: Budget, quantiles: tuple[float, ...]) -> ReleasePlan:
    """Ranges from a quarter of the budget where none are declared, the rest for equally noisy selections."""
    count = public.columns * len(quantiles)
    ranges = None if public.bounded else plan_range(public, budget, RANGE_SHARE)

    def with_noise(multiplier: float) -> ReleasePlan:
        parts = {"ranges": ranges, "selection": QuantileSelection(multiplier, count)}
        return ReleasePlan("quantiles", public, budget, parts, {"quantiles": quantiles})

    if budget.is_infinite:
        return with_noise(0.0)
    if budget.kind == "gdp":
        raise ValueError("epsilon is a Gaussian DP budget, but private selections have no cost in Gaussian DP.")
    return with_noise(accounting.calibrate(lambda noise: with_noise(noise).event, budget, public.relation))


def learn_quantiles(
    plan: ReleasePlan, low: FloatArray, high: FloatArray, data: Data, rng: RandomGenerator
) -> FloatArray:
    """The quantiles of the columns between low and high, (quantiles, columns), increasing.

    Guarantee: costs at most the event of `plan.selection`, whatever low and high are; a column without a range is
    skipped.
    """
    found = np.tile(low, (len(plan.quantiles), 1))
    for j in range(plan.public.columns):
        if low[j] < high[j]:
            found[:, j] = _of_column(plan, column(data.X, j), data.weight, (float(low[j]), float(high[j])), rng)
    return np.sort(found, axis=0)


def _of_column(
    plan: ReleasePlan, values: FloatArray, weight: Any, ends: tuple[float, float], rng: RandomGenerator
) -> FloatArray:
    selection, quantiles = plan.selection, plan.quantiles
    if selection.multiplier == 0.0:
        clipped, wanted = np.clip(values, *ends), np.array(quantiles)
        if weight is None or not weight.any():
            return np.quantile(clipped, wanted)
        return np.quantile(clipped, wanted, method="inverted_cdf", weights=weight)
    runs = Runs.around(place_of(values, *ends), weight)
    points = np.empty(len(quantiles), dtype=np.int64)
    for k, quantile in enumerate(quantiles):
        sensitivity = mechanisms.rank_error(plan.public.relation, quantile)
        run, place = selection.choose(rng, runs.rank_error(quantile), runs.points, sensitivity)
        points[k] = runs.first[run] + place
    return value_of(points, *ends)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateQuantiles(PrivateTransformer):
    """Learn quantiles of every column privately; `transform` maps values to approximately uniform scores.

    Guarantee: `quantiles_`, `low_` and `high_` together are differentially private as `guarantee_` states.

    Parameters
    ----------
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Increasing numbers between 0 and 1. Each costs the same, so ask for few.
    bounds : tuple (low, high), dict or "data", optional
        Public limits of the columns: two numbers, two sequences with one number per column, or for a data frame pairs
        by name, `{"age": (0, 120), "income": (0, None)}`. What is not declared is learned with a quarter of the
        budget. "data" reads them from the rows, which is not private, and warns.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        The quantiles, increasing down each column, between `low_` and `high_`.
    low_, high_ : ndarray of shape (n_features,)
        Where the scores reach 0 and 1.

    See Also
    --------
    PrivateScaler : Means and standard deviations instead.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import PrivateQuantiles
    >>> ages = np.random.default_rng(0).uniform(20.0, 80.0, (20_000, 1))
    >>> step = PrivateQuantiles(epsilon=1.0, quantiles=[0.5], bounds=(0.0, 120.0), random_state=0).fit(ages)
    >>> step.quantiles_.round()  # a seed, so that this example repeats; leave it out
    array([[50.]])
    """

    quantiles: Any = (0.25, 0.5, 0.75)
    bounds: Any = None

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        return plan_quantiles(public, budget, check_quantiles(self.quantiles))

    def _learn(self, plan: ReleasePlan, data: Data, rng: RandomGenerator) -> None:
        low, high = declared_or_learned(plan.ranges, data, plan.public, rng)
        self.quantiles_ = learn_quantiles(plan, low, high, data, rng)
        self.low_, self.high_ = low, high
        self._levels = np.array([0.0, *plan.quantiles, 1.0])

    def transform(self, X: Any) -> Any:
        """Return scores in [0, 1]: the piecewise linear distribution function through the quantiles."""
        table = self._validated(X, reset=False)
        scores = np.full(table.shape, 0.5)
        for j, knots in enumerate(self._knots().T):
            if knots[0] < knots[-1]:
                scores[:, j] = np.interp(table[:, j], knots, self._levels)
        return np.where(np.isnan(table), np.nan, scores)  # a row that could not be read

    def inverse_transform(self, X: Any) -> Any:
        """Return the values that have these scores."""
        table = self._validated(X, reset=False)
        return np.column_stack([np.interp(table[:, j], self._levels, k) for j, k in enumerate(self._knots().T)])

    def _knots(self) -> FloatArray:
        return np.vstack([self.low_, self.quantiles_, self.high_])


def check_quantiles(quantiles: Any) -> tuple[float, ...]:
    """Increasing numbers strictly between 0 and 1."""
    wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    inside = wanted.size > 0 and wanted.ndim == 1 and (wanted > 0.0).all() and (wanted < 1.0).all()
    if not inside or (np.diff(wanted) <= 0.0).any():
        raise ValueError(f"quantiles must be increasing numbers strictly between 0 and 1; got {quantiles!r}.")
    return tuple(wanted.tolist())
