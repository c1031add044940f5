"""Speed and memory, as ratios within one cell on one core: what was measured, against what, and the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from framework import Cell, Experiment
from framework.markdown import table
from framework.timing import Row, one_core
from speed.beginnings import SOLVERS as FIRST_FITS
from speed.beginnings import first_fit_rows, import_rows
from speed.growth import KINDS, growth_rows, sparse_rows
from speed.memory import SOLVERS as FITS
from speed.memory import memory_rows
from speed.races import LAWS, RACES, draw_rows, race_rows

NAME = "speed"
PARTS: dict[str, tuple[tuple[str, ...], Callable[[str], list[Row]]]] = {  # in the order of the table
    "races": (RACES, race_rows),
    "draws": (LAWS, draw_rows),
    "growth": (KINDS, growth_rows),
    "sparse": (("dorothea",), lambda _: sparse_rows()),
    "memory": (FITS, memory_rows),
    "imports": (("scikit-learn",), lambda _: import_rows()),
    "first fits": (FIRST_FITS, first_fit_rows),
}
QUICK = {("draws", "normal"), ("growth", "columns, dense")}


def cells(quick: bool) -> Iterator[Cell]:
    for part, (names, _) in PARTS.items():
        for name in names:
            if not quick or (part, name) in QUICK:
                yield Cell(NAME, part, name)


def measure(cell: Cell) -> dict[str, Any]:
    with one_core():
        rows = PARTS[cell.dataset][1](cell.method)
    return {"rows": [asdict(row) for row in rows], "targets_missed": sum(row.passed is False for row in rows)}


def page(results: Any, folder: Any) -> dict[str, str]:
    rows = [Row(**row) for _, found in results.select() for row in found["rows"]]
    return {"table": table(["what", "ours", "measured against", "ratio", "target", ""], [row.fields() for row in rows])}


speed = Experiment(
    NAME,
    NAME,
    "time and memory against targets, as ratios within one run",
    cells,
    measure,
    page,
    file="speed.md",
    stored=("dorothea",),
    alone=True,
)
