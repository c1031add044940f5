"""Scores that are sums over rows of numbers between 0 and 1, so that one row moves them by at most 1.

Proof: docs/guarantees/model-selection.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from discreet._common.types import FloatArray
from discreet.data.rows import on_term_grid

POWERS = {"neg_mean_absolute_error": 1, "neg_mean_squared_error": 2}  # of the error, for regressions


@dataclass(frozen=True)
class RowScore:
    """A score by scikit-learn's name; `low` and `high` are the declared limits of a regression target.

    Guarantee: each row's number lies in [0, 1] and depends on that row and on the model alone.
    """

    scoring: str
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, model: Any, scoring: str | None) -> RowScore:
        """The score for an estimator that declares its target; None takes the first that the model has."""
        names = [*POWERS]
        if is_classifier(model):
            names = ["neg_brier_score"] * hasattr(model, "predict_proba") + ["accuracy"]
        if scoring is not None and scoring not in names:
            raise ValueError(f"scoring must be one of {', '.join(names)} for {type(model).__name__}; got {scoring!r}.")
        low, high = (0.0, 1.0) if is_classifier(model) else map(float, model.y_bounds)
        return cls(scoring or names[0], low, high)

    def rows(self, model: Any, X: Any, y: Any) -> FloatArray:
        """One number in [0, 1] for each row; what is not a number counts as the worst."""
        y = np.asarray(y)
        if self.scoring == "accuracy":
            scores = np.asarray(model.predict(X) == y, dtype=np.float64)
        elif self.scoring == "neg_brier_score":
            # Half the squared distance of the probabilities from the label is at most 1.
            wanted = y[:, None] == np.asarray(model.classes_)[None, :]
            scores = np.asarray(1.0 - 0.5 * np.sum((model.predict_proba(X) - wanted) ** 2, axis=1))
        else:  # absolute errors, with 1 for the width of the declared limits, to which the target is clipped
            errors = np.abs(model.predict(X) - np.clip(y, self.low, self.high)) / (self.high - self.low)
            scores = 1.0 - np.asarray(errors, dtype=np.float64) ** POWERS[self.scoring]
        return np.where(scores >= 0.0, np.minimum(scores, 1.0), 0.0)

    def total(self, model: Any, X: Any, y: Any, weight: FloatArray) -> float:
        """The sum over the rows, each times its weight, which is at most 1; 0 if there are none.

        Exact, since all terms are multiples of a power of two: the rounding of a sum would move it by more than 1.
        """
        if weight.size == 0:  # models refuse to predict for an empty table
            return 0.0
        return float(on_term_grid(weight * self.rows(model, X, y)).sum())

    def in_units(self, mean: float) -> float:
        """A mean of such numbers as scikit-learn states this score."""
        if self.scoring == "accuracy":
            return mean
        return (mean - 1.0) * (self.high - self.low) ** POWERS.get(self.scoring, 0)
