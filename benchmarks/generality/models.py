"""What is compared on every table: default estimators, a private constant with the whole budget, and no privacy."""

from __future__ import annotations

import math

import numpy as np
from sklearn import linear_model
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet import Budget, LogisticRegression, Relation, Ridge
from discreet.preprocessing import PrivateBounds, private_means
from discreet.privacy import mechanisms

RANGE_SHARE = 0.5  # of the private constant's budget, for the range of a target without declared bounds


def fitted(solver, X, y, classes, epsilon, seed):
    """A private model with nothing passed but the budget and the solver."""
    kind = LogisticRegression if classes else Ridge
    return kind(epsilon=epsilon, solver=solver, random_state=seed).fit(X, y)


def private_constant(y, classes, epsilon, seed):
    """The score (log-odds or value) of a constant on which the whole budget is spent."""
    column, delta = np.asarray(y, dtype=np.float64)[:, None], 1.0 / len(y) ** 2
    if classes:
        share = expected_share(y, epsilon, delta, seed)
        return math.log(share / (1.0 - share))
    part, rest = RANGE_SHARE * epsilon, (1.0 - RANGE_SHARE) * epsilon  # composed simply: the baseline is not helped
    ranges = PrivateBounds(epsilon=part, delta=0.5 * delta, random_state=seed).fit(column)
    if ranges.low_[0] == ranges.high_[0]:
        return float(ranges.low_[0])
    return float(private_means(column, (ranges.low_, ranges.high_), rest, 0.5 * delta, random_state=seed + 1).values[0])


def expected_share(y, epsilon, delta, seed):
    """The mean of the share of label 1 given its noisy value, all shares being equally likely before."""
    noise = mechanisms.additive(Budget(epsilon, delta), 1.0)
    deviation = noise.deviation(mechanisms.one_hot_counts(Relation.REPLACE, 1)) / len(y) / math.sqrt(2.0)
    noisy = float(np.mean(y)) + deviation * np.random.default_rng(seed).normal()
    grid = np.linspace(0.0, 1.0, 2001)[1:-1]
    exponent = -0.5 * ((grid - noisy) / deviation) ** 2
    weights = np.exp(exponent - exponent.max())
    return float(np.clip((grid * weights).sum() / weights.sum(), 0.5 / len(y), 1.0 - 0.5 / len(y)))


def without_privacy(X, y, classes):
    model = linear_model.LogisticRegression(C=1.0, max_iter=2000) if classes else linear_model.Ridge(1.0)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def scores_of(model, X, classes):
    return model.decision_function(X) if classes else model.predict(X)


def loss_of(scores, y, classes, unit):
    """Log-loss, or the mean squared error over `unit`."""
    if classes:
        return float(np.mean(np.logaddexp(0.0, np.where(y == 1.0, -scores, scores))))
    with np.errstate(over="ignore"):
        return float(np.mean((scores - y) ** 2) / unit)


def calibration_slope(scores, y):
    """The factor by which scores would have to be multiplied to be calibrated; 1 is best, below 1 too extreme."""
    if np.std(scores) < 1e-9 or len(np.unique(y)) < 2:
        return math.nan
    clipped = np.clip(scores, -30.0, 30.0)
    fit = linear_model.LogisticRegression(C=1e6, max_iter=500).fit(clipped[:, None], y)
    return float(fit.coef_[0, 0])
