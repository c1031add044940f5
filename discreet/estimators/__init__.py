"""scikit-learn estimators: thin, they turn parameters into a problem, a budget and a solver."""

from typing import TYPE_CHECKING

from discreet._common.lazy import lazy_names

_HOMES = {
    "PrivateLinearModel": "base",
    "LinearSVC": "classifiers",
    "LogisticRegression": "classifiers",
    "PrivateClassifier": "classifiers",
    "GammaRegressor": "log_regressors",
    "PoissonRegressor": "log_regressors",
    "ElasticNet": "regressors",
    "HuberRegressor": "regressors",
    "Lasso": "regressors",
    "LinearRegression": "regressors",
    "PrivateRegressor": "regressors",
    "Ridge": "regressors",
}
__all__ = [*_HOMES]  # noqa: PLE0604 - every entry is a string
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    from discreet.estimators.base import PrivateLinearModel as PrivateLinearModel
    from discreet.estimators.classifiers import LinearSVC as LinearSVC
    from discreet.estimators.classifiers import LogisticRegression as LogisticRegression
    from discreet.estimators.classifiers import PrivateClassifier as PrivateClassifier
    from discreet.estimators.log_regressors import GammaRegressor as GammaRegressor
    from discreet.estimators.log_regressors import PoissonRegressor as PoissonRegressor
    from discreet.estimators.regressors import ElasticNet as ElasticNet
    from discreet.estimators.regressors import HuberRegressor as HuberRegressor
    from discreet.estimators.regressors import Lasso as Lasso
    from discreet.estimators.regressors import LinearRegression as LinearRegression
    from discreet.estimators.regressors import PrivateRegressor as PrivateRegressor
    from discreet.estimators.regressors import Ridge as Ridge
