"""Tables with many columns against rows times epsilon: some of whose columns matter, some where all do."""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy.sparse as sp
from framework import Dataset
from stored_tables import load_benchmark

from discreet.data.synthetic import quasi_sparse_labels, sparse_regression
from discreet.problem.losses import Logistic, Squared


def signs(y):
    return np.where(y > np.median(y), 1.0, -1.0)


def texts(rows, columns, length=150, topics=20, seed=3):
    """Counts of words, by topics whose frequencies depend on the label; log counts, in rows of length 1."""
    rng = np.random.default_rng(seed)
    usual = 1.0 / np.arange(1, columns + 1)
    usual /= usual.sum()
    words = np.stack([rng.dirichlet(usual * columns * 0.1 + 1e-6) for _ in range(topics)])
    y = 2.0 * rng.integers(0, 2, rows) - 1.0
    prior = rng.dirichlet(np.full(topics, 0.3), 2)
    counts = np.empty((rows, columns))
    for i, label in enumerate(y):
        mixture = rng.dirichlet(3.0 * prior[int(label > 0)] + 1e-3) @ words
        counts[i] = rng.multinomial(max(5, rng.poisson(length)), 0.5 * mixture + 0.5 * usual)
    X = np.log1p(counts)
    return sp.csr_array(X / np.linalg.norm(X, axis=1)[:, None]), y


def indicators(rows, columns, active=8, seed=0):
    """Sparse columns of 0 and 1, of which some of the more frequent ones matter."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, columns)) < np.minimum(0.5, 0.02 * rng.lognormal(0.0, 1.0, columns))).astype(float)
    weights = np.zeros(columns)
    weights[np.argsort(-X.mean(axis=0))[rng.choice(50, active, replace=False)]] = 2.0 * rng.standard_normal(active)
    margins = X @ weights
    return sp.csr_array(X), np.where(margins - np.median(margins) + rng.logistic(size=rows) > 0.0, 1.0, -1.0)


def factors(rows, columns, number=10, seed=0):
    """Columns that are noisy copies of few common factors: every one of them tells something."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((rows, number)) * np.arange(1, number + 1) ** -0.5
    X = common @ rng.standard_normal((number, columns)) + 0.5 * rng.standard_normal((rows, columns))
    return X, common[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_normal(rows)


def even(rows, columns, seed=0):
    """Independent columns that all matter as much: nothing is sparse."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, X @ rng.standard_normal(columns) / math.sqrt(columns) + 0.5 * rng.standard_normal(rows)


def labels_of_factors(rows, columns):
    X, y = factors(rows, columns)
    return X, signs(y)


def without_weights(make, **options):
    """Rows and targets of a generator that also tells its weights."""
    return make(**options)[:2]


def stored(name):
    X, y = load_benchmark(name)
    return X, 2.0 * y - 1.0


def row(name, load, labels, table=None):
    source, loss = "stored" if table else "generated", Logistic() if labels else Squared()
    dear = table == "dorothea_full"
    return Dataset(name, source, load, labels, ("screening",), table, {"loss": loss}, dear)


LASSO, PART = functools.partial(without_weights, sparse_regression), functools.partial
screening_tables = [
    row("sparse LASSO 1,000 x 1,000", LASSO, False),
    row("sparse LASSO 4,000 x 1,000", PART(LASSO, rows=4_000), False),
    row("log2 1,000 x 100", PART(without_weights, quasi_sparse_labels, spread=2.0), True),
    row("madelon 2,600 x 500", PART(stored, "madelon"), True, "madelon"),
    row("dorothea 1,150 x 100,000", PART(stored, "dorothea_full"), True, "dorothea_full"),
    row("texts 10,000 x 1,000", PART(texts, 10_000, 1_000), True),
    row("indicators 4,000 x 2,000", PART(indicators, 4_000, 2_000), True),
    row("factors 2,000 x 1,000", PART(factors, 2_000, 1_000), False),
    row("factors, labels 2,000 x 1,000", PART(labels_of_factors, 2_000, 1_000), True),
    row("all matter 3,000 x 200", PART(even, 3_000, 200), False),
]
