"""Table 3 of the DP-CD paper (D.2 of the thesis): run times of DP-CD and DP-SGD, in turns within one process."""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.markdown import beside, number, table
from framework.problems import paper_problem
from framework.registry import datasets_of, methods, methods_of

NAME = "table3"
PASSES = (2, 5, 10, 20, 50)
RUNS, DEAR_RUNS, DEAR_DRAWS = 10, 3, 5e6  # 10 runs as in the paper; fewer where a run draws so many normal numbers
SETTING = {"step": 1e-3, "clip": 1.0}  # times do not depend on them


def cells(quick):
    for dataset in datasets_of(NAME):
        for passes in PASSES[:1] if quick else PASSES:
            yield Cell(NAME, dataset.name, "in turns", {"passes": passes})


def measure(cell):
    problem, passes = paper_problem(cell.dataset), cell.setting["passes"]
    dear = passes * problem.rows * problem.columns > DEAR_DRAWS
    contestants = {method.name: [] for method in methods_of(NAME)}
    for seed in range(1 + (DEAR_RUNS if dear else RUNS)):
        for name, seconds in contestants.items():
            seconds.append(methods()[name].run(problem, {**SETTING, "passes": passes}, seed)["seconds"])
    return {name: seconds[1:] for name, seconds in contestants.items()}  # the first run compiles and calibrates


def page(results, folder):
    """Mean seconds of a run, the printed ones in parentheses; then how many times faster DP-CD is."""
    rows = []
    for dataset in datasets_of(NAME):
        found = {p: results.one(dataset=dataset.name, passes=p) for p in PASSES}
        times = {p: {m: float(np.mean(s)) for m, s in n.items() if isinstance(s, list)} for p, n in found.items() if n}
        printed = dataset.facts.get(NAME, {})
        title = dataset.facts.get("title", dataset.name)
        for method in methods_of(NAME):
            of = printed.get(method.name, {})
            fields = [beside(number(times[p][method.name]), of.get(p)) if p in times else "" for p in PASSES]
            rows.append([title, method.style.get("label", method.name), *fields])
        ratio = {p: f"{printed['dp-sgd'][p] / printed['dp-cd'][p]:.1f}" for p in PASSES} if printed else {}
        fields = [
            beside(f"{times[p]['dp-sgd'] / times[p]['dp-cd']:.1f}", ratio.get(p)) if p in times else "" for p in PASSES
        ]
        rows.append([title, "ratio", *fields])
    return table(["problem", "method", *(f"{p} passes" for p in PASSES)], rows)


table3 = Experiment(
    NAME,
    "papers",
    "run times of DP-CD and DP-SGD (Table 3)",
    cells,
    measure,
    page,
    file="papers-coordinate-descent.md",
    order=2,
    stored=("electricity", "california"),
    alone=True,
)
