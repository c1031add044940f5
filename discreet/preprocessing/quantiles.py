"""PrivateQuantiles: quantiles of every column, and the map to uniform scores that they define."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.data import moments
from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.intervals import Runs, place_of, value_of
from discreet.preprocessing.ranges import RangePlan, declared_or_learned, plan_range
from discreet.privacy import accounting, mechanisms
from discreet.privacy.mechanisms import QuantileSelection

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Data
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator

RANGE_SHARE = 0.25  # of the budget, where bounds are not declared


@dataclass(frozen=True)
class QuantilePlan:
    """Ranges (None: declared), then one selection for every column and quantile."""

    ranges: RangePlan | None
    selection: QuantileSelection
    quantiles: tuple[float, ...]

    @property
    def event(self) -> Any:
        ranges = [] if self.ranges is None else [self.ranges.event]
        return accounting.compose([*ranges, self.selection.event])

    def learn(self, low: FloatArray, high: FloatArray, data: Data, public: Public, rng: RandomGenerator) -> FloatArray:
        """The quantiles of the columns between low and high, (quantiles, columns), increasing.

        Guarantee: costs at most `selection.event`, whatever low and high are; a column without a range is skipped.
        """
        found = np.tile(low, (len(self.quantiles), 1))
        for j in range(public.columns):
            if low[j] < high[j]:
                values = moments.column(data.X, j)
                found[:, j] = self._column(values, data.weight, float(low[j]), float(high[j]), public, rng)
        return np.sort(found, axis=0)

    def _column(
        self, values: FloatArray, weight: Any, low: float, high: float, public: Public, rng: RandomGenerator
    ) -> FloatArray:
        if self.selection.multiplier == 0.0:
            clipped, wanted = np.clip(values, low, high), np.array(self.quantiles)
            if weight is None or not weight.any():
                return np.quantile(clipped, wanted)
            return np.quantile(clipped, wanted, method="inverted_cdf", weights=weight)
        runs = Runs.around(place_of(values, low, high), weight)
        points = np.empty(len(self.quantiles), dtype=np.int64)
        for k, quantile in enumerate(self.quantiles):
            sensitivity = mechanisms.rank_error(public.relation, quantile)
            run, place = self.selection.choose(rng, runs.rank_error(quantile), runs.points, sensitivity)
            points[k] = runs.first[run] + place
        return value_of(points, low, high)


def plan_quantiles(public: Public, budget: Budget, quantiles: tuple[float, ...]) -> QuantilePlan:
    """Ranges from a quarter of the budget where none are declared, the rest for equally noisy selections."""
    count = public.columns * len(quantiles)
    ranges = None if public.bounded else plan_range(public, budget, RANGE_SHARE)
    if budget.is_infinite:
        return QuantilePlan(ranges, QuantileSelection(0.0, count), quantiles)
    if budget.kind == "gdp":
        raise ValueError("epsilon is a Gaussian DP budget, but private selections have no cost in Gaussian DP.")

    def event_at(multiplier: float) -> Any:
        return QuantilePlan(ranges, QuantileSelection(multiplier, count), quantiles).event

    multiplier = accounting.calibrate(event_at, budget, public.relation)
    return QuantilePlan(ranges, QuantileSelection(multiplier, count), quantiles)


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

    def _plan(self, public: Public, budget: Budget) -> QuantilePlan:
        return plan_quantiles(public, budget, check_quantiles(self.quantiles))

    def _learn(self, plan: QuantilePlan, data: Data, public: Public, rng: RandomGenerator) -> None:
        low, high = declared_or_learned(plan.ranges, data, public, rng)
        self.quantiles_ = plan.learn(low, high, data, public, rng)
        self.low_, self.high_ = low, high
        self._levels = np.array([0.0, *plan.quantiles, 1.0])

    def transform(self, X: Any) -> Any:
        """Return scores in [0, 1]: the piecewise linear distribution function through the quantiles."""
        table = self._validated(X, reset=False)
        scores = np.full(table.shape, 0.5)
        for j, knots in enumerate(self._knots().T):
            if knots[0] < knots[-1]:
                scores[:, j] = np.interp(table[:, j], knots, self._levels)
        return scores

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
