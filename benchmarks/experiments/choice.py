"""Which solver `auto` should take with several classes or many columns: accuracy and log-loss of each, untuned."""

from __future__ import annotations

import time

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets_of

from discreet import IncompatibleSolverError, LogisticRegression

NAME = "choice"
SOLVERS = ("auto", "newton", "gd", "cd", "sgd")
EPSILONS, SEEDS = (0.3, 1.0, 3.0), 2
TRAINED = 0.8
QUICK = ("wine, three classes", "iris, three classes")


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name not in QUICK:
            continue
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            for solver in SOLVERS:
                for seed in range(1 if quick else SEEDS):
                    yield Cell(NAME, dataset.name, solver, {"epsilon": epsilon}, seed)


def measure(cell):
    """Accuracy and log-loss on a fifth of the rows that is held out; the seed is that of the noise."""
    X, y = loaded(cell.dataset)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [int(TRAINED * len(y))])
    classes, start = range(int(y.max()) + 1), time.perf_counter()
    model = LogisticRegression(solver=cell.method, classes=classes, random_state=cell.seed, **cell.setting)
    try:
        model.fit(X[train], y[train])
    except IncompatibleSolverError as error:
        return {"refused": str(error)}
    own = model.predict_proba(X[test])[np.arange(len(test)), y[test]]
    return {
        "accuracy": float(np.mean(model.predict(X[test]) == y[test])),
        "log_loss": float(-np.log(np.maximum(own, 1e-12)).mean()),
        "seconds": time.perf_counter() - start,
    }


def page(results, folder):
    """Means over the seeds: accuracy, log-loss and seconds."""
    rows = []
    for dataset, epsilon in dict.fromkeys((cell.dataset, cell.setting["epsilon"]) for cell in results.cells):
        found = [figures(results, dataset=dataset, method=solver, epsilon=epsilon) for solver in SOLVERS]
        rows.append([dataset, f"{epsilon:g}", *found])
    return table(["table", "epsilon", *SOLVERS], rows)


def figures(results, **wanted):
    found = [n for _, n in results.select(**wanted) if "accuracy" in n]
    if not found:
        return ""
    accuracy, loss, seconds = (np.mean([n[name] for n in found]) for name in ("accuracy", "log_loss", "seconds"))
    return f"{accuracy:.3f} {loss:.3f} ({seconds:.1f} s)"


choice = Experiment(
    NAME,
    "choice",
    "which solver auto should take: accuracy, log-loss and seconds of each, with defaults",
    cells,
    measure,
    page,
)
