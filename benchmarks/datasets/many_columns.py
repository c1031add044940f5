"""Labels 0 and 1 with many columns, for the choice of a solver: bags of words, and dense rows of falling variances."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp
from framework import Dataset


def bag_of_words(rows, columns, seed=0):
    """Two topics over words whose frequencies fall like 1 / rank; entries are log(1 + count)."""
    rng = np.random.default_rng(seed)
    topics = np.exp(0.6 * rng.standard_normal((2, columns))) / np.arange(1, columns + 1) ** 0.9
    topics /= topics.sum(axis=1, keepdims=True)
    y = rng.integers(0, 2, rows)
    X = sp.lil_array((rows, columns))
    for i in range(rows):
        words = rng.choice(columns, max(5, rng.poisson(60)), p=topics[y[i]])
        found, counts = np.unique(words, return_counts=True)
        X[i, found] = np.log1p(counts)
    return X.tocsr(), y


def spread(rows, columns, seed=0):
    """Dense rows whose variance in direction k is 1 / k, with labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) / np.sqrt(np.arange(1, columns + 1))
    X = X @ np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    X /= X.std(axis=0)
    scores = X @ rng.standard_normal(columns)
    return X, (2.0 * scores / scores.std() + rng.logistic(size=rows) > 0.0).astype(int)


many_columns = [
    Dataset(f"{name} {rows:,} x {columns:,}", "generated", functools.partial(make, rows, columns), True, ("choice",))
    for name, make, rows, columns in (
        ("spread", spread, 16_000, 500),
        ("bag of words", bag_of_words, 6_400, 1_000),
        ("bag of words", bag_of_words, 6_400, 2_000),
        ("bag of words", bag_of_words, 6_400, 20_000),
    )
]
