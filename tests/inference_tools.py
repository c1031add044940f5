"""Tables and fits for the tests of intervals."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import expit

from discreet import LinearRegression, LogisticRegression

COEF, INTERCEPT = np.array([1.0, 0.0, -0.5]), 0.5


def linear_table(rows, seed, noise=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, COEF.size))
    errors = rng.normal(size=rows) if noise is None else noise(rng, rows)
    return X, INTERCEPT + X @ COEF + errors


def labels_table(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, COEF.size))
    return X, (rng.random(rows) < expit(INTERCEPT + X @ COEF)).astype(int)


def counts_table(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, COEF.size))
    return X, rng.poisson(np.exp(INTERCEPT + X @ COEF))


def fitted(X, y, kind=LinearRegression, inference=True, sample_weight=None, **settings):
    """A fit for intervals, quietly."""
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    if kind is LogisticRegression:
        settings = {"classes": [0, 1]} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(inference=inference, **settings).fit(X, y, **given)


def sandwich(X, slopes, curvatures, weight=1.0):
    """The covariance that is robust to unequal spread (HC0), from the residuals' slopes and curvatures."""
    rows = np.column_stack([X, np.ones(len(X))])
    bread = np.linalg.inv(rows.T @ (rows * (weight * curvatures)[:, None]))
    return bread @ (rows.T @ (rows * (weight * slopes)[:, None] ** 2)) @ bread
