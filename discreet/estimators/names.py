"""The names of the estimators, by task; nothing heavy is imported to know them."""

from __future__ import annotations

CLASSIFIERS = ("LogisticRegression", "LinearSVC")
REGRESSORS = (
    "Ridge",
    "LinearRegression",
    "Lasso",
    "ElasticNet",
    "HuberRegressor",
    "PoissonRegressor",
    "GammaRegressor",
)
