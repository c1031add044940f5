"""Where each column begins and ends, from one noisy histogram of signed binary exponents, and PrivateBounds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray
from discreet.data.rows import Rows, columns_of
from discreet.data.validation import ends_of_columns
from discreet.preprocessing.base import PrivateTransformer
from discreet.privacy import mechanisms
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.scaling import histograms
from discreet.scaling.learn import FALSE_BINS

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator

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
        warnings.warn(
            f"{public.rows} rows are too few to learn a range for each of {int((~public.declared).sum())} columns "
            "privately, so one common range is used; declare bounds, or spend a larger epsilon.",
            UtilityWarning,
            stacklevel=4,
        )
    low, high = learn_ranges(plan, data, rng)
    empty = np.flatnonzero((low == high) & ~public.declared)
    if empty.size and plan.mechanism.multiplier > 0.0:
        warnings.warn(
            f"the learned range of columns {empty.tolist()} is one value, such as (0, 0): they hold nothing else, or "
            "nothing in them stands out of the noise; declare bounds, or spend a larger epsilon.",
            UtilityWarning,
            stacklevel=4,
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
        low, high = _exact_range(rows)
    elif plan.per_column:
        noisy, threshold = _noisy_counts(plan, histograms.signed_exponent_counts(rows), rng)
        low, high = np.array([histograms.range_of(row, threshold) for row in noisy]).T.copy()
    else:
        counts = histograms.exponent_counts(rows, [range(rows.columns)], np.zeros(rows.columns))
        noisy, threshold = _noisy_counts(plan, counts, rng)
        high = np.full(open_columns.size, histograms.radius_of(noisy[0], threshold))
        low = -high
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


def _exact_range(data: Rows) -> Ends:
    """Minima and maxima. Not private: for infinite budgets only."""
    below, high = data.max(ends_of_columns)
    return 0.0 - below, high


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
