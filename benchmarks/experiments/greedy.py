"""Figure 5.4.1 of the thesis, with Figures D.2.1 to D.2.3 and Tables D.3 to D.5: DP-GCD against DP-CD and DP-SGD."""

from __future__ import annotations

import numpy as np
from experiments.greedy_page import page
from framework import Cell, Experiment
from framework.problems import paper_problem
from framework.registry import datasets_of, methods, methods_of
from framework.tuning import FRESH, fresh_numbers, tuned_numbers

NAME = "greedy"
PASSES = (0.001, 0.01, 0.1, 1, 2, 3, 5, 10, 20)  # of methods without a list of their own
CLIPS = np.logspace(-4, 6, 50)
EVERY, RUNS = 4, 5
MOST_DRAWS, MOST_COORDINATES = 3e7, 3e5  # normal numbers that a run of DP-SGD may draw, and steps of DP-CD
FIRST = ("auto", "dp-gcd", "dp-gcd-signed", "dp-gcd-claimed", "dp-cd")
QUICK = ("square", "log2, alpha 0.1")


def cells(quick):
    """What the figures need first comes first."""
    for first in (True, False):
        for dataset in datasets_of(NAME):
            if quick and dataset.name not in QUICK:
                continue
            if first:
                yield Cell(NAME, dataset.name, "optimum")
            for method in methods_of(NAME):
                if (method.name in FIRST) == first:
                    yield from cells_of(dataset, method, quick)


def cells_of(dataset, method, quick):
    if method.name == "auto":
        yield Cell(NAME, dataset.name, method.name, {"runs": RUNS})
        return
    passes = method.grid.get("passes", PASSES)
    for count in passes[1:3] if quick else passes:
        yield Cell(NAME, dataset.name, method.name, {"passes": count, "every": 16 if quick else EVERY})


def measure(cell):
    problem = paper_problem(cell.dataset)
    if cell.method == "optimum":
        return of_optimum(problem)
    method = methods()[cell.method]
    if reason := method.refuses(problem):
        return {"refused": reason}
    if method.name == "auto":
        return fresh_numbers([method.run(problem, {}, FRESH + k) for k in range(RUNS)])
    passes, every = cell.setting["passes"], cell.setting["every"]
    if passes * problem.columns > MOST_COORDINATES and method.name == "dp-cd":
        return {"left out": "too many coordinates"}
    if passes * problem.columns * problem.rows > MOST_DRAWS and method.dear:
        return {"left out": "too many normal numbers"}
    return tuned_numbers(method, problem, {"passes": passes}, CLIPS, every, RUNS)


def of_optimum(problem):
    """What Figure D.2.1 shows: the sizes of the optimum's coefficients, and alpha of its (alpha, 5)-quasi-sparsity."""
    sizes = np.sort(np.abs(problem.best.coef))[::-1]
    support = int((sizes > 1e-10).sum())
    alpha = float(sizes[5]) if sizes.size > 5 else 0.0
    counts, edges = np.histogram(sizes, bins=30)
    about = {"counts": counts, "edges": edges, "alpha": alpha, "support": support}
    return {**about, "at zero": problem.error_at_zero, "rows": problem.rows, "columns": problem.columns}


greedy = Experiment(
    NAME,
    "papers",
    "DP-GCD, its rules, DP-CD and DP-SGD with many columns (Figures 5.4.1, D.2.1-3, Tables D.3-5)",
    cells,
    measure,
    page,
    file="papers-greedy.md",
    order=1,
    stored=("california", "madelon", "dorothea", "meltingpoint"),
    version=2,
)
