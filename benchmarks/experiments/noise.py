"""Draws of noise a second on one core: rounded, at several scales, beside plain doubles and NumPy's generator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table

from discreet.privacy.random.generator import secure_generator

NAME = "noise"
DRAWS, QUICK_DRAWS, REPEATS = 2_000_000, 100_000, 5
TARGET = 5e6  # draws a second
USUAL = 2.0**30  # standard deviations in steps, as `noisy_grid` takes them
SCALES = (1.0, 2.0**20, USUAL, 2.0**34)
PLAIN = ("NumPy, normal (not secure, not rounded)", "normal, not rounded", "Laplace, not rounded")
ROUNDED = ("normal, rounded", "Laplace, rounded")


def cells(quick: bool) -> Iterator[Cell]:
    draws = {"draws": QUICK_DRAWS if quick else DRAWS}
    for method in PLAIN:
        yield Cell(NAME, "none", method, draws)
    for scale in SCALES[2:3] if quick else SCALES:
        for method in ROUNDED:
            yield Cell(NAME, "none", method, {**draws, "scale": scale})


def drawing(method: str, scale: float) -> Callable[[int], Any]:
    rng = secure_generator()
    ways: dict[str, Callable[[int], Any]] = {
        PLAIN[0]: np.random.default_rng().standard_normal,
        PLAIN[1]: rng.normal,
        PLAIN[2]: rng.laplace,
        ROUNDED[0]: lambda size: rng.rounded_draws("normal", scale, size),
        ROUNDED[1]: lambda size: rng.rounded_draws("laplace", scale, size),
    }
    return ways[method]


def measure(cell: Cell) -> dict[str, float]:
    """The best of five runs, as other programs may be running."""
    draw, draws = drawing(cell.method, cell.setting.get("scale", 1.0)), cell.setting["draws"]
    draw(1_000)
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        draw(draws)
        best = min(best, time.perf_counter() - begin)
    return {"draws_a_second": draws / best}


def page(results: Any, folder: Any) -> str:
    rows = []
    for cell, numbers in results.select():
        scale, speed = cell.setting.get("scale"), numbers["draws_a_second"]
        verdict = ("met" if speed >= TARGET else "MISSED") if scale == USUAL else ""
        rows.append([cell.method, f"{scale:,.0f}" if scale else "", f"{speed / 1e6:.1f}", verdict])
    return table(["draws", "scale", "million a second", f"target: {TARGET / 1e6:.0f}"], rows)


noise = Experiment(NAME, NAME, "draws of rounded noise a second, on one core", cells, measure, page, alone=True)
