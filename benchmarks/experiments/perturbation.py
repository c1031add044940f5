"""Objective and output perturbation against epsilon; the papers print theorems about them and no experiment."""

from __future__ import annotations

from framework import Cell, Experiment, plots
from framework.markdown import spread, table
from framework.problems import paper_problem
from framework.registry import datasets_of, methods, methods_of

NAME = "perturbation"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RUNS = 5


def cells(quick):
    for dataset in datasets_of(NAME):
        if quick and dataset.name.startswith("adult"):
            continue
        for method in methods_of(NAME):
            for epsilon in EPSILONS[2:3] if quick else EPSILONS:
                yield Cell(NAME, dataset.name, method.name, {"epsilon": epsilon, "runs": 3 if quick else RUNS})


def measure(cell):
    problem, method, setting = paper_problem(cell.dataset), methods()[cell.method], cell.setting
    return {"error": [method.run(problem, setting, seed)["error"] for seed in range(setting["runs"])]}


def page(results, folder):
    shown = datasets_of(NAME)
    with plots.figure(folder / "papers-perturbation.png", 1, len(shown), (4.2, 3.4)) as axes:
        for axis, dataset in zip(axes.flat, shown, strict=True):
            for method in methods_of(NAME):
                pairs = results.select(dataset=dataset.name, method=method.name)
                found = {c.setting["epsilon"]: n["error"] for c, n in pairs}
                if found:
                    plots.curve(axis, list(found), plots.band_of(list(found.values())), method.style)
            axis.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="relative error")
            axis.set_title(dataset.name, fontsize=10)
    rows = []
    for dataset in shown:
        for method in methods_of(NAME):
            found = [results.one(dataset=dataset.name, method=method.name, epsilon=e) for e in EPSILONS]
            label = method.style.get("label", method.name)
            rows.append([dataset.name, label, *("" if n is None else spread(n["error"]) for n in found)])
    head = ["problem", "method", *(f"epsilon {e:g}" for e in EPSILONS)]
    return "![Perturbations](papers-perturbation.png)\n\n" + table(head, rows)


perturbation = Experiment(
    NAME,
    "papers",
    "objective and output perturbation against epsilon",
    cells,
    measure,
    page,
    file="papers-others.md",
    order=4,
    stored=("electricity", "adult"),
)
