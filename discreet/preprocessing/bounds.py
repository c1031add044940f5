"""PrivateBounds: learn a range for every column, and clip to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.ranges import RangePlan, declared_or_learned, plan_range
from discreet.preprocessing.release import WHOLE

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Data
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateBounds(PrivateTransformer):
    """Learn bounds of the columns privately, from powers of two, and clip to them.

    The parameters are those of `PrivateTransformer`. Use it to find `bounds=(pb.low_, pb.high_)` for an
    estimator, or as a step of a pipeline. The ends are powers of two (or 0): up to a factor of 2 too wide, and
    they cut off tails of so few rows that they cannot be told from noise. A column in which nothing can be
    told from noise gets the range (0, 0).

    Guarantee: `low_` and `high_` are differentially private as `guarantee_` states.
    """

    def _plan(self, public: Public, budget: Budget) -> RangePlan:
        return plan_range(public, budget, WHOLE)

    def _learn(self, plan: RangePlan, data: Data, public: Public, rng: RandomGenerator) -> None:
        self.low_, self.high_ = declared_or_learned(plan, data, public, rng)

    def transform(self, X: Any) -> Any:
        """The rows with every entry moved into its column's range."""
        return self._clipped(self._validated(X, reset=False), self.low_, self.high_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
