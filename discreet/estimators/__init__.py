"""scikit-learn estimators: thin, they turn parameters into a problem, a budget and a solver."""

from discreet.estimators.base import PrivateLinearModel, clip_columns, only_weights
from discreet.estimators.classifiers import LinearSVC, LogisticRegression, PrivateClassifier
from discreet.estimators.regressors import ElasticNet, HuberRegressor, Lasso, LinearRegression, PrivateRegressor, Ridge

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PrivateClassifier",
    "PrivateLinearModel",
    "PrivateRegressor",
    "Ridge",
    "clip_columns",
    "only_weights",
]
