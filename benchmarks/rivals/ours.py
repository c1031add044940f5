"""Models of this library, as methods of the scoreboard and of the benchmark on many tables fit them."""

from __future__ import annotations

from typing import Any

import numpy as np
from generality.cells import Cell

from discreet import LogisticRegression, Ridge


def fitted(cell: Cell, epsilon: float, solver: Any = "auto", seed: int = 0, told: bool = False, **settings: Any) -> Any:
    """A private model; nothing is passed but the budget, the solver and, where `told`, the true ranges."""
    if told:
        settings["bounds"] = cell.ranges()
        if not cell.classes:
            settings["y_bounds"] = cell.target_range()
    kind = LogisticRegression if cell.classes else Ridge
    return kind(epsilon=epsilon, solver=solver, random_state=cell.seed + seed, **settings).fit(cell.X, cell.y)


def scores_of(model: Any, cell: Cell) -> np.ndarray:
    return model.decision_function(cell.held_out) if cell.classes else model.predict(cell.held_out)


def scores(cell: Cell, epsilon: float, **settings: Any) -> np.ndarray:
    """Predictions, or log-odds, for the held-out rows."""
    return scores_of(fitted(cell, epsilon, **settings), cell)
