"""Several classes: `newton`, plain `gd` and what `auto` takes, by their log-loss over that of a constant.

About five minutes on one core.
"""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets_of
from sklearn.metrics import log_loss

from discreet import LogisticRegression

NAME = "classes"
ROWS, EPSILONS, SPLITS, HELD_OUT = (100, 300, 1_000, 3_000, 10_000), (0.3, 1.0, 3.0), 2, 3_000
SOLVERS = ("newton", "gd", "auto")
LARGEST_PART = 0.75  # of a table's rows to train on


def cells(quick):
    for dataset in datasets_of(NAME)[: 2 if quick else None]:
        size = len(loaded(dataset.name)[1])
        for rows in [rows for rows in ROWS[: 1 if quick else None] if rows <= LARGEST_PART * size]:
            for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                for solver in SOLVERS:
                    for seed in range(1 if quick else SPLITS):
                        yield Cell(NAME, dataset.name, solver, {"rows": rows, "epsilon": epsilon}, seed)


def measure(cell):
    """The log-loss on held-out rows over that of the shares of the classes."""
    X, y = loaded(cell.dataset)
    classes, rows = range(int(y.max()) + 1), cell.setting["rows"]
    order = np.random.default_rng(cell.seed).permutation(len(y))
    train, test = order[:rows], order[rows : rows + HELD_OUT]
    model = LogisticRegression(
        epsilon=cell.setting["epsilon"], classes=classes, solver=cell.method, random_state=cell.seed
    )
    found = log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test]), labels=list(classes))
    shares = np.bincount(y) / len(y)
    return {"ratio": float(found / -(shares @ np.log(shares)))}


def page(results, folder):
    """Means over the splits."""
    rows = []
    asked = dict.fromkeys((cell.dataset, *cell.setting.values()) for cell in results.cells)
    for dataset, size, epsilon in asked:
        wanted = {"dataset": dataset, "rows": size, "epsilon": epsilon}
        found = [[n["ratio"] for _, n in results.select(method=solver, **wanted)] for solver in SOLVERS]
        rows.append([dataset, f"{size:,}", f"{epsilon:g}", *(f"{np.mean(one):.3f}" if one else "" for one in found)])
    return table(["table", "rows", "epsilon", *SOLVERS], rows)


classes = Experiment(
    NAME,
    "classes",
    "several classes: log-loss of newton, gd and auto over that of a constant",
    cells,
    measure,
    page,
)
