"""Columns split between two to four holders: what the joint model gains over the label holder alone.

Shown is how much of the held-out loss of the best constant is explained: R^2 for the squared loss.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from framework import Cell, Dataset, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of, methods, methods_of
from vertical.case import Case

NAME = "vertical"
EPSILONS, RUNS = (1.0, 2.0, 4.0, 8.0, 16.0), 9
EXACT = "without privacy"
QUICK = "california, 2 holders"


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME):
        if quick and dataset.name != QUICK:
            continue
        yield Cell(NAME, dataset.name, EXACT)
        for epsilon in EPSILONS[-1:] if quick else EPSILONS:
            for method in methods_of(NAME):
                yield Cell(NAME, dataset.name, method.name, {"epsilon": epsilon, "runs": 1 if quick else RUNS})


@lru_cache(maxsize=2)
def loaded(name: str) -> Case:
    found: Any = datasets()[name].load()
    return found


def measure(cell: Cell) -> dict[str, Any]:
    case = loaded(cell.dataset)
    if cell.method == EXACT:
        alone = {name: case.exact(own) for name, own in case.columns.items()}
        return {"joint": case.exact(list(range(case.X.shape[1]))), "alone": alone, "labels": case.labels}
    run = methods()[cell.method].run
    found = [run(case, cell.setting, seed)["explained"] for seed in range(cell.setting["runs"])]
    return {"median": statistics.median(found), "low": min(found), "high": max(found)}


def page(results: Any, folder: Any) -> dict[str, str]:
    """For each split that is complete its table, and its picture."""
    sections = {}
    for dataset in datasets_of(NAME):
        own = [cell for cell in results.cells if cell.dataset == dataset.name]
        if own and all(results.of(cell) is not None for cell in own):
            sections[dataset.name] = section(results, dataset)
            name = dataset.name.replace(", ", "-").replace(" holders", "").replace(" ", "-")
            draw(results, dataset, folder / f"vertical-{name}.png")
    return sections


def lines_of(results: Any, dataset: Dataset) -> dict[str, dict[float, tuple[float, float, float]]]:
    """For each method and epsilon the median, the lowest and the highest run."""
    return {
        method.name: {
            cell.setting["epsilon"]: (found["median"], found["low"], found["high"])
            for cell, found in results.select(dataset=dataset.name, method=method.name)
        }
        for method in methods_of(NAME)
    }


def section(results: Any, dataset: Dataset) -> str:
    known, lines = results.one(dataset=dataset.name, method=EXACT), lines_of(results, dataset)
    alone, rows = known["alone"], []
    for name, line in lines.items():
        exact = alone[known["labels"]] if name == "label holder alone" else known["joint"]
        rows.append([name, *(f"{m:.3f} ({low:.3f} to {high:.3f})" for m, low, high in line.values()), f"{exact:.3f}"])
    epsilons = [f"epsilon {epsilon:g}" for epsilon in next(iter(lines.values()))]
    others = ", ".join(f"{name} {value:.3f}" for name, value in alone.items())
    told = f"Columns of one holder with the target, without privacy: {others}."
    return f"{table(['model', *epsilons, EXACT], rows)}\n\n{told}"


def draw(results: Any, dataset: Dataset, path: Path) -> None:
    from discreet._common.plotting import pyplot

    plt = pyplot()
    known = results.one(dataset=dataset.name, method=EXACT)
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, line in lines_of(results, dataset).items():
        middle, low, high = np.array(list(line.values())).T
        colour = methods()[name].style["color"]
        axes.plot(list(line), middle, marker="o", color=colour, label=name)
        axes.fill_between(list(line), low, high, color=colour, alpha=0.15, linewidth=0)
    joint, own = known["joint"], known["alone"][known["labels"]]
    axes.axhline(joint, color="black", linestyle="--", linewidth=1, label="all columns, without privacy")
    axes.axhline(own, color="black", linestyle=":", linewidth=1, label="label holder, without privacy")
    labels = {"xlabel": "epsilon of each holder", "ylabel": "explained part of the held-out loss"}
    axes.set(xscale="log", title=dataset.name, **labels)
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0, top=1.1 * joint)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=100)
    plt.close(figure)


vertical = Experiment(
    NAME,
    NAME,
    "columns split between holders: what the joint model gains over the label holder alone",
    cells,
    measure,
    page,
    file="vertical.md",
    stored=("electricity", "california", "acsincome_co"),
)
