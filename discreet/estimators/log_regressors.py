"""Private regressors of a mean that is exp(x . w + b): counts (Poisson) and positive amounts (Gamma)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.data.distributed.predictions import by_partition, gathered
from discreet.data.public import check_complete_bounds
from discreet.estimators.base import explains_parameters
from discreet.estimators.reading.linear_form import LARGEST_LOG
from discreet.estimators.regressors import PrivateRegressor
from discreet.privacy.budget import Budget
from discreet.problem.losses import Gamma, Loss, Poisson
from discreet.problem.losses.log_link import EXACT_LIMIT, LIMIT
from discreet.problem.penalties import L2, Penalty


@dataclass(eq=False, repr=False, kw_only=True)
class LogLinkRegressor(PrivateRegressor):
    """Base class of the regressors with a log link.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the penalty.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients per unit of the columns, of entries clipped to `ranges_`; exp(coef_) is the rate ratio per unit.
    intercept_ : float
        Intercept; 0 if `fit_intercept` is False.
    """

    alpha: float = 1e-5

    _log_link: ClassVar[bool] = True
    _kind: ClassVar[type[Poisson] | type[Gamma]]
    _power: ClassVar[int]  # of the Tweedie deviance

    def _loss(self, classes: int) -> Loss:
        epsilon = self.epsilon
        exact = epsilon.is_infinite if isinstance(epsilon, Budget) else epsilon == float("inf")
        if not (self.fit_intercept or exact):
            raise ValueError(
                f"{type(self).__name__} needs fit_intercept=True: the mean of y, which is learned privately, is the "
                "unit of everything else."
            )
        declared = None if isinstance(self.y_bounds, str) else check_complete_bounds(self.y_bounds, 1, "y_bounds")
        if declared is not None and declared[0][0] < 0.0:
            raise ValueError(f"y_bounds of {type(self).__name__} must not be negative: pass y_bounds=(0, high).")
        return self._kind(EXACT_LIMIT if exact else LIMIT)

    def _penalty(self) -> Penalty:
        return L2(self.alpha)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    @by_partition
    def predict(self, X: Any) -> Any:
        """Return the predicted mean of each row, which is positive."""
        return np.exp(np.clip(self._margins(X), -LARGEST_LOG, LARGEST_LOG))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the exact D2, the share of the deviance that is explained. NOT PRIVATE: it tells about the rows.

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
            1 less the ratio of the deviances of the model and of the mean of y.
        """
        from sklearn.metrics import d2_tweedie_score

        X, y = gathered(X, y)
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=self._power))


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class PoissonRegressor(LogLinkRegressor):
    """Poisson regression with a log link and differential privacy, for counts.

    Minimises the mean of exp(x . w + b) - y (x . w + b), half the Poisson deviance, plus alpha / 2 * ||w||_2^2. With a
    finite epsilon, the exponential goes on as a parabola beyond 8 times the mean of y. Negative y count as 0.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    See Also
    --------
    GammaRegressor : For positive amounts, such as costs.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import PoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 2))
    >>> y = rng.poisson(np.exp(1.0 + X[:, 0] - 0.5 * X[:, 1]))
    >>> model = PoissonRegressor(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(0, 30), random_state=0).fit(X, y)
    >>> np.exp(model.coef_).round(1)  # rate ratios; a seed, so that this example repeats; leave it out
    array([2.7, 0.6])
    """

    _kind: ClassVar[type[Poisson] | type[Gamma]] = Poisson
    _power: ClassVar[int] = 1


@explains_parameters
@dataclass(eq=False, repr=False, kw_only=True)
class GammaRegressor(LogLinkRegressor):
    """Gamma regression with a log link and differential privacy, for positive amounts.

    Minimises the mean of y exp(-(x . w + b)) + x . w + b, half the Gamma deviance, plus alpha / 2 * ||w||_2^2. With a
    finite epsilon, the exponential goes on as a parabola where y is more than 8 times its prediction. Targets that are
    not positive count as a tiny amount.

    Guarantee: the fitted model is differentially private as `guarantee_` states.

    See Also
    --------
    PoissonRegressor : For counts.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import GammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 2))
    >>> y = rng.gamma(2.0, np.exp(4.0 + X[:, 0] - 0.5 * X[:, 1]) / 2.0)
    >>> model = GammaRegressor(epsilon=1.0, bounds=(-1.0, 1.0), y_bounds=(0, 1000), random_state=0).fit(X, y)
    >>> bool(model.predict([[1.0, 0.0]]) > 2.0 * model.predict([[-1.0, 0.0]]))  # a seed: leave it out
    True
    """

    _kind: ClassVar[type[Poisson] | type[Gamma]] = Gamma
    _power: ClassVar[int] = 2
