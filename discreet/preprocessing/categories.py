"""Encoders of categories: of declared ones, and of those of many candidates that are frequent, by noisy counts.

They share lists of values, their codes, and names of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet._common.callers import warn
from discreet._common.exceptions import UtilityWarning
from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.data.loading import Entries
from discreet.data.pipeline_steps import allow_row_by_row
from discreet.data.public import Public
from discreet.data.rows import Data, exact_weights
from discreet.data.schema import as_text
from discreet.data.validation import validate_values
from discreet.preprocessing.base import PrivateTransformer
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import WHOLE, ReleasePlan

OTHER, MISSING = -1, -2  # codes of values that are not listed, and of missing ones
_MISSING_KINDS = ("NAType", "NaTType")  # pandas' own; by name, since pandas need not be there

Lists = list[list[str]]


def category_lists(categories: Any, columns: int, feature_names: Any = None, name: str = "categories") -> Lists:
    """The declared categories of every column as texts: one list for all, one for each, or lists by name of column."""
    if isinstance(categories, Mapping):
        if feature_names is None:
            raise ValueError(f"{name} by name needs a table with column names; pass one list for each column.")
        names = [str(column) for column in feature_names]
        if set(categories) != set(names):
            wrong = sorted(set(map(str, categories)) ^ set(names))
            raise ValueError(f"{name} must list every column of the table once; check {', '.join(wrong[:5])}.")
        categories = [categories[column] for column in names]
    if not _is_list(categories) or len(categories) == 0:
        raise ValueError(f"{name} must be a list of categories for each column; got {categories!r}.")
    if not any(_is_list(each) for each in categories):
        categories = [categories] * columns
    if len(categories) != columns or not all(_is_list(each) and len(each) for each in categories):
        raise ValueError(f"{name} must hold a list that is not empty for each of the {columns} columns.")
    lists = [[_text(value) for value in each] for each in categories]
    for each in lists:
        if len(set(each)) < len(each):
            raise ValueError(f"{name} lists {next(text for text in each if each.count(text) > 1)!r} twice in a column.")
    return lists


def category_codes(table: Any, lists: Lists) -> IntArray:
    """For every entry the place of its value in the list of its column, `OTHER` or `MISSING`; row by row."""
    codes = np.empty(table.shape, dtype=np.int64)
    for j, listed in enumerate(lists):
        places = {"": MISSING} | {text: place for place, text in enumerate(listed)}
        codes[:, j] = [places.get(_text(value), OTHER) for value in table[:, j]]
    return codes


def input_names(estimator: Any, input_features: Any = None) -> list[str]:
    """The names of the columns that came in, as scikit-learn makes them up where there are none."""
    from sklearn.utils.validation import _check_feature_names_in

    return [str(name) for name in _check_feature_names_in(estimator, input_features)]


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value).__name__ in _MISSING_KINDS:
        return ""
    try:
        return as_text(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits, and such a row must not stop a fit
        return "a number that has no text"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


class EncodesCategories(TransformerMixin):
    """What encoders of categories share: a table of values goes in, columns of zeros and ones come out."""

    categories: Any
    other: bool
    missing_indicator: bool
    categories_: Lists
    baseline_: list[str | None] | None = None  # by column, the category that has no column of its own

    def _table(self, X: Any, reset: bool) -> Any:
        return validate_values(self, X, reset=reset)

    def _declared(self, table: Any) -> Lists:
        """The declared categories of a table's columns."""
        lists = category_lists(self.categories, table.shape[1], getattr(self, "feature_names_in_", None))
        self._names(lists, input_names(self))
        return lists

    def transform(self, X: Any) -> Any:
        """Return the columns of zeros and ones, of type bool, so that estimators know their bounds."""
        check_is_fitted(self, "categories_")
        codes = category_codes(self._table(X, reset=False), self.categories_)
        return one_hot(codes, self._kept(self.categories_), self.other, self.missing_indicator)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, `column_category`."""
        check_is_fitted(self, "categories_")
        return np.array(self._names(self.categories_, input_names(self, input_features)), dtype=object)

    def _names(self, lists: Lists, columns: Sequence[str]) -> list[str]:
        """The names of these columns; refuses lists that would give two columns the same name."""
        ends = ["other"] * self.other + ["missing"] * self.missing_indicator
        kept = [[each[place] for place in places] for each, places in zip(lists, self._kept(lists), strict=True)]
        names = [f"{column}_{value}" for column, each in zip(columns, kept, strict=True) for value in [*each, *ends]]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two columns would be called {twice[0]!r}; rename the category or the column.")
        return names

    def _kept(self, lists: Lists) -> list[list[int]]:
        """The places of the categories that get a column."""
        without = self.baseline_ or [None] * len(lists)
        return [
            [place for place, text in enumerate(each) if text != baseline]
            for each, baseline in zip(lists, without, strict=True)
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


def one_hot(codes: IntArray, places: Sequence[Sequence[int]], other: bool, missing: bool) -> BoolArray:
    """One column for each category at one of these places, then one for all others and one for missing ones, if asked.

    Missing values count as others if they have no column of their own.
    """
    parts = []
    for j, each in enumerate(places):
        column = codes[:, j]
        parts.append(column[:, None] == np.array(each, dtype=np.int64)[None, :])
        if other:
            parts.append((column == OTHER) | ((column == MISSING) & (not missing)))
        if missing:
            parts.append(column == MISSING)
    return np.column_stack(parts)


@dataclass(eq=False, repr=False, kw_only=True)
class DeclaredOneHotEncoder(EncodesCategories, BaseEstimator):
    """Turn categories that are known in advance into columns of zeros and ones, with one for all other values.

    One category, the baseline, has no column: beside an intercept a column for each would leave their coefficients
    open, since all of them together can be moved against the intercept. A coefficient says how its category differs
    from the baseline.

    Every row is encoded on its own, from the declared categories: `fit` reads the names of columns and nothing else. A
    value that is not listed is no error, which would tell that such a row exists: it counts as "other". Values are
    compared as text, so that 1, 1.0 and "1" are the same.

    Guarantee: releases nothing, so it costs nothing; neighbouring tables are mapped to neighbouring tables.

    Parameters
    ----------
    categories : list of values, list of such lists, or dict
        All categories, from public knowledge: one list for all columns, one for each, or lists by name of column.
    other : bool, default=True
        Whether values that are not listed get a column; without one all columns of such a row are 0.
    missing_indicator : bool, default=False
        Whether missing values (None, NaN, empty texts) get a column; else they count as other values.
    baseline : "first", None, list of values, or dict
        Which category of each column has no column of zeros and ones: the first, none, or one named for each column.

    Attributes
    ----------
    categories_ : list of list of str
        The categories of each column.
    baseline_ : list of str or None
        The category of each column that has no column of zeros and ones.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X was a table whose column names are all strings.

    See Also
    --------
    PrivateFrequentCategories : Learns privately which of many candidates are frequent.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.preprocessing import DeclaredOneHotEncoder
    >>> rows = pd.DataFrame({"colour": ["red", "green", "mauve"]})
    >>> encoder = DeclaredOneHotEncoder(categories={"colour": ["red", "green"]}).fit(rows)
    >>> encoder.transform(rows).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1]]
    >>> encoder.get_feature_names_out().tolist()  # compared with red
    ['colour_green', 'colour_other']
    """

    categories: Any
    other: bool = True
    missing_indicator: bool = False
    baseline: Any = "first"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the declarations; of X only the number and the names of columns are used."""
        self.baseline_ = None
        lists = self._declared(self._table(X, reset=True))
        self.baseline_ = self._baselines(lists)
        self.categories_ = lists
        return self

    def _baselines(self, lists: Lists) -> list[str | None]:
        """The baseline of each column; a column with one category and no others keeps it."""
        if self.baseline is None:
            return [None] * len(lists)
        if isinstance(self.baseline, str):
            if self.baseline != "first":
                raise ValueError(
                    f'baseline must be "first", None, or one category for each column; got {self.baseline!r}.'
                )
            return [each[0] if len(each) > 1 or self.other else None for each in lists]
        named = isinstance(self.baseline, Mapping)
        pairs = (
            {name: [value] for name, value in self.baseline.items()} if named else [[each] for each in self.baseline]
        )
        one = category_lists(pairs, len(lists), getattr(self, "feature_names_in_", None), "baseline")
        for listed, (value,) in zip(lists, one, strict=True):
            if value not in listed:
                raise ValueError("baseline must name one of the categories of each column.")
        return [value for (value,) in one]


allow_row_by_row(DeclaredOneHotEncoder)


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

    _entries: ClassVar[Entries] = "anything"

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
            warn(
                f"no category is as frequent as {least:.0f} rows, which min_frequency or the noise asks for; lower "
                "min_frequency, spend a larger epsilon, or encode a short list with DeclaredOneHotEncoder.",
                UtilityWarning,
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
