"""Private regressors: least squares with its penalties, and the Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import RegressorMixin

from discreet.data.distributed.predictions import by_partition, gathered
from discreet.data.validation import no_entry_shown
from discreet.estimators.base import PrivateLinearModel, explains_parameters
from discreet.problem.losses import Huber, Loss, Squared
from discreet.problem.penalties import L1, L2, Penalty
from discreet.problem.penalties import ElasticNet as ElasticNetPenalty


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """Base class of the private regressors, which need a scale for the target.

    Parameters
    ----------
    y_bounds : tuple (low, high) or "data", optional
        Public limits of the target; targets outside are clipped. None learns them privately. "data" reads them from
        the rows, which is not private, and warns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients per unit of the columns, of entries clipped to `ranges_`.
    intercept_ : float
        Intercept; 0 if `fit_intercept` is False.
    """

    y_bounds: Any = None
    _regression: ClassVar[bool] = True
    _log_link: ClassVar[bool] = False

    def _partial_fit(self, X: Any, y: Any, **metadata: Any) -> Self:
        return self._advance(X, y, metadata)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _store(self, coef: Any, intercept: Any) -> None:
        self.coef_, self.intercept_ = coef, float(intercept)

    @by_partition
    def predict(self, X: Any) -> Any:
        """Return the predicted target of each row."""
        return self._margins(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the exact R2. NOT PRIVATE: it tells something about the rows of X and y.

        No noise is added, no cost is booked and `guarantee_` does not cover it, whatever the model states. Use it on
        public rows, or show the number to nobody who may not see the rows. `discreet.metrics.evaluate` releases R2
        privately, with a confidence interval.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,)
            Their targets.
        sample_weight : array of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            1 less the ratio of the squared errors of the model and of the mean of y.
        """
        with no_entry_shown():
            return float(super().score(*gathered(X, y), sample_weight))


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(PrivateRegressor):
    """Least squares with differential privacy, without a penalty.

    Minimises the mean of (x . w + b - y)^2 / 2.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    See Also
    --------
    Ridge, Lasso, ElasticNet : The same with a penalty.
    HuberRegressor : Bounds the influence of large residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = LinearRegression(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)  # a seed, so that this example repeats; leave it out
    True
    """

    def _loss(self, classes: int) -> Loss:
        return Squared()


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(PrivateRegressor):
    """Ridge regression with differential privacy.

    Minimises the mean of (x . w + b - y)^2 / 2, plus alpha / 2 * ||w||_2^2.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the penalty.

    See Also
    --------
    Lasso, ElasticNet : Penalties that set coefficients to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = Ridge(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)  # a seed, so that this example repeats; leave it out
    True
    """

    alpha: float = 1e-5

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return L2(self.alpha)


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class Lasso(PrivateRegressor):
    """Lasso with differential privacy.

    Minimises the mean of (x . w + b - y)^2 / 2, plus alpha * ||w||_1.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-2
        Strength of the penalty.

    See Also
    --------
    ElasticNet : Mixes this penalty with that of `Ridge`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = Lasso(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)  # a seed, so that this example repeats; leave it out
    True
    """

    alpha: float = 1e-2

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return L1(self.alpha)


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNet(PrivateRegressor):
    """Elastic net with differential privacy.

    Minimises the mean of (x . w + b - y)^2 / 2, plus
    alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||_2^2).

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-2
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Share of the L1 norm, between 0 and 1.

    See Also
    --------
    Lasso, Ridge : The two ends, l1_ratio 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import ElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = ElasticNet(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)  # a seed, so that this example repeats; leave it out
    True
    """

    alpha: float = 1e-2
    l1_ratio: float = 0.5

    def _loss(self, classes: int) -> Loss:
        return Squared()

    def _penalty(self) -> Penalty:
        return ElasticNetPenalty(self.alpha, self.l1_ratio)


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class HuberRegressor(PrivateRegressor):
    """Huber regression with differential privacy.

    Minimises the mean Huber loss of the residuals, quadratic up to `threshold` and linear beyond, plus
    alpha / 2 * ||w||_2^2.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the penalty.
    threshold : float, default=1.35
        Where the loss becomes linear, in units of y.

    See Also
    --------
    LinearRegression : Quadratic everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import HuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 3))
    >>> y = 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=5000)
    >>> model = HuberRegressor(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(-4.0, 4.0), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)  # a seed, so that this example repeats; leave it out
    True
    """

    alpha: float = 1e-5
    threshold: float = 1.35

    def _loss(self, classes: int) -> Loss:
        return Huber(self.threshold)

    def _penalty(self) -> Penalty:
        return L2(self.alpha)
