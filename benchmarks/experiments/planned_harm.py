"""Planned harm beside the harm that private fits do.

The table is made up: normal columns that do not depend on the group, labels with log-odds of standard deviation 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from sklearn.linear_model import LogisticRegression as PlainRegression

from discreet import LogisticRegression
from discreet.fairness import NormalMargins, harm_of
from discreet.solvers.output_perturbation import OutputPerturbation

NAME = "planned-harm"
ROWS, COLUMNS, SHARE, FITS, RIDGE = 45_000, 10, 1 / 3, 15, 0.03
PERTURBED, NEWTON = "output-perturbation", "newton"
CASES = [(PERTURBED, epsilon) for epsilon in (0.2, 1.0, 5.0)] + [(NEWTON, 0.2), (NEWTON, 1.0)]
RIDGES = (0.01, 0.03, 0.1, 1.0)
HARM, BY_RIDGE = "harm", "ridges"  # the two tables


def cells(quick: bool) -> Iterator[Cell]:
    fits = {"fits": 1 if quick else FITS}
    for solver, epsilon in CASES[1:2] if quick else CASES:
        yield Cell(NAME, HARM, solver, {**fits, "epsilon": epsilon, "ridge": RIDGE})
    for ridge in RIDGES[1:2] if quick else RIDGES:
        yield Cell(NAME, BY_RIDGE, PERTURBED, {**fits, "epsilon": 1.0, "ridge": ridge})


@cache
def made() -> tuple[Any, Any, Any]:
    """Rows, labels, and who is in the smaller group."""
    rng = np.random.default_rng(0)
    small = rng.random(ROWS) < SHARE
    X, direction = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=COLUMNS)
    y = (X @ (2.0 * direction / np.linalg.norm(direction)) + rng.logistic(size=ROWS) > 0.0).astype(int)
    return X, y, small


def noise_free(solver: str, ridge: float) -> Any:
    """The scores of the noise-free model: for output perturbation with its ridge and rows that are as short."""
    X, y, _ = made()
    if solver == NEWTON:
        return PlainRegression(C=1.0 / (1e-5 * ROWS), tol=1e-10).fit(X, y).decision_function(X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    shortening = np.minimum(1.0, math.sqrt(COLUMNS) / np.linalg.norm(scaled, axis=1))[:, None]
    short, full = (np.column_stack([rows, np.ones(ROWS)]) for rows in (scaled * shortening, scaled))
    plain = PlainRegression(C=1.0 / (ridge * ROWS), fit_intercept=False, tol=1e-10)
    return full @ plain.fit(short, y).coef_.ravel()


def opportunity(scores: Any) -> float:
    """P(correct | favourable, small group) - P(correct | favourable)."""
    _, y, small = made()
    right = scores > 0.0
    return float(right[(y == 1) & small].mean() - right[y == 1].mean())


def measure(cell: Cell) -> dict[str, Any]:
    """What private fits change, and what the plan foresees with the noise-free deviation and with that of the rows."""
    X, y, small = made()
    ridge, epsilon = cell.setting["ridge"], cell.setting["epsilon"]
    solver = OutputPerturbation(ridge=ridge, row_norm=1.0) if cell.method == PERTURBED else cell.method
    asked = {"epsilon": epsilon, "solver": solver, "classes": [0, 1]}
    models = [LogisticRegression(**asked, random_state=seed) for seed in range(cell.setting["fits"])]
    twin, scores = noise_free(cell.method, ridge), [model.fit(X, y).decision_function(X) for model in models]
    groups = {"large": int((~small).sum()), "small": int(small.sum())}

    def planned(deviation: float) -> Any:
        try:
            margins = NormalMargins(float(y.mean()), deviation)
            return harm_of(models[0], ROWS, COLUMNS, groups, margins=margins, mode="expected").worst
        except ValueError:
            return None  # no model with this ridge has such margins

    found, with_two = planned(float(twin.std())), planned(2.0)
    return {
        "deviation": float(twin.std()),
        "changed": float(np.mean([((one > 0.0) != (twin > 0.0)).mean() for one in scores])),
        "moved": float(np.mean([abs(opportunity(one) - opportunity(twin)) for one in scores])),
        "planned": None if found is None else found.changed,
        "bound": None if found is None else found.change,
        "planned_with_2": None if with_two is None else with_two.changed,
    }


def four(value: float | None) -> str:
    return "refused" if value is None else f"{value:.4f}"


def page(results: Any, folder: Any) -> dict[str, str]:
    names = {PERTURBED: f"`{PERTURBED}`, ridge {RIDGE:g}", NEWTON: f"`{NEWTON}`"}
    harm = [
        [
            names[cell.method],
            f"{cell.setting['epsilon']:g}",
            four(found["changed"]),
            four(found["planned"]) + " (predicted)" * (cell.method == NEWTON),
            four(found["moved"]),
            four(found["bound"]),
        ]
        for cell, found in results.select(dataset=HARM)
    ]
    ridges = [
        [
            f"{cell.setting['ridge']:g}",
            f"{found['deviation']:.2f}",
            *(four(found[name]) for name in ("changed", "planned", "planned_with_2")),
        ]
        for cell, found in results.select(dataset=BY_RIDGE)
    ]
    told = ["change of the smaller group", "bound on its mean"]
    by_ridge = ["ridge", "deviation of the noise-free scores", "predictions changed"]
    return {
        HARM: table(["solver", "epsilon", "predictions changed", "planned", *told], harm),
        BY_RIDGE: table([*by_ridge, "planned with this deviation", "planned with 2"], ridges),
    }


planned_harm = Experiment(
    NAME,
    NAME,
    "the harm that a plan foresees beside that of private fits",
    cells,
    measure,
    page,
    file="../choose_epsilon.md",
)
