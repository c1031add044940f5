"""PrivateScaler: centre and scale every column by privately learned means and standard deviations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, Limits, Rows, limits_between, moment_sums
from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.ranges import declared_or_learned, plan_range
from discreet.privacy import mechanisms
from discreet.privacy.release import WHOLE, ReleasePlan
from discreet.problem.column_scaling import SMALLEST_SPREAD
from discreet.scaling.plan import NOISIEST_MOMENT

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator

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
            warnings.warn(
                f"{public.rows} rows are too few to learn means and scales of {public.columns} columns privately, "
                "so the middle and the radius of each range are used; spend a larger epsilon.",
                UtilityWarning,
                stacklevel=3,
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
