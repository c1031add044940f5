"""The numbers behind `predict`: clip every column, add up coefficient times entry, turn scores into answers.

Every export is made of these numbers alone, so that none can leave out the clipping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data.validation import LARGEST_BOUND

LARGEST_LOG = 700.0  # of a prediction with a log link, which must be finite and above 0
Link = Literal["none", "log", "sigmoid", "softmax", "one_vs_rest"]


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A fitted model as numbers.

    Attributes
    ----------
    names : tuple of str or None
        The names of the columns, where the model knows them.
    low, high : array of shape (columns,)
        The ends to which entries are clipped; infinite where there is none.
    coef : array of shape (outputs, columns)
        Coefficients of the clipped entries; one output for two classes and for regressions.
    intercept : array of shape (outputs,)
    classes : array of shape (classes,) or None
        The labels of a classifier, in order.
    link : {"none", "log", "sigmoid", "softmax", "one_vs_rest"}
        How scores become probabilities; "none" if the model has none, "log" if a prediction is the exponential of its
        score.
    power : int or None
        Of the Tweedie deviance that a model with a log link minimises: 1 for counts, 2 for amounts.
    """

    names: tuple[str, ...] | None
    low: FloatArray
    high: FloatArray
    coef: FloatArray
    intercept: FloatArray
    classes: npt.NDArray[Any] | None
    link: Link
    power: int | None = None

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.low.size

    @property
    def labels(self) -> list[Any]:
        """The classes as Python values; empty for a regression."""
        return [] if self.classes is None else self.classes.tolist()

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names of the columns; x0, x1, ... where there are none, as scikit-learn calls them."""
        return self.names if self.names is not None else tuple(f"x{j}" for j in range(self.columns))


def linear_form(estimator: Any) -> LinearForm:
    """Return the numbers behind the predictions of a fitted estimator.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Fitted, or from a model file.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "coef_")
    names = getattr(estimator, "feature_names_in_", None)
    low, high = (np.asarray(end, dtype=np.float64) for end in estimator.ranges_)
    classes = getattr(estimator, "classes_", None)
    return LinearForm(
        names=None if names is None else tuple(str(name) for name in names),
        low=low,
        high=high,
        coef=np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64)),
        intercept=np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64)),
        classes=classes,
        link=_link(estimator, classes),
        power=getattr(estimator, "_power", None),
    )


def has_end(ends: FloatArray) -> npt.NDArray[np.bool_]:
    """Which ends of ranges are limits that somebody chose or learned, and no guard against overflow."""
    return np.abs(ends) < LARGEST_BOUND


def _link(estimator: Any, classes: Any) -> Link:
    if getattr(estimator, "_log_link", False):
        return "log"
    if classes is None or not hasattr(estimator, "predict_proba"):
        return "none"
    if len(classes) == 2:
        return "sigmoid"
    return "softmax" if estimator.multi_class == "multinomial" else "one_vs_rest"
