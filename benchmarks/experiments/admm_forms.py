"""How far a coefficient spreads in three private forms of ADMM of equal cost.

Written out with one vector per row, to be independent of the solver: least squares, full batches, noise from NumPy.
"""

from __future__ import annotations

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table

NAME = "admm_forms"
ROWS, COLUMNS, ROUNDS, RUNS = 400, 5, 100, 60
RELAXATION, CLIP, FACTOR = 0.5, 1.0, 2.0  # replacement: one row moves a sum by twice its bound
TOTALS, INCREMENTS, NOISY = "hidden duals, totals", "hidden duals, increments", "noisy duals"
FORMS = (TOTALS, INCREMENTS, NOISY)


def cells(quick):
    for form in FORMS:
        yield Cell(NAME, "drawn, least squares", form, {"runs": 3 if quick else RUNS})


def measure(cell):
    """The standard deviation over runs of the last iterate and of the mean of the second half."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = X @ np.ones(COLUMNS) + rng.normal(size=ROWS)
    runs = range(cell.setting["runs"])
    found = np.array([one_run(cell.method, X, y, np.random.default_rng(seed)) for seed in runs])
    last, mean = found.std(axis=0).mean(axis=1)
    return {"last": float(last), "mean": float(mean)}


def one_run(form: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    squares = (X**2).sum(axis=1)
    gamma, share = 1.9 / squares.mean(), 2.0 * RELAXATION
    u, mean, z, iterates = np.zeros_like(X), np.zeros(COLUMNS), np.zeros(COLUMNS), []
    for _ in range(ROUNDS):
        slopes = (np.einsum("ij,ij->i", X, 2.0 * z - u) - y) / (1.0 + gamma * squares)
        g = clipped(slopes[:, None] * X, CLIP)
        if form == NOISY:
            g = g + FACTOR * CLIP * rng.normal(size=X.shape)
        moved = (1.0 - share) * u + share * (z - gamma * g)
        if form == INCREMENTS:
            bound = 2.0 * share * gamma * CLIP
            moved = u + clipped(moved - u, bound)
            mean = mean + ((moved - u).sum(axis=0) + FACTOR * bound * rng.normal(size=COLUMNS)) / ROWS
        else:
            noise = FACTOR * CLIP * rng.normal(size=COLUMNS) if form == TOTALS else 0.0
            mean = (1.0 - share) * mean + share * (z - gamma * (g.sum(axis=0) + noise) / ROWS)
        u, z = moved, mean.copy()
        iterates.append(z)
    return iterates[-1], np.mean(iterates[ROUNDS // 2 :], axis=0)


def clipped(vectors: np.ndarray, bound: float) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, bound / np.maximum(norms, 1e-300))


def page(results, folder):
    found = {form: results.one(method=form) for form in FORMS}
    rows = [[form, f"{n['last']:#.2g}", f"{n['mean']:#.2g}"] for form, n in found.items() if n is not None]
    return table(["form", "last iterate", "mean of the second half"], rows)


admm_forms = Experiment(
    NAME,
    "admm_forms",
    "three private forms of ADMM of equal cost: the spread of a coefficient",
    cells,
    measure,
    page,
    file="../guarantees/admm.md",
)
