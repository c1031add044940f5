"""Table 6.1 and Figures 6.6.1, D.3.1 and D.3.2 of the thesis on two census tables: bounds beside 100 private models.

Run: make bench-fairness (`--write` puts tables and pictures into docs/benchmarks/fairness.md; `--quick` draws 5 models
at 3 points of each curve, without the page). Finished cells are kept in build/bench-fairness, so that a stopped run
goes on where it stopped; `--fresh` starts anew. Noise is seeded, so that the page can be made again.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: two processes share two cores

import fairness_page
from fairness_bounds import NOTIONS, Measured
from fairness_cases import NAMES, Case, Regime, census_case, thesis, weak, with_ones
from fairness_fits import MODELS, STORE, Cell, fits_of, spaced
from stored_tables import command, labelled, may_write

from discreet.fairness.figures.plots import Curve, plot_curves

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "fairness.md"
AXES, PROCESSES = ("rows", "epsilon"), 2
POINTS, QUICK_POINTS, QUICK_MODELS = 8, 3, 5
FEWEST_ROWS, EPSILONS, EPSILON = 100, (0.01, 10.0), 1.0
SHOWN = ("equality of opportunity", "accuracy")  # in Figure 6.6.1; the others are in D.3.1 and D.3.2
COLOURS = 64  # of the pictures, to keep them small


def cells_of(case: Case, regime: Regime, axis: str, points: int, models: int) -> dict[str, list[Cell]]:
    """For each solver its cells along an axis: numbers of rows at epsilon 1, or epsilons with all rows."""
    rows = len(case.y)
    along = (
        [(round(n), EPSILON) for n in spaced(FEWEST_ROWS, rows, points)]
        if axis == "rows"
        else [(rows, epsilon) for epsilon in spaced(*EPSILONS, points)]
    )
    return {
        solver: [Cell(case.name, "thesis", solver, n, epsilon, models) for n, epsilon in along]
        for solver in regime.solvers
    }


@cache
def opened(name: str, regime: str) -> tuple[Case, Regime]:
    """A table and how it is fitted, by their names in a cell."""
    case = census_case(name)
    if regime == "weak":
        case = with_ones(case)
    return case, thesis(case.columns) if regime == "thesis" else weak(case.columns)


def fit(cell: Cell) -> None:
    """Fit the models of a cell, unless an earlier run has."""
    if not (STORE / cell.file).exists():
        start = time.perf_counter()
        fits_of(*opened(cell.table, cell.regime), cell)
        say(cell.file.removesuffix(".npz"), start)


def fit_all(name: str, points: int, models: int) -> None:
    """Fit all models of a state, in two processes."""
    case, regime = opened(name, "thesis")
    cells = [cell for axis in AXES for each in cells_of(case, regime, axis, points, models).values() for cell in each]
    cells += [replace(cells[0], regime="weak", solver=s, rows=len(case.y)) for s in opened(name, "weak")[1].solvers]
    cells += [replace(cells[0], solver=s, rows=len(case.y)) for s in regime.solvers]
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(fit, dict.fromkeys(cells)))


def measured(case: Case, regime: Regime, cell: Cell, folder: Path | None = STORE) -> Measured:
    return Measured(case, regime, cell, fits_of(case, regime, cell, folder))


def curves(
    case: Case, regime: Regime, axis: str, points: int, models: int, folder: Path | None = STORE
) -> dict[str, dict[str, Curve]]:
    """For each solver and notion a panel of the figures."""
    made = {}
    for solver, cells in cells_of(case, regime, axis, points, models).items():
        found = [measured(case, regime, cell, folder).points(axis) for cell in cells]
        made[solver] = {
            notion: Curve(f"{notion}, {solver}", axis, [point[notion] for point in found]) for notion in NOTIONS
        }
    return made


def draw(panels: dict[str, dict[str, dict[str, Curve]]], name: str, models: int, folder: Path) -> None:
    """The pictures of a table: `panels` are by axis, solver and notion."""
    from PIL import Image

    title = NAMES.get(name, name)
    others = [notion for notion in NOTIONS if notion not in SHOWN]
    rest = [panels[axis]["output-perturbation"][notion] for axis in panels for notion in others]
    pictures = {"others": (rest, f"{title}, other notions", len(others))}
    for axis, of_axis in panels.items():
        chosen = [of_axis[solver][notion] for notion in SHOWN for solver in of_axis]
        pictures[axis] = (chosen, f"{title}, against {axis}", len(of_axis))
    for what, (chosen, heading, across) in pictures.items():
        path = folder / f"fairness-{name}-{what}.png"
        plot_curves(chosen, path, heading, f"{models} private models, smallest to largest", across)
        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(COLOURS)
        small.save(path, optimize=True)


def tables_of(name: str, case: Case, models: int, folder: Path | None = STORE) -> dict[str, str]:
    """The tables of a state by the names of their places on the page."""
    regime, rows = thesis(case.columns), len(case.y)
    cells = {s: Cell(name, "thesis", s, rows, EPSILON, models) for s in regime.solvers}
    strong = {s: measured(case, regime, cell, folder) for s, cell in cells.items()}
    ones = with_ones(case)
    light = weak(ones.columns)
    usual = {s: measured(ones, light, replace(cells["cd"], regime="weak", solver=s), folder) for s in light.solvers}
    return {
        f"{name} bounds": fairness_page.bounds_table(strong["output-perturbation"]),
        f"{name} code": fairness_page.code_table(strong["output-perturbation"]),
        f"{name} solvers": fairness_page.solver_table(strong),
        f"{name} weak": fairness_page.solver_table(usual),
        f"{name} models": fairness_page.model_table(strong, usual),
    }


def say(what: str, start: float) -> None:
    print(f"{what}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


def run(name: str, points: int, models: int, write: bool, pictures: Path | None) -> None:
    """Everything about one state."""
    fit_all(name, points, models)
    case, regime = opened(name, "thesis")
    panels = {axis: curves(case, regime, axis, points, models) for axis in AXES}
    for place, table in tables_of(name, case, models).items():
        print(f"{labelled(place, *NAMES)}\n\n{table}\n", flush=True)
        if write:
            fairness_page.rewrite(PAGE, place, table)
    if pictures is not None:
        draw(panels, name, models, pictures)


def main() -> None:
    parser = command(__doc__, *NAMES)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(NAMES)}; all by default")
    parser.add_argument("--write", action="store_true", help="rewrite the tables and pictures of the page")
    parser.add_argument("--quick", action="store_true", help="few points and few models, without the page")
    parser.add_argument("--fresh", action="store_true", help="forget the models of earlier runs")
    wanted = parser.parse_args()
    if wanted.quick and wanted.write:
        parser.error("--quick and --write do not go together.")
    if wanted.fresh:
        shutil.rmtree(STORE, ignore_errors=True)
    points, models = (QUICK_POINTS, QUICK_MODELS) if wanted.quick else (POINTS, MODELS)
    start = time.perf_counter()
    write = wanted.write and may_write(*NAMES)  # each table is standardised with the other one's means
    for name in wanted.names or NAMES:
        run(name, points, models, write, PAGE.parent if write else None)
    say("all", start)


if __name__ == "__main__":
    main()
