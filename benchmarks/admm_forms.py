"""How far a coefficient spreads in three private forms of ADMM of equal cost: docs/guarantees/admm.md.

Written out with one vector per row, to be independent of the solver: least squares, full batches, noise from NumPy.
"""

from __future__ import annotations

import numpy as np
from stored_tables import command

ROWS, COLUMNS, ROUNDS, RUNS = 400, 5, 100, 60
RELAXATION, CLIP, FACTOR = 0.5, 1.0, 2.0  # replacement: one row moves a sum by twice its bound


def spread(form: str) -> tuple[float, float]:
    """The standard deviation over runs of the last iterate and of the mean of the second half."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = X @ np.ones(COLUMNS) + rng.normal(size=ROWS)
    found = np.array([_run(form, X, y, np.random.default_rng(seed)) for seed in range(RUNS)])
    last, mean = found.std(axis=0).mean(axis=1)
    return float(last), float(mean)


def _run(form: str, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    squares = (X**2).sum(axis=1)
    gamma, share = 1.9 / squares.mean(), 2.0 * RELAXATION
    u, mean, z, iterates = np.zeros_like(X), np.zeros(COLUMNS), np.zeros(COLUMNS), []
    for _ in range(ROUNDS):
        slopes = (np.einsum("ij,ij->i", X, 2.0 * z - u) - y) / (1.0 + gamma * squares)
        g = _clipped(slopes[:, None] * X, CLIP)
        if form == "noisy duals":
            g = g + FACTOR * CLIP * rng.normal(size=X.shape)
        moved = (1.0 - share) * u + share * (z - gamma * g)
        if form == "hidden duals, increments":
            bound = 2.0 * share * gamma * CLIP
            moved = u + _clipped(moved - u, bound)
            mean = mean + ((moved - u).sum(axis=0) + FACTOR * bound * rng.normal(size=COLUMNS)) / ROWS
        else:
            noise = FACTOR * CLIP * rng.normal(size=COLUMNS) if form == "hidden duals, totals" else 0.0
            mean = (1.0 - share) * mean + share * (z - gamma * (g.sum(axis=0) + noise) / ROWS)
        u, z = moved, mean.copy()
        iterates.append(z)
    return iterates[-1], np.mean(iterates[ROUNDS // 2 :], axis=0)


def _clipped(vectors: np.ndarray, bound: float) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, bound / np.maximum(norms, 1e-300))


if __name__ == "__main__":
    command(__doc__, other="generated").parse_args()
    for name in ("hidden duals, totals", "hidden duals, increments", "noisy duals"):
        print(f"| {name} | {spread(name)[0]:.2g} | {spread(name)[1]:.2g} |")
