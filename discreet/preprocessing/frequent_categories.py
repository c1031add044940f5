"""PrivateFrequentCategories: which of many candidates are frequent, by noisy counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray
from discreet.data.rows import Data, exact_weights
from discreet.preprocessing.base import PrivateTransformer
from discreet.preprocessing.categories import EncodesCategories, category_codes
from discreet.privacy import mechanisms
from discreet.privacy.release import WHOLE, ReleasePlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator

FALSE_CATEGORIES = 1e-3  # expected number of candidates without a row that noise alone makes frequent


def plan_counts(public: Public, budget: Budget) -> ReleasePlan:
    """One joint release of the numbers of rows of all candidates of all columns."""
    return ReleasePlan("counts of categories", public, budget, {"mechanism": mechanisms.additive(budget, WHOLE)})


def learn_counts(
    plan: ReleasePlan, data: Data, sizes: list[int], rng: RandomGenerator
) -> tuple[list[FloatArray], float]:
    """The noisy counts of the candidates of each column, and the level that empty ones seldom exceed.

    Guarantee: every row adds its weight to one candidate of each column at most; costs exactly the event of the plan.
    """
    weight = exact_weights(data.weight)
    counts = [_column_counts(data.X[:, j], weight, size) for j, size in enumerate(sizes)]
    sensitivity = mechanisms.one_hot_counts(plan.public.relation, plan.public.columns)
    noisy = plan.mechanism.release(rng, np.concatenate(counts), sensitivity)
    level = plan.mechanism.level(sensitivity, FALSE_CATEGORIES / sum(sizes))
    return np.split(noisy, np.cumsum(sizes)[:-1]), level


def _column_counts(codes: Any, weight: FloatArray | None, size: int) -> FloatArray:
    listed = codes >= 0
    own = None if weight is None else weight[listed]
    return np.bincount(codes[listed].astype(np.int64), weights=own, minlength=size).astype(np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateFrequentCategories(EncodesCategories, PrivateTransformer):
    """Learn privately which of many declared candidates are frequent, and encode these; the rest becomes "other".

    For codes of diseases, professions or postal areas: the list of all of them is public, which of them occur often
    enough to deserve a column of their own is not. Counts of all candidates are released together, so that a long list
    costs no more than a short one.

    Guarantee: `categories_` and `counts_` together are differentially private as `guarantee_` states.

    Parameters
    ----------
    categories : list of values, list of such lists, or dict
        All candidates, from public knowledge: one list for all columns, one for each, or lists by name of column.
    min_frequency : float, default=0.01
        Share of the public number of rows that a category must have, by its noisy count, to be kept. It must also
        exceed the noise, so that candidates without a row are kept once in a thousand fits.
    max_categories : int, optional
        The most categories of a column that are kept, those with the largest noisy counts.
    other : bool, default=True
        Whether all other values get a column; without one all columns of such a row are 0.
    missing_indicator : bool, default=False
        Whether missing values get a column; else they count as other values.

    Attributes
    ----------
    categories_ : list of list of str
        The categories of each column that were kept, in the order in which they were declared.
    counts_ : list of ndarray
        The noisy counts of all candidates of each column; they may be negative.

    See Also
    --------
    DeclaredOneHotEncoder : Encodes a list as it is, for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import PrivateFrequentCategories
    >>> codes = np.random.default_rng(0).choice(["A10", "B20", "C30"], (5000, 1), p=[0.7, 0.299, 0.001])
    >>> step = PrivateFrequentCategories(categories=["A10", "B20", "C30", "D40"], random_state=0).fit(codes)
    >>> step.categories_  # a seed, so that this example repeats; leave it out
    [['A10', 'B20']]
    >>> step.transform([["B20"], ["C30"]]).astype(int).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """

    categories: Any
    min_frequency: float = 0.01
    max_categories: int | None = None
    other: bool = True
    missing_indicator: bool = False

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        if isinstance(self.min_frequency, bool) or not 0.0 <= self.min_frequency < 1.0:
            raise ValueError(f"min_frequency must be at least 0 and below 1; got {self.min_frequency!r}.")
        most = self.max_categories
        if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1):
            raise ValueError(f"max_categories must be a positive whole number or None; got {most!r}.")
        return plan_counts(public, budget)

    def _learn(self, plan: ReleasePlan, data: Data, rng: RandomGenerator) -> None:
        self.counts_, level = learn_counts(plan, data, [len(each) for each in self._candidates], rng)
        least = max(self.min_frequency * plan.public.rows, level)
        self.categories_ = [
            [each[place] for place in _largest(counts, least, self.max_categories)]
            for each, counts in zip(self._candidates, self.counts_, strict=True)
        ]
        if not any(self.categories_) and plan.mechanism.multiplier > 0.0:
            warnings.warn(
                f"no category is as frequent as {least:.0f} rows, which min_frequency or the noise asks for; lower "
                "min_frequency, spend a larger epsilon, or encode a short list with DeclaredOneHotEncoder.",
                UtilityWarning,
                stacklevel=3,
            )

    def _validated(self, X: Any, reset: bool) -> Any:
        """The places of the values among the candidates."""
        table = self._table(X, reset)
        self._candidates = self._declared(table)
        return category_codes(table, self._candidates)


def _largest(counts: FloatArray, least: float, most: int | None) -> list[int]:
    """The places of counts above the least one, of the largest of them if there are too many, in their order."""
    kept = [int(place) for place in np.argsort(-counts, kind="stable") if counts[place] > least]
    return sorted(kept[:most])
