"""What is filled in for missing values: public numbers (`DeclaredImputer`), or private means or medians.

Both treat every row on its own in `transform`; proof of what `PrivateImputer` learns: docs/guarantees/preprocessing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet._common.types import FloatArray
from discreet.data.loading import Entries
from discreet.data.pipeline_steps import allow_row_by_row
from discreet.data.public import Public
from discreet.data.rows import Data, exact_weights, limits_between, moment_sums
from discreet.data.validation import is_neutral, validate_features
from discreet.preprocessing.base import PrivateTransformer, marked_rows
from discreet.preprocessing.categories import input_names
from discreet.preprocessing.quantiles import learn_quantiles, plan_quantiles
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator
from discreet.privacy.release import WHOLE, ReleasePlan

FAINTEST_COUNT = 3.0  # deviations of its noise: a column with fewer values is filled with the middle of its range


class FillsMissing(TransformerMixin):
    """What imputers share: a table with gaps goes in, filled columns and, if asked for, indicators come out."""

    statistics_: FloatArray
    add_indicator: bool
    invalid_rows: Any

    def _table(self, X: Any, reset: bool) -> Any:
        def check(table: Any) -> Any:
            return validate_features(self, table, reset=reset, sparse=False, missing=True)

        return marked_rows(X, check, gaps=True) if is_neutral(self.invalid_rows) else check(X)

    def transform(self, X: Any) -> Any:
        """Return the rows without gaps, with indicators if asked for."""
        check_is_fitted(self, "statistics_")
        table = self._table(X, reset=False)
        gaps = np.isnan(table)
        filled = np.where(gaps, self.statistics_, table).astype(np.float64)
        return np.column_stack([filled, gaps]) if self.add_indicator else filled

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns; those of indicators begin with `missingindicator_`."""
        names = input_names(self, input_features)
        told = [f"missingindicator_{name}" for name in names] if self.add_indicator else []
        return np.array([*names, *told], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class DeclaredImputer(FillsMissing, BaseEstimator):
    """Fill in public numbers for missing values, and say where values were missing if asked to.

    Every row is treated on its own; `fit` reads the number and names of columns and nothing else. There is an indicator
    for every column, whether or not values are missing in it, since that is private.

    Guarantee: releases nothing, so it costs nothing; neighbouring tables are mapped to neighbouring tables.

    Parameters
    ----------
    fill_value : float, list of float, or dict, default=0.0
        What is filled in, from public knowledge: one number, one for each column, or numbers by name of column.
    add_indicator : bool, default=False
        Whether to add a column for each column that is 1 where its value was missing.
    invalid_rows : {"error", "neutral"}, default="error"
        Whether a row with text or infinity is refused, or passed on as one that the next step cannot read either: all
        its entries become infinite.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        What is filled in for each column.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X was a table whose column names are all strings.

    See Also
    --------
    PrivateImputer : Learns what to fill in.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import DeclaredImputer
    >>> rows = np.array([[40.0, 1.0], [np.nan, 2.0]])
    >>> DeclaredImputer(fill_value=[45.0, 0.0], add_indicator=True).fit_transform(rows).tolist()
    [[40.0, 1.0, 0.0, 0.0], [45.0, 2.0, 1.0, 0.0]]
    """

    fill_value: Any = 0.0
    add_indicator: bool = False
    invalid_rows: Any = "error"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the declarations; of X only the number and the names of columns are used."""
        columns = self._table(X, reset=True).shape[1]
        self.statistics_ = fill_values(self.fill_value, columns, getattr(self, "feature_names_in_", None))
        return self


allow_row_by_row(DeclaredImputer)


def fill_values(fill: Any, columns: int, feature_names: Any) -> FloatArray:
    """One finite number for each column."""
    if isinstance(fill, Mapping):
        names = [] if feature_names is None else [str(name) for name in feature_names]
        if set(fill) != set(names):
            raise ValueError(
                "fill_value by name must have a number for every column of a table with names; complete it, or pass "
                "one number for all."
            )
        fill = [fill[name] for name in names]
    try:
        values = np.array(np.broadcast_to(np.asarray(fill, dtype=np.float64), (columns,)))
    except (TypeError, ValueError):
        values = np.full(columns, np.nan)
    if not np.isfinite(values).all():
        raise ValueError(f"fill_value must be a finite number, or one for each of {columns} columns; got {fill!r}.")
    return values


def plan_means_with_gaps(public: Public, budget: Budget) -> ReleasePlan:
    """One joint release: for each column the sum of the values that are there, and their number."""
    return ReleasePlan("means with gaps", public, budget, {"mechanism": mechanisms.additive(budget, WHOLE)})


def learn_means_with_gaps(plan: ReleasePlan, data: Data, rng: RandomGenerator) -> FloatArray:
    """The means of the values that are there, clipped to the declared bounds.

    Guarantee: costs exactly the event of the plan.
    """
    public, noise = plan.public, plan.mechanism
    limits = limits_between(*public.complete_bounds())
    there = ~np.isnan(data.X)
    # The middle of a range adds 0 to the sum.
    filled = replace(data, X=np.where(there, data.X, limits.centre), owned=False)
    sums = moment_sums(filled, limits, slice(0, public.columns), rounded=noise.multiplier > 0.0)[0]
    weight = exact_weights(data.weight)
    counts = (there if weight is None else there * weight[:, None]).sum(axis=0, dtype=np.float64)
    sensitivity = mechanisms.counted_values(public.relation, public.columns)
    sums, counts = noise.release(rng, np.stack([sums, counts]), sensitivity)
    known = counts > max(FAINTEST_COUNT * noise.deviation(sensitivity), 0.0)
    mean = np.divide(sums, counts, out=np.zeros_like(sums), where=known)
    return limits.centre + limits.radius * np.clip(mean, -1.0, 1.0)


def plan_medians_with_gaps(public: Public, budget: Budget) -> ReleasePlan:
    """One selection for each column, among the values that are there."""
    return ReleasePlan("medians with gaps", public, budget, {"quantiles": plan_quantiles(public, budget, (0.5,))})


def learn_medians_with_gaps(plan: ReleasePlan, data: Data, rng: RandomGenerator) -> FloatArray:
    """The medians of the values that are there, between the declared bounds.

    Guarantee: costs at most the event of the plan. A missing value has weight 0, and each column its own weights.
    """
    low, high = plan.public.complete_bounds()
    there = ~np.isnan(data.X)
    filled, weight = np.where(there, data.X, 0.0), np.ones(data.rows) if data.weight is None else data.weight
    found = np.empty(data.columns)
    for j in range(data.columns):
        column = replace(data, X=filled[:, [j]], weight=weight * there[:, j], owned=False)
        alone = replace(plan.quantiles, public=replace(plan.public, columns=1, low=low[[j]], high=high[[j]]))
        found[j] = learn_quantiles(alone, low[[j]], high[[j]], column, rng)[0, 0]
    return found


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateImputer(FillsMissing, PrivateTransformer):
    """Fill in privately learned means or medians for missing values.

    Only values that are there count, and how many are there is part of what is paid for. `DeclaredImputer`, which fills
    in public numbers, costs nothing.

    Guarantee: `statistics_` is differentially private as `guarantee_` states.

    Parameters
    ----------
    strategy : {"mean", "median"}, default="mean"
        What is learned. A median stands outliers; a mean needs fewer rows.
    bounds : tuple (low, high) or dict
        Public limits of all columns, two numbers, two sequences with one number per column, or pairs by name. Columns
        of type bool need them too: a gap in a row takes that type from its column. Values outside count as the nearer
        limit.
    add_indicator : bool, default=False
        Whether to add a column for each column that is 1 where its value was missing.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        What is filled in for each column.

    See Also
    --------
    DeclaredImputer : Fills in public numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.preprocessing import PrivateImputer
    >>> ages = np.random.default_rng(0).uniform(20.0, 80.0, (20_000, 1))
    >>> ages[::5] = np.nan
    >>> step = PrivateImputer(bounds=(0.0, 120.0), random_state=0).fit(ages)
    >>> step.statistics_.round()  # a seed, so that this example repeats; leave it out
    array([50.])
    """

    strategy: str = "mean"
    bounds: Any = None
    add_indicator: bool = False

    _entries: ClassVar[Entries] = "gaps"
    # pandas makes objects of booleans as soon as one is missing: the type would tell whether one is.
    _types_bound: ClassVar[bool] = False

    def _plan(self, public: Public, budget: Budget) -> ReleasePlan:
        if self.strategy not in ("mean", "median"):
            raise ValueError(f"strategy must be 'mean' or 'median'; got {self.strategy!r}.")
        public.complete_bounds()
        return (plan_medians_with_gaps if self.strategy == "median" else plan_means_with_gaps)(public, budget)

    def _learn(self, plan: ReleasePlan, data: Data, rng: RandomGenerator) -> None:
        learn = learn_medians_with_gaps if self.strategy == "median" else learn_means_with_gaps
        self.statistics_ = learn(plan, data, rng)

    def _validated(self, X: Any, reset: bool) -> Any:
        if isinstance(self.bounds, str):
            raise ValueError(f"bounds must be public limits (low, high) here; got {self.bounds!r}.")
        return self._table(X, reset)
