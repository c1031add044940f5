"""The table and the figures of Table 2."""

from __future__ import annotations

import math

import numpy as np
from framework import plots
from framework.markdown import beside, number, spread, table
from framework.registry import datasets_of, methods, methods_of

NAME, PASSES = "table2", (2, 5, 10, 20, 50)
PICTURE, TIMES = "papers-table2.png", "papers-table2-time.png"


def page(results, folder):
    draw(results, folder / PICTURE)
    draw(results, folder / TIMES, "seconds")
    parts = [f"![Relative error against passes]({PICTURE})"]
    for dataset in datasets_of(NAME):
        rows = [row for method in methods_of(NAME) if (row := row_of(results, dataset, method))]
        head = ["method", *(f"{passes} passes" for passes in PASSES), "settings tried"]
        parts += [f"**{dataset.facts.get('title', dataset.name)}**", table(head, rows)]
    told = "**Figure 3: the same against seconds of processor time**"
    return "\n\n".join([*parts, told, f"![Relative error against seconds]({TIMES})"])


def row_of(results, dataset, method):
    """Our mean and deviation of ten fresh runs, the printed mean in parentheses."""
    label = method.style.get("label", method.name)
    if method.name == "auto":
        numbers = results.one(dataset=dataset.name, method=method.name)
        return None if numbers is None else [label, *["" for _ in PASSES[1:]], spread(numbers["error"]), ""]
    printed = dataset.facts.get(NAME, {})
    shown = printed.get(method.name) or (printed.get("dp-sgd-claimed") if method.name == "dp-sgd" else None) or {}
    cells = [results.one(dataset=dataset.name, method=method.name, passes=passes) for passes in PASSES]
    if not any(numbers and "error" in numbers for numbers in cells):
        return None
    absent = {p: "not measured" if n is None else "left out" for p, n in zip(PASSES, cells, strict=True)}
    fields = [
        beside(spread(n["error"]) if n and "error" in n else absent[p], shown.get(p))
        for p, n in zip(PASSES, cells, strict=True)
    ]
    means = {p: np.mean(n["error"]) for p, n in zip(PASSES, cells, strict=True) if n and "error" in n}
    best = PASSES.index(min(means, key=means.get))
    fields[best] = f"**{fields[best]}**"
    tried = [n["tried"] for n in cells if n and "tried" in n]
    of = next(n["grid"] for n in cells if n and "grid" in n)
    return [label, *fields, f"{number(float(np.mean(tried)))} of {of}"]


def draw(results, path, against="passes"):
    """The way of the best number of passes of each method, as in Figures 1 and 2; against seconds as in Figure 3."""
    shown = datasets_of(NAME)
    columns = 3
    with plots.figure(path, math.ceil(len(shown) / columns), columns, (3.6, 2.9)) as axes:
        for axis, dataset in zip(axes.flat, shown, strict=False):
            for method in methods_of(NAME):
                draw_method(axis, results, dataset, method, against)
            if against == "passes":
                draw_printed(axis, dataset)
            else:
                axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_title(dataset.facts.get("title", dataset.name), fontsize=10)
            axis.set_xlabel(against, fontsize=9)
            axis.grid(axis="y", color="#dddddd", lw=0.6)
        for axis in axes[:, 0]:
            axis.set_ylabel("relative error", fontsize=9)


def draw_method(axis, results, dataset, method, against):
    found = [(c, n) for c, n in results.select(dataset=dataset.name, method=method.name) if "error" in n]
    if not found:
        return
    cell, numbers = min(found, key=lambda pair: np.mean(pair[1]["error"]))
    seconds = float(np.mean(numbers["seconds"]))
    if "way" in numbers:
        whole = cell.setting["passes"] if against == "passes" else seconds
        plots.curve(axis, np.array(numbers["way"]["at"]) * whole, numbers["way"], method.style)
    elif against == "seconds":
        mean = max(float(np.mean(numbers["error"])), plots.LEAST)
        axis.plot([seconds], [mean], ms=6, **{**method.style, "ls": "", "marker": "d"})
    else:
        plots.level(axis, numbers["error"], method.style)


def draw_printed(axis, dataset):
    """The printed errors of each number of passes, as stars."""
    for name, label in (("dp-cd", "printed: DP-CD"), ("dp-sgd-claimed", "printed: DP-SGD")):
        numbers = dataset.facts.get(NAME, {}).get(name, {})
        axis.plot(list(numbers), list(numbers.values()), "*", ms=6, color=methods()[name].style["color"], label=label)
