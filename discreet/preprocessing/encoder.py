"""DeclaredOneHotEncoder: categories that are declared become columns of zeros and ones; nothing is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.data.validation import validate_values
from discreet.preprocessing.categories import (
    category_codes,
    category_lists,
    input_names,
    one_hot,
    one_hot_names,
)
from discreet.preprocessing.row_by_row import allow_row_by_row


@dataclass(eq=False, repr=False, kw_only=True)
class DeclaredOneHotEncoder(TransformerMixin, BaseEstimator):
    """Turn categories that are known in advance into columns of zeros and ones, with one for all other values.

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

    Attributes
    ----------
    categories_ : list of list of str
        The categories of each column.
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
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> encoder.get_feature_names_out().tolist()
    ['colour_red', 'colour_green', 'colour_other']
    """

    categories: Any
    other: bool = True
    missing_indicator: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the declarations; of X only the number and the names of columns are used."""
        table = validate_values(self, X, reset=True)
        self.categories_ = category_lists(self.categories, table.shape[1], getattr(self, "feature_names_in_", None))
        self.get_feature_names_out()
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of zeros and ones, of type bool, so that estimators know their bounds."""
        check_is_fitted(self, "categories_")
        codes = category_codes(validate_values(self, X, reset=False), self.categories_)
        return one_hot(codes, [len(each) for each in self.categories_], self.other, self.missing_indicator)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns, `column_category`."""
        check_is_fitted(self, "categories_")
        names = input_names(self, input_features)
        return np.array(one_hot_names(self.categories_, names, self.other, self.missing_indicator), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags


allow_row_by_row(DeclaredOneHotEncoder)
