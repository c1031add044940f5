"""Where each column begins and ends, from one noisy histogram of signed binary exponents; its centre and its scale.

`PrivateBounds` clips to the ranges, `PrivateScaler` also divides by privately learned standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from discreet._common.callers import warn
from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray
from discreet.data.public import Public
from discreet.data.rows import TERM_STEP, Limits, Rows, columns_of, limits_between, moment_sums
from discreet.data.validation import ends_of_columns
from discreet.preprocessing.base import PrivateTransformer
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.problem.column_scaling import SMALLEST_SPREAD
from discreet.scaling import histograms
from discreet.scaling.learn import FALSE_BINS
from discreet.scaling.plan import NOISIEST_MOMENT

Ends = tuple[FloatArray, FloatArray]  # of the ranges, the low ones first

FAINTEST_BIN = 1 / 8  # of the rows: a bin with so many must stand out, else one range serves all columns


def plan_range(public: Public, budget: Budget, share: float) -> ReleasePlan:
    """Spend a share of the budget on ranges: per column if the noise is small against the rows, else one for all."""
    mechanism, columns = mechanisms.additive(budget, share), max(1, int((~public.declared).sum()))
    sensitivity = mechanisms.one_hot_counts(public.relation, columns)
    threshold = mechanism.level(sensitivity, FALSE_BINS / (columns * histograms.SIGNED_BINS))
    settings = {"per_column": threshold <= FAINTEST_BIN * public.rows}
    return ReleasePlan("ranges", public, budget, {"mechanism": mechanism}, settings)


def declared_or_learned(plan: ReleasePlan | None, data: Rows, public: Public, rng: RandomGenerator) -> Ends:
    """The declared bounds where nothing was planned, else the learned ranges.

    Guarantee: costs exactly the event of the plan, or nothing.
    """
    if plan is None:
        return public.complete_bounds()
    if not plan.per_column:
        warn(
            f"{public.rows} rows are too few to learn a range for each of {int((~public.declared).sum())} columns "
            "privately, so one common range is used; declare bounds, or spend a larger epsilon.",
            UtilityWarning,
        )
    low, high = learn_ranges(plan, data, rng)
    empty = np.flatnonzero((low == high) & ~public.declared)
    if empty.size and plan.mechanism.multiplier > 0.0:
        warn(
            f"the learned range of columns {empty.tolist()} is one value, such as (0, 0): they hold nothing else, or "
            "nothing in them stands out of the noise; declare bounds, or spend a larger epsilon.",
            UtilityWarning,
        )
    return low, high


def learn_ranges(plan: ReleasePlan, data: Rows, rng: RandomGenerator) -> Ends:
    """The range of each column, inside what is declared; empty ((0, 0) if nothing is) if noise hides it.

    Guarantee: reads the rows through one histogram per column without declared bounds (or one in all) with noise
    in every bin, and costs exactly the event of the plan.
    """
    public = plan.public
    open_columns = np.flatnonzero(~public.declared)
    rows = data if open_columns.size == public.columns else columns_of(data, open_columns)
    if plan.mechanism.multiplier == 0.0:
        below, high = rows.max(ends_of_columns)  # minima and maxima, not private: for infinite budgets only
        low = 0.0 - below
    elif plan.per_column:
        noisy, threshold = _noisy_counts(plan, histograms.signed_exponent_counts(rows), rng)
        low, high = np.array([histograms.range_of(row, threshold) for row in noisy]).T.copy()
    else:
        counts = histograms.exponent_counts(rows, [range(rows.columns)], np.zeros(rows.columns))
        noisy, threshold = _noisy_counts(plan, counts, rng)
        high = np.full(open_columns.size, histograms.radius_of(noisy[0], threshold))
        low = 0.0 - high  # not -0
    if public.sparse:  # entries that are not stored are zeros, and clipping must leave them so
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if public.low is None or public.high is None:
        return low, high
    whole_low, whole_high = public.low.copy(), public.high.copy()
    ends = public.low[open_columns], public.high[open_columns]
    whole_low[open_columns], whole_high[open_columns] = np.clip(low, *ends), np.clip(high, *ends)
    return whole_low, whole_high


def _noisy_counts(plan: ReleasePlan, counts: FloatArray, rng: RandomGenerator) -> tuple[FloatArray, float]:
    """The counts with noise, and the level that empty bins seldom exceed."""
    sensitivity = mechanisms.one_hot_counts(plan.public.relation, counts.shape[0])
    noisy = plan.mechanism.release(rng, counts, sensitivity)
    return noisy, plan.mechanism.level(sensitivity, FALSE_BINS / counts.size)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateBounds(PrivateTransformer):
    """Learn a range of every column privately, and clip to it.

    The ends are powers of two (or 0). They are up to a factor of 2 too wide, and they cut off tails of so few rows
    that these cannot be told from noise. A column in which nothing can be told from noise gets the range (0, 0). Use
    it as a step of a pipeline, or to find `bounds=(step.low_, step.high_)` for an estimator.

    Guarantee: `low_` and `high_` are differentially private as `guarantee_` states.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        The ends of the ranges.

    See Also
    --------
    PrivateScaler : Centres and scales as well.
    PrivateQuantiles : Ranges by quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import PrivateBounds
    >>> ages = np.random.default_rng(0).uniform(18.0, 90.0, (20_000, 1))
    >>> step = PrivateBounds(epsilon=1.0, random_state=0).fit(ages)
    >>> step.low_, step.high_  # a seed, so that this example repeats; leave it out
    (array([16.]), array([128.]))
    >>> step.transform([[200.0]])
    array([[128.]])
    """

    _needs_sums_only: ClassVar[bool] = True

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        return plan_range(public, budget, WHOLE)

    def _learn(self, plan: ReleasePlan, data: Rows, rng: RandomGenerator) -> None:
        self.low_, self.high_ = declared_or_learned(plan, data, plan.public, rng)

    def transform(self, X: Any) -> Any:
        """Return the rows with every entry clipped to the range of its column."""
        return self._clipped(self._validated(X, reset=False), self.low_, self.high_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


RANGE_SHARE = 0.25  # of the budget, where bounds are not declared; the moments need the accuracy more


def plan_scaler(public: Public, budget: Budget) -> ReleasePlan:
    """Spend the whole budget: on ranges that were not declared, and on moments if their noise is small."""
    share = WHOLE if public.bounded else (1.0 - RANGE_SHARE) * WHOLE
    moments = mechanisms.additive(budget, share)
    noise = moments.deviation(mechanisms.bounded_moments(public.relation, public.columns))
    useful = noise <= NOISIEST_MOMENT * public.rows
    range_share = RANGE_SHARE * WHOLE if useful else WHOLE
    ranges = None if public.bounded else plan_range(public, budget, range_share)
    return ReleasePlan("scales", public, budget, {"ranges": ranges, "moments": moments if useful else None})


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateScaler(PrivateTransformer):
    """Centre and scale every column by privately learned means and standard deviations.

    Entries are first clipped to the declared or privately learned range of their column.

    Guarantee: `low_`, `high_`, `mean_` and `scale_` together are differentially private as `guarantee_` states.

    Parameters
    ----------
    bounds : tuple (low, high), dict or "data", optional
        Public limits of the columns: two numbers, two sequences with one number per column, or for a data frame pairs
        by name, `{"age": (0, 120), "income": (0, None)}`. What is not declared is learned with a quarter of the
        budget. "data" reads them from the rows, which is not private, and warns.
    with_mean : bool, default=True
        Whether to centre; must be False for sparse tables.
    with_std : bool, default=True
        Whether to scale.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        What is subtracted, and what is divided by; scales are never 0.
    low_, high_ : ndarray of shape (n_features,)
        Where entries are clipped first.

    See Also
    --------
    PrivateBounds : Clips without scaling.
    pipeline_guarantee : What all steps of a pipeline cost together.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import PrivateScaler
    >>> ages = np.random.default_rng(0).normal(45.0, 12.0, (20_000, 1))
    >>> scaler = PrivateScaler(epsilon=1.0, bounds=(0.0, 120.0), random_state=0).fit(ages)
    >>> scaler.mean_.round(), scaler.scale_.round()  # a seed, so that this example repeats; leave it out
    (array([45.]), array([12.]))
    """

    _needs_sums_only: ClassVar[bool] = True

    bounds: Any = None
    with_mean: bool = True
    with_std: bool = True

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        if not (self.with_mean or self.with_std):
            raise ValueError("with_mean and with_std are both False: use PrivateBounds to clip without scaling.")
        return plan_scaler(public, budget)

    def _learn(self, plan: ReleasePlan, data: Rows, rng: RandomGenerator) -> None:
        public = plan.public
        low, high = declared_or_learned(plan.ranges, data, public, rng)
        limits = limits_between(low, high, public.sparse)
        if plan.moments is None:
            warn(
                f"{public.rows} rows are too few to learn means and scales of {public.columns} columns privately, "
                "so the middle and the radius of each range are used; spend a larger epsilon.",
                UtilityWarning,
            )
            mean, scale = limits.centre, np.where(limits.known, limits.radius, 1.0)
        else:
            mean, scale = learn_moments(plan.moments, limits, data, public, rng)
        self.low_, self.high_ = low, high
        self.mean_ = mean if self.with_mean else np.zeros(public.columns)
        self.scale_ = scale if self.with_std else np.ones(public.columns)

    def transform(self, X: Any) -> Any:
        """Return the rows clipped, centred and scaled."""
        clipped = self._clipped(self._validated(X, reset=False), self.low_, self.high_)
        if sp.issparse(clipped):
            return sp.csr_array(clipped.multiply(1.0 / self.scale_))
        return (clipped - self.mean_) / self.scale_

    def inverse_transform(self, X: Any) -> Any:
        """Return the clipped rows that `transform` would turn into X."""
        table = self._validated(X, reset=False)
        if sp.issparse(table):
            return sp.csr_array(table.multiply(self.scale_))
        return table * self.scale_ + self.mean_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags


def learn_moments(
    mechanism: mechanisms.Additive, limits: Limits, data: Rows, public: Public, rng: RandomGenerator
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the clipped columns, from one joint release of two sums a column.

    Guarantee: costs exactly `mechanism.event`. The deviations are floored at a public number, never 0.
    """
    sums = moment_sums(data, limits, slice(0, public.columns), rounded=mechanism.multiplier > 0.0)
    sensitivity = mechanisms.bounded_moments(public.relation, public.columns).rounded(TERM_STEP, sums.size)
    sums = mechanism.release(rng, sums, sensitivity)
    noise = mechanism.deviation(sensitivity) / public.rows
    mean = np.clip(sums[0] / public.rows, -1.0, 1.0)
    variance = np.clip(sums[1] / public.rows, 0.0, 1.0) - mean**2
    # Below twice its noise a variance says only "small"; dividing by less would blow up noise.
    floor = 2.0 * noise + SMALLEST_SPREAD**2
    spread = np.sqrt(np.maximum(variance, floor))
    scale = np.where(limits.known, limits.radius * spread, 1.0)
    if noise == 0.0:  # a constant column, as scikit-learn has it
        scale = np.where(variance <= floor, 1.0, scale)
    return limits.centre + np.where(limits.known, mean * limits.radius, 0.0), scale
