"""Tables, models and quantities for tests of fairness certificates."""

from __future__ import annotations

import warnings

import numpy as np

import discreet
from discreet.fairness.certificates.certify import certificate
from discreet.fairness.certificates.classifier import LinearClassifier
from discreet.problem.column_scaling import identity_scaling


def plain_classifier(weights, classes):
    """A classifier without intercept whose parameters are those of the user's columns."""
    weights = np.atleast_2d(weights)
    return LinearClassifier(
        np.asarray(classes),
        weights,
        np.zeros(weights.shape[0]),
        identity_scaling(weights.shape[1]),
        has_intercept=False,
    )


def random_case(seed, classes=2, rows=300, columns=4, groups=3):
    """A random classifier with a random table, whose labels agree with it more often than not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * rng.uniform(0.2, 3.0, columns)
    weights = rng.normal(size=(1 if classes == 2 else classes, columns))
    model = plain_classifier(weights, np.arange(classes))
    y = np.where(rng.uniform(size=rows) < 0.7, predictions(model, X), rng.integers(classes, size=rows))
    return model, X, y, rng.choice([f"g{k}" for k in range(groups)], size=rows), rng


def predictions(model, X):
    scores = X @ model.weights.T
    return model.classes[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]


def direct_values(y, predicted, group, favourable):
    """Every quantity from the definitions of the notions, by (notion, label, group)."""
    y, predicted, group = map(np.asarray, (y, predicted, group))
    right, found = y == predicted, {("accuracy", None, None): np.mean(y == predicted)}
    labels = np.unique(y)
    for r in np.unique(group):
        here = group == r
        found["accuracy parity", None, r] = right[here].mean() - right.mean()
        if len(labels) == 2:
            chosen = predicted == favourable
            found["demographic parity", favourable, r] = chosen[here].mean() - chosen.mean()
        for label in labels:
            cell = here & (y == label)
            value = right[cell].mean() - right[y == label].mean() if cell.any() else np.nan
            found["equalised odds", label, r] = value
            if label == favourable:
                found["equality of opportunity", label, r] = value
    return found


def plain_certificate(*args, **settings):
    """The certificate without its warning that the rows are read without noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.PrivacyLeakWarning)
        return certificate(*args, **settings)


def values_of(found):
    return {(s.notion, s.label, s.group): s for s in found.statements}


def uncovered(found, y, predicted, group, favourable):
    """The statements that another model's quantities contradict, up to rounding."""
    statements = values_of(found)
    direct = direct_values(y, predicted, group, favourable)
    return [
        about
        for about, s in statements.items()
        if not np.isnan(s.value) and not s.low - 1e-9 <= direct[about] - s.value <= s.high + 1e-9
    ]


def aligned_case(rows=400, columns=2, classes=2, seed=0, spread=1.0):
    """A table for which one movement of the parameters changes as many predictions as any bound allows.

    All rows are nearly parallel to the last axis, those of one group to one side and those of the other to the other
    side, so that a movement along that axis moves all margins as far as the distance allows. All rows have the label
    1; with more classes their rival is class 0.
    """
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], size=rows)
    X = np.zeros((rows, columns))
    X[:, 0] = 1e-4 * rng.uniform(-spread, spread, rows)
    X[:, -1] = np.where(group == "a", 1.0, -1.0)
    weights = np.zeros((1 if classes == 2 else classes, columns))
    if classes == 2:
        weights[0, 0] = 1e4
        model = plain_classifier(weights, [0, 1])
        y = np.ones(rows, dtype=int)
        y[::5] = 0
        return model, X, y, group
    weights[1, 0], weights[2:, 0] = 1e4, 0.0
    X[:, 1] = 1e-4
    weights[2:, 1] = -1e6  # the other classes are far away
    return plain_classifier(weights, np.arange(classes)), X, np.ones(rows, dtype=int), group


def moved(model, X, change):
    """Predictions after a movement of the parameters."""
    return predictions(plain_classifier(model.weights + change, model.classes), X)
