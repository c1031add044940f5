"""What bounds need of a privacy budget."""

from __future__ import annotations

import math

from discreet.privacy.budget import Budget

SMALL_EPSILON, SMALL_DELTA = 1.0, 1.0 / 3.0  # where the closed formulas of the papers hold


def epsilon_and_delta(budget: Budget, most: float = math.inf) -> tuple[float, float]:
    """Epsilon and delta of a budget that is stated by them; epsilon may be at most `most`."""
    if budget.epsilon is None or budget.delta is None or math.isinf(budget.epsilon):
        raise ValueError(f"this bound is stated for a finite epsilon and a delta; got the budget {budget}.")
    if budget.epsilon > most:
        raise ValueError(f"this bound is stated for epsilon of at most {most:g}; got {budget.epsilon:g}.")
    return budget.epsilon, budget.delta


def log_of_delta(delta: float) -> float:
    """ln(1 / delta), for bounds of approximate differential privacy."""
    if not delta > 0.0:
        raise ValueError("this bound is for budgets with delta > 0.")
    return math.log(1.0 / delta)
