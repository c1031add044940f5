"""Table 6.1 and Figures 6.6.1, D.3.1 and D.3.2 of the thesis on two census tables: bounds beside 100 private models.

A cell has the coefficients of all models at one point; bounds and tables follow from them. Noise is seeded, so that the
page can be made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from fairness.cases import NAMES, Case, Regime, thesis, weak, with_ones
from fairness.figures import AXES, curves, draw, settings_of
from fairness.fits import Fits, Setting, fits_of
from fairness.tables import settings_of_tables, tables_of
from framework import Cell, Dataset, Experiment
from framework.registry import datasets, datasets_of

NAME = "fairness"
POINTS, MODELS, QUICK_MODELS = 8, 100, 2


def settings(dataset: Dataset) -> list[Setting]:
    """Every point of every figure and table, each once."""
    place, rows, columns = (dataset.facts[name] for name in ("place", "rows", "columns"))
    found = settings_of_tables(place, rows, columns, MODELS)
    for axis in AXES:
        for of_solver in settings_of(place, rows, thesis(columns).solvers, axis, POINTS, MODELS):
            found += of_solver
    return list(dict.fromkeys(found))


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME)[-1 if quick else 0 :]:
        if quick:
            for solver in thesis(dataset.facts["columns"]).solvers:
                yield cell_of(dataset, Setting("", "thesis", solver, 1_000, 1.0, QUICK_MODELS))
        else:
            yield from (cell_of(dataset, one) for one in settings(dataset))


def cell_of(dataset: Dataset, one: Setting) -> Cell:
    asked = {"regime": one.regime, "rows": one.rows, "epsilon": one.epsilon, "models": one.models}
    return Cell(NAME, dataset.name, one.solver, asked)


@cache
def opened(name: str, regime: str) -> tuple[Case, Regime]:
    """A table and how it is fitted."""
    case: Any = datasets()[name].load()
    if regime == "weak":
        case = with_ones(case)
    return case, thesis(case.columns) if regime == "thesis" else weak(case.columns)


def measure(cell: Cell) -> dict[str, Any]:
    one = Setting(datasets()[cell.dataset].facts["place"], solver=cell.method, **cell.setting)
    found = fits_of(*opened(cell.dataset, one.regime), one)
    return {"coef": found.coef, "seconds": found.seconds}


def page(results: Any, folder: Any) -> dict[str, str]:
    """For each state that is complete its tables, and its pictures."""
    sections: dict[str, str] = {}
    for dataset in datasets_of(NAME):
        if any(results.of(cell_of(dataset, one)) is None for one in settings(dataset)):
            continue

        def kept(one: Setting, dataset: Dataset = dataset) -> Fits:
            found = results.of(cell_of(dataset, one))
            return Fits(np.array(found["coef"]), found["seconds"])

        case, regime = opened(dataset.name, "thesis")
        place = dataset.facts["place"]
        panels = {axis: curves(case, regime, axis, POINTS, MODELS, kept) for axis in AXES}
        draw(panels, place, dataset.facts["title"], MODELS, folder)
        sections |= tables_of(place, case, MODELS, kept)
    return sections


fairness = Experiment(
    NAME,
    NAME,
    "bounds on the fairness that noise can cost, beside 100 private models",
    cells,
    measure,
    page,
    file="fairness.md",
    stored=tuple(NAMES),  # each table is standardised with the other one's means
)
