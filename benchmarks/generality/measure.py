"""The cells of each part of the benchmark, and what one gives: a row of figures for a model, or tuned settings."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from framework import Cell as FrameCell
from framework import registry

from generality.cells import QUICK, Cell, Extent, cells_of, sizes_of
from generality.settings import RUNS, settings
from generality.tables import is_kept_back, table_of, tables

NAME = "generality"  # by which methods say that they take part as rivals
OWN_SOLVERS = ("newton", "gd", "cd", "sgd")
CONSTANT_RUNS = 10  # of a private constant: all ratios are taken to its mean loss, so that its own luck must not count
ASKED = {"Opacus": {"relation": "add_remove", "step": 0.5}}  # as the page says; the scoreboard asks it in another way
MODELS = {"Opacus": "opacus"}  # names in the kept results, where they differ from those of the methods
# Part -> model -> method, and what it is asked beside epsilon.
OWN_PARTS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "constants": {
        "private constant": ("private constant", {"told": False}),
        "private constant, told": ("private constant", {"told": True}),
    },
    "auto": {"auto": ("discreet", {}), "auto, told": ("discreet", {"told": True})},
    "solvers": {solver: ("discreet", {"solver": solver}) for solver in OWN_SOLVERS},
}
PARTS = ("rivals", *OWN_PARTS, "tuned")
Row = dict[str, Any]


def cells(experiment: str, part: str, kept_back: bool, quick: bool) -> Iterator[FrameCell]:
    """All cells of a part, table by table; the tables have to be read for their numbers of rows."""
    extent = QUICK if quick else Extent()
    most, largest = (extent.tuned_tables, extent.tuned_rows) if part == "tuned" else (extent.tables, extent.largest)
    asked = {"tuned": ("tuned", {})} if part == "tuned" else models_of(part)
    for table, sizes in sizes_of(half(kept_back), most, largest).items():
        for rows in sizes:
            for model, (method, extra) in asked.items():
                for epsilon in epsilons_of(method, extent):
                    yield FrameCell(
                        experiment, table, method, {"model": model, "rows": rows, "epsilon": epsilon} | extra
                    )


@functools.cache
def half(kept_back: bool) -> list[Any]:
    return tables(kept_back)


def models_of(part: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Those of ours, or every method that says that it takes part."""
    if part in OWN_PARTS:
        return OWN_PARTS[part]
    found = [one.name for one in registry.methods_of(NAME)]
    return {MODELS.get(name, name): (name, ASKED.get(name, {})) for name in found}


def epsilons_of(method: str, extent: Extent) -> tuple[float | None, ...]:
    """None, once, for a method that has no epsilon."""
    known = registry.methods().get(method)
    return (None,) if known is not None and known.grid.get("epsilon") == () else extent.epsilons


def measure(cell: FrameCell, kept_back: bool) -> Row:
    """The figures of one model on one table; nothing is read of a table of the other half."""
    if is_kept_back(cell.dataset) != kept_back:
        raise ValueError(f"{cell.dataset} belongs to the other half")
    asked = dict(cell.setting)
    model, rows = asked.pop("model"), asked.pop("rows")
    problem = next(iter(cells_of(table_of(cell.dataset), [rows])), None)
    if problem is None:
        return {"skipped": True}  # one value of the target only
    about = {"table": problem.name, "columns": problem.X.shape[1], "classes": problem.classes, "rows": problem.rows}
    about |= {"epsilon": asked["epsilon"], "model": model}
    if model == "tuned":
        return about | tuned(problem, asked["epsilon"])
    runs = CONSTANT_RUNS if cell.method == "private constant" else 1
    found = [judged(cell.method, replace(problem, seed=problem.seed + run), asked) for run in range(runs)]
    return found[0] | {"loss": json_number(float(np.mean([loss_of(one) for one in found])))} | about


def judged(method: str, problem: Cell, asked: Row) -> Row:
    """What the method gives, without what the scoreboard alone shows."""
    found = registry.methods()[method].run(problem, asked, 0)
    why = found.get("refused", "")
    if why.startswith("NotInstalledError"):
        raise RuntimeError(why)  # a library that is not there is left out
    if why:
        return {"loss": None, "refused": why, "warned": found["warned"], "seconds": found["seconds"]}
    return {name: value for name, value in found.items() if name not in ("score", "log_loss")}


def loss_of(row: Row) -> float:
    return math.inf if row["loss"] is None else float(row["loss"])


def tuned(problem: Cell, epsilon: float) -> Row:
    """The setting of the grid with the least mean loss; its loss and that of `auto` in other runs."""
    choices = settings()
    losses = [mean_loss(problem, epsilon, solver, extra, range(RUNS)) for _, solver, extra in choices]
    name, solver, extra = choices[int(np.argmin(losses))]
    again = range(RUNS, 2 * RUNS)  # other noise, so that a setting that was lucky is not rewarded
    best, own = (mean_loss(problem, epsilon, *one, again) for one in ((solver, extra), ("auto", {})))
    plain, constant = (
        judged(method, problem, {"epsilon": None})["loss"] for method in ("without privacy", "constant without privacy")
    )
    about = {"auto": json_number(own), "best": json_number(best), "setting": name}
    return about | {"without privacy": plain, "constant": constant}


def mean_loss(problem: Cell, epsilon: float, solver: Any, extra: Row, seeds: Iterable[int]) -> float:
    """Infinite where a solver refuses the problem or a run's loss is not finite."""
    losses = []
    for seed in seeds:
        asked = {"epsilon": epsilon, "solver": solver, "seed": seed, **extra}
        losses.append(loss_of(judged("discreet", problem, asked)))
        if math.isinf(losses[-1]):
            break
    return float(np.mean(losses))


def json_number(value: float) -> float | None:
    return value if math.isfinite(value) else None
