"""What the tests of private evaluations share: stub models, drawn tables, and noisy sums with a given noise."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from discreet.metrics.released_sums import NoisySums

SLOPE = 1.5


class StubClassifier:
    """Scores are the first column; probabilities are their logistic function, so the model is calibrated."""

    classes_ = np.array([0, 1])

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return (X[:, 0] > 0.0).astype(int)

    def predict_proba(self, X):
        return np.column_stack([expit(-X[:, 0]), expit(X[:, 0])])


class StubRegressor:
    """Predicts the first column."""

    def predict(self, X):
        return X[:, 0]


def draw_labels(rows, rng, shift=-0.5):
    """Scores, and labels whose log-odds are these scores."""
    X = rng.normal(shift, SLOPE, (rows, 1))
    return X, (rng.random(rows) < expit(X[:, 0])).astype(int)


def draw_targets(rows, rng, noise=0.08, skill=0.9):
    """Predictions, and targets between 0 and 1 that they explain in part."""
    signal = rng.beta(2.0, 5.0, rows)
    target = np.clip(skill * signal + (1.0 - skill) * rng.random(rows) + noise * rng.normal(size=rows), 0.0, 1.0)
    return signal[:, None], target


def noisy_sums(measure, X, y, deviation, rng, known=True, laplace=False):
    """The sums that `release_sums` would release if the noise of a part of weight 1 had this deviation."""
    found = measure.contributions(X, y)
    exact = np.concatenate([found[part.name].total(part, None) for part in measure.parts])
    deviations = np.concatenate([np.full(part.size, deviation / part.weight) for part in measure.parts])
    draws = rng.laplace(size=exact.size) / np.sqrt(2.0) if laplace else rng.normal(size=exact.size)
    return NoisySums(measure.parts, exact + deviations * draws, deviations, laplace, float(len(y)) if known else None)
