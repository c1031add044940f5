"""Which solver `auto` should take with several classes or many columns: accuracy and log-loss of each, with defaults.

.venv/bin/python benchmarks/choice.py                     # all tables
.venv/bin/python benchmarks/choice.py digits bag-6400-1000
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from stored_tables import command

from discreet import IncompatibleSolverError, LogisticRegression

SOLVERS = ("auto", "newton", "gd", "cd", "sgd")
EPSILONS, SEEDS = (0.3, 1.0, 3.0), 2
NAMES = [
    "digits",
    "wine",
    "iris",
    "three",
    "six",
    "spread-16000-500",
    "bag-6400-1000",
    "bag-6400-2000",
    "bag-6400-20000",
]


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


def table(name):
    """X and y by name; sizes are part of some names."""
    kind, *sizes = name.split("-")
    if sizes:
        make = bag_of_words if kind == "bag" else spread
        return make(*map(int, sizes))
    if kind in ("digits", "wine", "iris"):
        return getattr(datasets, f"load_{kind}")(return_X_y=True)
    if kind == "three":
        return datasets.make_classification(5_000, 20, n_informative=8, n_redundant=6, n_classes=3, random_state=1)
    weights = [0.5, 0.2, 0.1, 0.1, 0.05, 0.05]
    options = {"n_informative": 15, "n_redundant": 10, "n_classes": 6, "n_clusters_per_class": 1, "weights": weights}
    return datasets.make_classification(20_000, 40, random_state=2, **options)


def measure(name, solver, epsilon, seed):
    """Accuracy and log-loss on a fifth of the rows that is held out."""
    X, y = table(name)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    classes = range(int(y.max()) + 1)
    model = LogisticRegression(epsilon=epsilon, classes=classes, solver=solver, random_state=seed)
    model.fit(X[train], y[train])
    own = model.predict_proba(X[test])[np.arange(len(test)), y[test]]
    return np.mean(model.predict(X[test]) == y[test]), -np.log(np.maximum(own, 1e-12)).mean()


def main():
    parser = command(__doc__, other="digits, wine and iris of scikit-learn; the others are generated")
    parser.add_argument("tables", nargs="*", default=NAMES, help=f"some of {', '.join(NAMES)}; all by default")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.tables:
        for epsilon in EPSILONS:
            line = f"{name:18s} epsilon {epsilon:<4}"
            for solver in SOLVERS:
                start = time.perf_counter()
                try:
                    accuracy, loss = np.mean([measure(name, solver, epsilon, seed) for seed in range(SEEDS)], axis=0)
                except IncompatibleSolverError:
                    continue
                seconds = (time.perf_counter() - start) / SEEDS
                line += f" | {solver} {accuracy:.3f} {loss:.3f} ({seconds:.1f} s)"
            print(line, flush=True)


if __name__ == "__main__":
    main()
