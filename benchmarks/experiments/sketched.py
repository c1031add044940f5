"""DP-SkGD over sizes of the sets and laws by which they are drawn. Its paper reports no experiments."""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment, plots
from framework.markdown import spread, table
from framework.problems import paper_problem
from framework.registry import datasets_of, methods, methods_of
from framework.tuning import tuned_numbers

NAME = "sketched"
SIZES = {"electricity-raw": (1, 2, 4, 8), "log1, alpha 0.1": (1, 4, 16, 64, 100)}  # of other data sets: powers of 4
CLIPS = np.logspace(-3, 6, 50)
PASSES, RUNS, EVERY = 10, 10, 4


def cells(quick):
    for dataset in datasets_of(NAME):
        sizes = SIZES.get(dataset.name, (1, 4, 16))
        for method in methods_of(NAME):
            for size in sizes[:1] if "importance" in method.name or quick else sizes:
                yield Cell(NAME, dataset.name, method.name, {"size": size, "every": 16 if quick else EVERY})


def measure(cell):
    problem, method = paper_problem(cell.dataset), methods()[cell.method]
    setting = {"passes": PASSES, "size": cell.setting["size"]}
    return tuned_numbers(method, problem, setting, CLIPS, cell.setting["every"], RUNS)


def page(results, folder):
    with plots.figure(folder / "papers-sketched.png", 1, len(datasets_of(NAME)), (4.2, 3.2)) as axes:
        for axis, dataset in zip(axes.flat, datasets_of(NAME), strict=True):
            for method in methods_of(NAME):
                pairs = results.select(dataset=dataset.name, method=method.name)
                found = {c.setting["size"]: n["error"] for c, n in pairs}
                if found:
                    plots.curve(axis, list(found), plots.band_of(list(found.values())), method.style)
            if untuned := auto_of(results, dataset):
                plots.level(axis, untuned, methods()["auto"].style)
            axis.set(xscale="log", yscale="log", xlabel="mean size of a set", ylabel="relative error")
            axis.set_xticks(SIZES.get(dataset.name, (1, 4, 16)), map(str, SIZES.get(dataset.name, (1, 4, 16))))
            axis.xaxis.minorticks_off()
            axis.set_title(dataset.name, fontsize=10)
    parts = ["![DP-SkGD](papers-sketched.png)"]
    for dataset in datasets_of(NAME):
        sizes = SIZES.get(dataset.name, (1, 4, 16))
        rows = []
        for method in methods_of(NAME):
            found = [results.one(dataset=dataset.name, method=method.name, size=size) for size in sizes]
            rows.append([method.name, *("" if n is None else spread(n["error"]) for n in found)])
        if untuned := auto_of(results, dataset):
            rows.append([methods()["auto"].style["label"], spread(untuned), *("" for _ in sizes[1:])])
        parts += [f"**{dataset.name}**", table(["law", *(f"sets of {size}" for size in sizes)], rows)]
    return "\n\n".join(parts)


def auto_of(results, dataset):
    """The errors of auto on this problem, where another experiment has measured them."""
    for name in ("table2", "greedy"):
        if name in dataset.experiments and (found := results.beside(name).one(dataset=dataset.name, method="auto")):
            return found["error"]
    return None


sketched = Experiment(
    NAME,
    "papers",
    "DP-SkGD over sizes of the sets of coordinates, and sampling laws",
    cells,
    measure,
    page,
    file="papers-others.md",
    order=1,
    stored=("electricity",),
)
