"""Private regressors: least squares with its penalties, and the Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from discreet.estimators.base import PrivateLinearModel, only_weights
from discreet.problem.losses import Huber, Loss, Squared
from discreet.problem.penalties import L1, L2, Penalty
from discreet.problem.penalties import ElasticNet as ElasticNetPenalty


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """Regressors add `y_bounds`: public (low, high) of the target. None learns its scale privately."""

    y_bounds: Any = None
    _regression: ClassVar[bool] = True

    def fit(self, X: Any, y: Any, **metadata: Any) -> PrivateRegressor:
        """Fit privately; the optional `sample_weight` must lie in [0, 1]."""
        table, target, owned = self._validate(X, y)
        weight = only_weights(metadata, target.shape[0])
        self._fit(table, target, owned, 1, weight)
        return self

    def _partial_fit(self, X: Any, y: Any, **metadata: Any) -> PrivateRegressor:
        table, target, owned = self._validate(X, y, reset=getattr(self, "stream_", None) is None)
        weight = only_weights(metadata, target.shape[0])
        self._advance(table, np.asarray(target, dtype=np.float64), owned, 1, weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _store(self, coef: Any, intercept: Any) -> None:
        self.coef_, self.intercept_ = coef, float(intercept)

    def predict(self, X: Any) -> Any:
        """The predicted target of each row."""
        return self._margins(X)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(PrivateRegressor):
    """Private least squares without a penalty."""

    def _loss(self, classes: int) -> Loss:
        return Squared()


@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(PrivateRegressor):
    """Private ridge regression: mean (x.w - y)^2 / 2 + alpha / 2 * ||w||_2^2."""

    alpha: float = 1e-5

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return L2(self.alpha)


@dataclass(eq=False, repr=False, kw_only=True)
class Lasso(PrivateRegressor):
    """Private lasso: mean (x.w - y)^2 / 2 + alpha * ||w||_1."""

    alpha: float = 1e-2

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return L1(self.alpha)


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNet(PrivateRegressor):
    """Private elastic net: mean (x.w - y)^2 / 2 + alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||_2^2)."""

    alpha: float = 1e-2
    l1_ratio: float = 0.5

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return ElasticNetPenalty(self.alpha, self.l1_ratio)


@dataclass(eq=False, repr=False, kw_only=True)
class HuberRegressor(PrivateRegressor):
    """Private Huber regression: quadratic up to `threshold` (in units of y), linear beyond; ridge penalty."""

    alpha: float = 1e-5
    threshold: float = 1.35

    def _loss(self, classes: int) -> Loss:
        return Huber(self.threshold)

    def _penalty(self) -> Penalty:
        return L2(self.alpha)
