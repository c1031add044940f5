"""The bias of every solver's coefficients at its defaults, in standard errors, where nothing must be clipped.

Columns are uniform within declared bounds, and the model is true. The distance is that from the estimate of maximum
likelihood on the same rows, so that it is the work of the private fit alone: its mean over the draws is the bias, its
spread the noise. A standard error is the root of the sum of two squares: that of the estimate because rows are sampled,
and the noise.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from scipy.special import expit

from discreet import InsecureRandomnessWarning, Problem, UtilityWarning, solve
from discreet.problem import L2, Logistic, Squared
from discreet.solvers import SOLVERS

NAME = "bias"
LABELS, TARGET = "labels", "a number"
SLOPES = {"one column": (2.0,), "five columns": (1.0, -0.5, 0.5, 0.0, 2.0)}
INTERCEPT, ALPHA, FARTHEST = 0.3, 1e-7, 12.0  # no target lies further out in a billion rows
SIZES = ((2_000, 1.0), (20_000, 1.0), (20_000, 10.0), (20_000, 100.0))  # rows and epsilon
DRAWS = 16
# Those that need a set, or that give one of a few columns and not a model of all.
LEFT_OUT = ("exponential", "frank-wolfe", "mirror-descent", "screened")
LABELS_ALONE = ("bolt-on", "objective-perturbation", "output-perturbation")
TARGET_ALONE = ("sufficient-statistics",)


def solvers(kind: str) -> list[str]:
    refuse = TARGET_ALONE if kind == LABELS else LABELS_ALONE
    return sorted(name for name in SOLVERS if name not in LEFT_OUT + refuse)


def cells(quick: bool) -> Iterator[Cell]:
    for columns in list(SLOPES)[: 1 if quick else None]:
        for kind in (LABELS, TARGET):
            for solver in ["gd"] if quick else solvers(kind):
                for rows, epsilon in SIZES[:1] if quick else SIZES:
                    asked = {"rows": rows, "epsilon": epsilon, "draws": 2 if quick else DRAWS}
                    yield Cell(NAME, f"{kind}, {columns}", solver, asked)


@functools.lru_cache(maxsize=2)
def drawn(name: str, rows: int, seed: int) -> tuple[Any, ...]:
    """Rows, labels or targets, the maximum-likelihood estimate and its standard errors; the intercept comes last."""
    kind, columns = name.split(", ")
    rng, slopes = np.random.default_rng([seed, rows]), np.array(SLOPES[columns])
    X = rng.uniform(-1.0, 1.0, (rows, slopes.size))
    scores, table = X @ slopes + INTERCEPT, np.column_stack([X, np.ones(rows)])
    if kind == TARGET:
        y = scores + rng.normal(size=rows)
        return X, y, np.linalg.lstsq(table, y)[0], np.sqrt(np.diag(np.linalg.inv(table.T @ table)))
    y = np.where(rng.random(rows) < expit(scores), 1.0, -1.0)
    best = np.zeros(slopes.size + 1)
    for _ in range(10):  # Newton steps
        chance = expit(table @ best)
        covariance = np.linalg.inv((table * (chance * (1.0 - chance))[:, None]).T @ table)
        best = best + covariance @ (table.T @ (0.5 * (y + 1.0) - chance))
    return X, y, best, np.sqrt(np.diag(covariance))


def measure(cell: Cell) -> dict[str, Any]:
    """The bias and the noise of each coefficient, and the error of the bias that the draws leave."""
    return found_of(cell.dataset, cell.method, **cell.setting)


def found_of(name: str, solver: Any, rows: int, epsilon: float, draws: int) -> dict[str, Any]:
    problem = Problem(Logistic() if name.startswith(LABELS) else Squared(), L2(ALPHA))
    limits = None if problem.loss.classification else (-FARTHEST, FARTHEST)
    distances = []
    for seed in range(draws):
        X, y, best, errors = drawn(name, rows, seed)
        with warnings.catch_warnings():
            for expected in (InsecureRandomnessWarning, UtilityWarning):
                warnings.simplefilter("ignore", expected)
            found = solve(problem, X, y, solver, epsilon, bounds=(-1.0, 1.0), y_bounds=limits, random_state=seed)
        distances.append((np.append(found.coef, found.intercept) - best) / errors)
    noise = np.std(distances, axis=0, ddof=1)
    total = np.hypot(1.0, noise)
    bias = np.mean(distances, axis=0) / total
    return {"bias": bias.tolist(), "error": (noise / total / math.sqrt(draws)).tolist(), "noise": noise.tolist()}


def page(results: Any, folder: Any) -> str:
    """For each table and solver the largest bias of a coefficient, with its sign and its error."""
    parts = []
    for kind in (LABELS, TARGET):
        for columns in SLOPES:
            name, lines = f"{kind}, {columns}", []
            for solver in solvers(kind):
                line = [f"`{solver}`"]
                for rows, epsilon in SIZES:
                    line.append(shown(results.one(dataset=name, method=solver, rows=rows, epsilon=epsilon)))
                lines.append(line)
            heads = [f"{rows:,}, {epsilon:g}" for rows, epsilon in SIZES]
            parts += [f"{name[0].upper()}{name[1:]}:", table(["rows, epsilon", *heads], lines)]
    return "\n\n".join(parts)


def shown(found: dict[str, Any] | None) -> str:
    if found is None or "bias" not in found:
        return "-"
    place = int(np.argmax(np.abs(found["bias"])))
    return f"{found['bias'][place]:+.2f} +- {found['error'][place]:.2f} ({found['noise'][place]:.2g})"


bias = Experiment(NAME, NAME, "the bias of coefficients in standard errors", cells, measure, page, file="bias.md")
