"""Tables with many columns against rows times epsilon: screening beside the other solvers, all at their defaults.

A figure is the loss on rows held out over that of the best constant. About an hour.
"""

from __future__ import annotations

import math

import numpy as np
from framework import Cell, Experiment
from framework.loaded import loaded
from framework.markdown import table
from framework.registry import datasets, datasets_of

from discreet import Budget, Problem, solve
from discreet.problem.constraints import L1Ball

NAME = "screening"
EPSILONS, RUNS = (0.3, 1.0, 3.0, 10.0), 3
SOLVERS = ("screened", "greedy-cd", "cd", "gd", "frank-wolfe")
RADIUS = 3.0  # of the L1 ball that Frank-Wolfe needs, in the table's own units
QUICK = ("log2 1,000 x 100",)


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name not in QUICK:
            continue
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            for solver in SOLVERS:
                for run in range(1 if quick else RUNS):
                    yield Cell(NAME, dataset.name, solver, {"epsilon": epsilon}, run)


def measure(cell):
    """The loss of a run with fresh noise; all runs hold out the same rows."""
    loss, (X, y) = datasets()[cell.dataset].facts["loss"], loaded(cell.dataset)
    order = np.random.default_rng(1).permutation(len(y))
    held, rows = order[: len(y) // 4], order[len(y) // 4 :]
    share = (y[rows] > 0.0).mean()
    constant = math.log(share / (1.0 - share)) if loss.classification else y[rows].mean()
    worst = loss.value(np.full(held.size, constant), y[held]).mean()
    problem = Problem(loss, constraint=L1Ball(RADIUS) if cell.method == "frank-wolfe" else None)
    model = solve(problem, X[rows], y[rows], cell.method, Budget(cell.setting["epsilon"], 1.0 / rows.size**2))
    margins = np.asarray(X[held] @ model.w) + model.intercept
    return {"ratio": float(loss.value(margins, y[held]).mean() / worst)}


def page(results, folder):
    """The mean of the runs, with the worst of them in brackets."""
    rows = []
    for dataset in datasets_of(NAME):
        for epsilon in EPSILONS:
            found = [
                [
                    numbers["ratio"]
                    for _, numbers in results.select(dataset=dataset.name, method=solver, epsilon=epsilon)
                ]
                for solver in SOLVERS
            ]
            if any(found):
                fields = [f"{np.mean(ratios):.3g} ({max(ratios):.3g})" if ratios else "" for ratios in found]
                rows.append([dataset.label, f"{epsilon:g}", *fields])
    return table(["table", "epsilon", *(f"`{solver}`" for solver in SOLVERS)], rows)


screening = Experiment(
    NAME,
    "screening",
    "many columns against rows times epsilon: screening beside the other solvers, at their defaults",
    cells,
    measure,
    page,
    file="screening.md",
    stored=("madelon", "dorothea_full"),
)
