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
        known = CLASSIFICATION if is_classifier(model) else REGRESSION
        names = [name for name in known if name != "neg_brier_score" or hasattr(model, "predict_proba")]
        if scoring is not None and scoring not in names:
            raise ValueError(f"scoring must be one of {', '.join(names)} for {type(model).__name__}; got {scoring!r}.")
        low, high = (0.0, 1.0) if is_classifier(model) else map(float, model.y_bounds)
        return cls(scoring or names[0], low, high)

    def rows(self, model: Any, X: Any, y: Any) -> FloatArray:
        """One number in [0, 1] for each row; what is not a number counts as the worst."""
        scores = (CLASSIFICATION | REGRESSION)[self.scoring](self, model, X, np.asarray(y))
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
        width = self.high - self.low
        unit = {"neg_brier_score": 1.0, "neg_mean_absolute_error": width, "neg_mean_squared_error": width**2}
        return (mean - 1.0) * unit[self.scoring]

    def errors(self, predicted: Any, target: Any) -> FloatArray:
        """Absolute errors, with 1 for the width of the declared limits, to which the target is clipped."""
        clipped = np.clip(target, self.low, self.high)
        return np.asarray(np.abs(predicted - clipped) / (self.high - self.low), dtype=np.float64)


def _right(_: RowScore, model: Any, X: Any, y: Any) -> FloatArray:
    return np.asarray(model.predict(X) == y, dtype=np.float64)


def _brier(_: RowScore, model: Any, X: Any, y: Any) -> FloatArray:
    """1 less half the squared distance of the probabilities from the label, which is at most 1."""
    wanted = np.asarray(y)[:, None] == np.asarray(model.classes_)[None, :]
    return np.asarray(1.0 - 0.5 * np.sum((model.predict_proba(X) - wanted) ** 2, axis=1))


def _absolute(score: RowScore, model: Any, X: Any, y: Any) -> FloatArray:
    return 1.0 - score.errors(model.predict(X), y)


def _squared(score: RowScore, model: Any, X: Any, y: Any) -> FloatArray:
    return np.asarray(1.0 - score.errors(model.predict(X), y) ** 2)


CLASSIFICATION: dict[str, Any] = {"neg_brier_score": _brier, "accuracy": _right}
REGRESSION: dict[str, Any] = {"neg_mean_absolute_error": _absolute, "neg_mean_squared_error": _squared}
