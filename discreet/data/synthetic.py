"""The papers' synthetic problems."""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray


def sparse_regression(
    rows: int = 1_000, columns: int = 1_000, active: int = 10, noise: float = 1.0, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Standard normal columns, `active` of which matter ("square" and "Sparse LASSO"): X, y, true weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    weights = np.zeros(columns)
    weights[rng.choice(columns, active, replace=False)] = rng.standard_normal(active)
    return X, X @ weights + noise * rng.standard_normal(rows), weights


def quasi_sparse_labels(
    rows: int = 1_000, columns: int = 100, spread: float = 1.0, noise: float = 1.0, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-normal weights of log-deviation `spread` ("log1": 1, "log2": 2): X, labels -1 and +1, true weights.

    A few weights dominate, the more so the larger the spread; labels are the signs of the centred noisy margins.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    weights = rng.lognormal(0.0, spread, columns)
    margins = X @ weights + noise * rng.standard_normal(rows)
    return X, np.where(margins > np.median(margins), 1.0, -1.0), weights


def standardised(X: FloatArray) -> FloatArray:
    """Columns with mean 0 and variance 1, by their exact moments. Not private: for experiments on public tables."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
