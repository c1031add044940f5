"""The step of a pipeline that does to rows what private models do before anything else: clip every column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from discreet.data.pipeline_steps import allow_row_by_row
from discreet.data.public import clip_columns
from discreet.data.validation import validate_features


@dataclass(eq=False, repr=False)
class ColumnClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Move every entry into the range of its column; each row is treated on its own.

    Nothing is learned from the rows but the number and the names of the columns, so the step may stand before a private
    model (`pipeline_guarantee` allows it) as well as in the pipelines that `to_pipeline` returns.

    Parameters
    ----------
    low, high : float or array of shape (n_features,), optional
        The ends of the ranges; None for no end. From public knowledge, or released by a private model.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        The ends of each column.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns; only if X was a table whose column names are all strings.

    Examples
    --------
    >>> from discreet.preprocessing import ColumnClipper
    >>> ColumnClipper(low=0.0, high=[10.0, 1.0]).fit_transform([[5.0, 5.0], [-5.0, 0.5]]).tolist()
    [[5.0, 1.0], [0.0, 0.5]]
    """

    low: Any = None
    high: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the rows, and keep the number and the names of the columns; nothing else is learned.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored.

        Returns
        -------
        self
            The step itself.
        """
        columns = validate_features(self, X, reset=True).shape[1]
        self.low_, self.high_ = _ends(self.low, self.high, columns)
        return self

    def transform(self, X: Any) -> Any:
        """Return the clipped rows; entries of sparse tables that are not stored stay 0.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            The rows.
        """
        check_is_fitted(self, "low_")
        return clip_columns(validate_features(self, X, reset=False), self.low_, self.high_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _ends(low: Any, high: Any, columns: int) -> tuple[Any, Any]:
    """One number per column for each end."""
    found = []
    for name, end, absent in (("low", low, -np.inf), ("high", high, np.inf)):
        try:
            values = np.asarray(absent if end is None else end, dtype=np.float64)
            found.append(np.broadcast_to(values, (columns,)).copy())
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number or one number for each of the {columns} columns.") from None
    if not (found[0] <= found[1]).all():
        raise ValueError("low must not be above high, and neither may be NaN; give the ends of every column in order.")
    return found[0], found[1]


allow_row_by_row(ColumnClipper)
