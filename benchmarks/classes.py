"""Several classes: `newton`, plain `gd` and what `auto` takes, by their log-loss over that of a constant.

Tables: digits and wine of scikit-learn, and tables drawn from a softmax model. Prints one line for each table, number
of rows and epsilon; a line is the mean over two seeded splits. About five minutes on one core.

Run: make bench-classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss
from stored_tables import command

from discreet import LogisticRegression

ROWS, EPSILONS, SOLVERS, RUNS, HELD_OUT = (
    (100, 300, 1_000, 3_000, 10_000),
    (0.3, 1.0, 3.0),
    ("newton", "gd", "auto"),
    2,
    3_000,
)
DRAWN = ((5, 3), (30, 4), (100, 3))  # columns and classes
LARGEST_PART = 0.75  # of a table's rows to train on

Table = tuple[str, np.ndarray, np.ndarray]


def tables() -> Iterator[Table]:
    yield ("digits", *load_digits(return_X_y=True))
    yield ("wine", *load_wine(return_X_y=True))
    rng = np.random.default_rng(0)
    for columns, classes in DRAWN:
        X = rng.normal(size=(20_000, columns))
        scores = X @ rng.normal(size=(columns, classes)) * 1.5 / np.sqrt(columns)
        yield f"drawn, {columns} columns, {classes} classes", X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def ratio(table: Table, rows: int, epsilon: float, solver: str) -> float:
    """The mean log-loss on held-out rows over that of the shares of the classes."""
    _, X, y = table
    classes, found = range(int(y.max()) + 1), []
    for seed in range(RUNS):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:rows], order[rows : rows + HELD_OUT]
        model = LogisticRegression(epsilon=epsilon, classes=classes, solver=solver, random_state=seed)
        found.append(log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]), labels=list(classes)))
    shares = np.bincount(y) / len(y)
    return float(np.mean(found) / -(shares @ np.log(shares)))


def main() -> None:
    command(__doc__, other="digits and wine of scikit-learn; the others are generated").parse_args()
    warnings.simplefilter("ignore")
    print(f"{'table':<32}{'rows':>7}{'epsilon':>9}" + "".join(f"{solver:>9}" for solver in SOLVERS))
    for table in tables():
        for rows in [rows for rows in ROWS if rows <= LARGEST_PART * len(table[2])]:
            for epsilon in EPSILONS:
                told = "".join(f"{ratio(table, rows, epsilon, solver):9.3f}" for solver in SOLVERS)
                print(f"{table[0]:<32}{rows:>7,}{epsilon:>9g}{told}", flush=True)


if __name__ == "__main__":
    main()
