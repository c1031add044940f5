"""PrivateBounds: learn a range for every column, and clip to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.ranges import declared_or_learned, plan_range
from discreet.privacy.release import WHOLE, ReleasePlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Rows
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


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
