"""Table 2 and Figures 1 to 3 of the DP-CD paper (Table D.1, Figures 4.5.1, 4.6.1 and D.1.1 of the thesis)."""

from __future__ import annotations

import numpy as np
from experiments.table2_page import page
from framework import Cell, Experiment
from framework.problems import paper_problem
from framework.registry import datasets_of, methods, methods_of
from framework.tuning import FRESH, fresh_numbers, tuned_numbers

NAME = "table2"
PASSES = (2, 5, 10, 20, 50)
CLIPS = np.logspace(-3, 6, 100)
EVERY = 8  # clips of the first look; more of them near the best
RUNS = 10  # fresh ones, as in the figures
MOST_DRAWS = 5e7  # normal numbers that a run may take where columns are many


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name != "california-standardised":
            continue
        for method in methods_of(NAME):
            if method.name == "auto":
                yield Cell(NAME, dataset.name, method.name, {"runs": 3 if quick else RUNS})
                continue
            for passes in PASSES[1:2] if quick else PASSES:
                setting = {"passes": passes, "runs": 3 if quick else RUNS}
                yield Cell(NAME, dataset.name, method.name, {**setting, "every": 16 if quick else EVERY})


def measure(cell):
    problem, method = paper_problem(cell.dataset), methods()[cell.method]
    if reason := method.refuses(problem):
        return {"refused": reason}
    runs = cell.setting["runs"]
    if method.name == "auto":
        return fresh_numbers([method.run(problem, {}, FRESH + k) for k in range(runs)])
    passes, every = cell.setting["passes"], cell.setting["every"]
    draws = passes * problem.columns * (problem.rows if "sgd" in method.name else 1)
    if draws > MOST_DRAWS and problem.columns > 100:
        return {"left out": f"a run draws {draws:.0e} normal numbers"}
    return tuned_numbers(method, problem, {"passes": passes}, CLIPS, every, runs)


table2 = Experiment(
    NAME,
    "papers",
    "relative error against passes: DP-CD, DP-SGD, DP-SCD (Table 2, Figures 1 to 3)",
    cells,
    measure,
    page,
    file="papers-coordinate-descent.md",
    order=1,
    stored=("electricity", "california"),
    version=2,
)
