"""Small streams for tests: rows, estimators that declare what streams need, and a way to feed them."""

from __future__ import annotations

import warnings

import numpy as np

from discreet import InsecureRandomnessWarning, LogisticRegression, Ridge

ROWS, COLUMNS = 240, 3


def rows_of(rows=ROWS, columns=COLUMNS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, columns))
    return X, (X[:, 0] + 0.3 * rng.standard_normal(rows) > 0).astype(int)


def classifier(**options):
    return LogisticRegression(**{"bounds": (-1.0, 1.0), "classes": [0, 1], "public_n": ROWS, **options})


def regressor(**options):
    return Ridge(**{"bounds": (-1.0, 1.0), "y_bounds": (-2.0, 2.0), "public_n": ROWS, **options})


def feed(model, X, y, cuts=()):
    """One chunk after the other; seeds warn, on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
            if stop > start:
                model.partial_fit(X[start:stop], y[start:stop])
    return model


def weights(model):
    return np.append(np.ravel(model.coef_), model.intercept_)
