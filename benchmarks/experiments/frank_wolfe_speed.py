"""Frank-Wolfe on sparse rows against the plain loop that it replaces: time of a step, with and without the set-up.

The fast form pays for the rows that the chosen columns have touched: where columns are used unevenly and the noise lets
the frequent ones be found, these are most of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of
from framework.timing import milliseconds, one_core
from frank_wolfe.race import RADIUS, largest_difference, prepare, private_result, race

from discreet.data.rows import Data

NAME = "frank-wolfe-speed"
TARGET, REPEATS = 50.0, 7  # the target is for columns that are used evenly
QUICK = {"rows": 1_000, "columns": 5_000}
EVENLY = "used evenly"


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME):
        sizes = QUICK if quick else {}
        yield Cell(NAME, dataset.name, "fast against plain", {**sizes, "repeats": 1 if quick else REPEATS})


def measure(cell: Cell) -> dict[str, Any]:
    sizes = {name: value for name, value in cell.setting.items() if name != "repeats"}
    X, y = datasets()[cell.dataset].load(**sizes)  # type: ignore[call-arg]
    with one_core():
        setting = prepare(X, y)
        best = race(setting, cell.setting["repeats"])
        found, gap = private_result(setting, Data(X, y))
        difference = largest_difference(setting)
    times = {name.replace(" ", "_"): seconds for name, seconds in best.items()}
    facts = {"steps": setting.steps, "difference": difference, "nonzeros": int(np.count_nonzero(found)), "gap": gap}
    return {**times, **facts, "shape": list(X.shape)}


def page(results: Any, folder: Any) -> str:
    rows, told = [], ""
    for cell, found in results.select():
        steps, fast, plain = found["steps"], found["fast"], found["plain"]
        whole_fast, whole_plain = fast + found["fast_set-up"], plain + found["plain_set-up"]
        fields = [
            cell.dataset,
            str(steps),
            *(f"{1e6 * t / steps:.0f} us" for t in (fast, plain)),
            f"{plain / fast:.0f}",
        ]
        fields += [milliseconds(whole_fast), milliseconds(whole_plain), f"{whole_plain / whole_fast:.0f}"]
        rows.append([*fields, f"{found['difference']:.1e}", str(found["nonzeros"]), f"{found['gap']:.2f}"])
        if cell.dataset == EVENLY and "rows" not in cell.setting:
            told = f"Target for columns that are {EVENLY}: a ratio of {TARGET:.0f}: "
            told += "met." if plain / fast >= TARGET else "MISSED."
    head = ["columns are", "steps", "a step, fast", "a step, plain", "ratio", "with set-up, fast", "with set-up, plain"]
    head += ["ratio", "gradients differ by", "non-zeros", "relative gap"]
    shapes = {tuple(found["shape"]) for _, found in results.select()}
    size = " and ".join(f"{rows:,} x {columns:,}" for rows, columns in shapes)
    return f"{size}, L1 ball of radius {RADIUS:g}, epsilon = 1.\n\n{table(head, rows)}\n\n{told}"


frank_wolfe_speed = Experiment(
    NAME, NAME, "Frank-Wolfe on sparse rows against the plain loop that it replaces", cells, measure, page, alone=True
)
