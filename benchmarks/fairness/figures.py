"""Figures 6.6.1, D.3.1 and D.3.2 of the thesis: bounds and private models against rows and against epsilon."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from discreet.fairness.figures import Curve, plot_curves
from fairness.bounds import NOTIONS, Measured
from fairness.cases import Case, Regime
from fairness.fits import FitsOf, Setting
from fairness.tables import EPSILON

AXES = ("rows", "epsilon")
FEWEST_ROWS, EPSILONS = 100, (0.01, 10.0)
SHOWN = ("equality of opportunity", "accuracy")  # in Figure 6.6.1; the others are in D.3.1 and D.3.2
COLOURS = 64  # of the pictures, to keep them small


def settings_of(
    name: str, rows: int, solvers: Iterable[str], axis: str, points: int, models: int
) -> list[list[Setting]]:
    """For each solver its settings along an axis: numbers of rows at epsilon 1, or epsilons with all rows."""
    ends = (FEWEST_ROWS, rows) if axis == "rows" else EPSILONS
    spaced = [float(value) for value in np.geomspace(*ends, points)]
    along = [(round(at), EPSILON) if axis == "rows" else (rows, at) for at in spaced]
    return [[Setting(name, "thesis", solver, n, epsilon, models) for n, epsilon in along] for solver in solvers]


def curves(
    case: Case, regime: Regime, axis: str, points: int, models: int, fits: FitsOf
) -> dict[str, dict[str, Curve]]:
    """For each solver and notion a panel of the figures."""
    made = {}
    for settings in settings_of(case.name, len(case.y), regime.solvers, axis, points, models):
        found, solver = [Measured(case, regime, one, fits(one)).points(axis) for one in settings], settings[0].solver
        made[solver] = {
            notion: Curve(f"{notion}, {solver}", axis, [point[notion] for point in found]) for notion in NOTIONS
        }
    return made


def draw(panels: dict[str, dict[str, dict[str, Curve]]], name: str, title: str, models: int, folder: Path) -> None:
    """The pictures of a table: `panels` are by axis, solver and notion."""
    from PIL import Image

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
