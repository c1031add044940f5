"""Tables with many columns against rows times epsilon: screening beside the other solvers, all at their defaults.

Run: make bench-screening, or this file with names of tables. Prints the table of docs/benchmarks/screening.md: the loss
on rows held out over that of the best constant, as the mean of some runs, with the worst of them in brackets.
"""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from stored_tables import command, labelled, load_benchmark

from discreet import Budget, Problem, solve
from discreet.data.synthetic import quasi_sparse_labels, sparse_regression
from discreet.problem.constraints import L1Ball
from discreet.problem.losses import Logistic, Squared

EPSILONS = (0.3, 1.0, 3.0, 10.0)
SOLVERS = ("screened", "greedy-cd", "cd", "gd", "frank-wolfe")
RADIUS = 3.0  # of the L1 ball that Frank-Wolfe needs, in standard deviations of the columns


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


def tables():
    yield "sparse LASSO 1,000 x 1,000", *sparse_regression()[:2], Squared()
    yield "sparse LASSO 4,000 x 1,000", *sparse_regression(rows=4_000)[:2], Squared()
    yield "log2 1,000 x 100", *quasi_sparse_labels(spread=2.0)[:2], Logistic()
    X, y = load_benchmark("madelon")
    yield labelled("madelon 2,600 x 500", "madelon"), X, 2.0 * y - 1.0, Logistic()
    X, y = load_benchmark("dorothea_full")
    yield labelled("dorothea 1,150 x 100,000", "dorothea_full"), X, 2.0 * y - 1.0, Logistic()
    yield "texts 10,000 x 1,000", *texts(10_000, 1_000), Logistic()
    yield "indicators 4,000 x 2,000", *indicators(4_000, 2_000), Logistic()
    X, y = factors(2_000, 1_000)
    yield "factors 2,000 x 1,000", X, y, Squared()
    yield "factors, labels 2,000 x 1,000", X, signs(y), Logistic()
    yield "all matter 3,000 x 200", *even(3_000, 200), Squared()


def ratios(X, y, loss, solver, epsilon, runs):
    """Losses of runs on rows held out, over that of the best constant."""
    order = np.random.default_rng(1).permutation(len(y))
    held, rows = order[: len(y) // 4], order[len(y) // 4 :]
    share = (y[rows] > 0.0).mean()
    constant = math.log(share / (1.0 - share)) if loss.classification else y[rows].mean()
    worst = loss.value(np.full(held.size, constant), y[held]).mean()
    problem = Problem(loss, constraint=L1Ball(RADIUS) if solver == "frank-wolfe" else None)
    found = []
    for _ in range(runs):
        model = solve(problem, X[rows], y[rows], solver, Budget(epsilon, 1.0 / rows.size**2))
        margins = np.asarray(X[held] @ model.w) + model.intercept
        found.append(float(loss.value(margins, y[held]).mean() / worst))
    return found


def main():
    warnings.simplefilter("ignore")
    parser = command(__doc__, "madelon", "dorothea_full", other="the others are generated")
    parser.add_argument("tables", nargs="*", help="beginnings of names")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--solvers", nargs="*", default=SOLVERS)
    wanted = parser.parse_args()
    print("| table | epsilon |", " | ".join(f"`{name}`" for name in wanted.solvers), "|")
    print("| --- | --- |", " | ".join("---" for _ in wanted.solvers), "|", flush=True)
    for name, X, y, loss in tables():
        if wanted.tables and not name.startswith(tuple(wanted.tables)):
            continue
        for epsilon in EPSILONS:
            cells = []
            for solver in wanted.solvers:
                found = ratios(X, y, loss, solver, epsilon, wanted.runs)
                cells.append(f"{np.mean(found):.3g} ({max(found):.3g})")
            print(f"| {name} | {epsilon:g} |", " | ".join(cells), "|", flush=True)
            print(name, epsilon, file=sys.stderr)


if __name__ == "__main__":
    main()
