"""Rivals from the literature on sufficient statistics: AdaSSP (Wang, 2018) and BoostedAdaSSP (Tang et al., 2023).

Both are told the true range of every column and of the target. Columns are moved to [-1, 1], a column of ones is added,
and rows are divided by the square root of their length, so that their norm is at most 1. Labels count as -1 and 1.

Noise is that of Gaussian differential privacy, calibrated exactly to (epsilon, delta) and split evenly between the
least eigenvalue, the matrix X'X and the products X'y. Neighbours differ by one replaced row, as in this library; the
papers' formulas are for one row more or less. Guarantee: (epsilon, delta)-differential privacy for public ranges.
"""

from __future__ import annotations

import math

import numpy as np
from generality.cells import Cell

from discreet.privacy.accounting import gaussian_mu

BOOSTING_ROUNDS = 10  # the paper takes 100, which was worse on tables to develop on: noise grows with the rounds
FAILURE = 0.05  # the probability that the penalty of AdaSSP is too small, as in the paper
LEAST_PROBABILITY = 0.01  # of a label, where a score of least squares is read as a probability


def scores(cell: Cell, epsilon: float, rounds: int = 1) -> np.ndarray:
    """Predictions, or log-odds, for the held-out rows."""
    rng = np.random.default_rng(cell.seed + rounds)
    low, high = (-1.0, 1.0) if cell.classes else cell.target_range()
    y = 2.0 * cell.y - 1.0 if cell.classes else centred(cell.y, low, high)
    X, held_out = (_unit_rows(part, *cell.ranges()) for part in (cell.X, cell.held_out))
    found = held_out @ weights(X, y, gaussian_mu(epsilon, cell.delta), cell.delta, rounds, rng)
    if not cell.classes:
        return 0.5 * (low + high) + 0.5 * (high - low) * found
    share = np.clip(0.5 * (1.0 + found), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    return np.log(share / (1.0 - share))


def weights(X: np.ndarray, y: np.ndarray, mu: float, delta: float, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """Private least squares; more than one round fits the residuals again, cut to [-1, 1].

    Replacing a row of norm at most 1 changes the least eigenvalue of X'X by at most 1, X'X by at most sqrt(2) in
    Frobenius norm, and X'y by at most 2 for targets in [-1, 1].
    """
    columns, part = X.shape[1], mu / math.sqrt(3.0)
    matrix = X.T @ X
    noise = math.sqrt(2.0) / part
    draws = np.triu(rng.normal(scale=noise, size=matrix.shape))
    noisy = matrix + draws + np.triu(draws, 1).T
    least = float(np.linalg.eigvalsh(matrix)[0]) + rng.normal(scale=1.0 / part)
    least = max(0.0, least - math.sqrt(math.log(6.0 / delta)) / part)
    penalty = max(0.0, noise * math.sqrt(columns * math.log(2.0 * columns**2 / FAILURE)) - least)
    solving = np.linalg.pinv(noisy + penalty * np.eye(columns))
    found = np.zeros(columns)
    for _ in range(rounds):
        residuals = np.clip(y - X @ found, -1.0, 1.0)
        found += solving @ (X.T @ residuals + rng.normal(scale=2.0 * math.sqrt(rounds) / part, size=columns))
    return found


def centred(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Values cut to their range and moved to [-1, 1]; 0 where a range is a single value."""
    width = np.asarray(high) - low
    moved = np.clip((2.0 * values - low - high) / np.where(width > 0.0, width, 1.0), -1.0, 1.0)
    return np.where(width > 0.0, moved, 0.0)


def _unit_rows(X: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    ones = np.ones((len(X), 1))
    return np.column_stack([centred(X, low, high), ones]) / math.sqrt(X.shape[1] + 1)
