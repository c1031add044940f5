"""What the measured defaults of federated plans cost: errors of whole runs with other values, on made-up tables.

An error is what a run leaves of the way from a model of zeros to the optimum.
"""

from __future__ import annotations

from unittest import mock

import numpy as np

from discreet.federated import plan_federated, planning, simulate
from discreet.federated.simulation import made_up
from discreet.problem import L2, Logistic, Problem, Squared

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
UNITS = {"CLIENT_CLIP": "client", "ALIGNMENT": "client", "RECORD_CLIP": "record", "SPREAD": "record"}
TABLES = {
    f"{'labels' if labels else 'target'}, {clients} clients x 30 rows, {columns} columns, epsilon {epsilon:g}": (
        labels, clients, columns, epsilon
    )
    for labels in (True, False) for clients in (50, 200) for columns in (5, 20) for epsilon in (1.0, 4.0)
}  # fmt: skip


def run_error(unit: str, labels: bool, clients: int, columns: int, epsilon: float, seed: int) -> float:
    """What one run leaves of the way to the optimum."""
    problem = Problem(Logistic() if labels else Squared(), L2(1e-3))
    table = made_up(clients, 30, columns, labels, seed)
    rows = np.concatenate(list(table.parts.values()))
    X, y = table.X[rows], table.y[rows]
    best, nothing = problem.optimum(X, y).value, problem.objective(X, y, np.zeros(columns), 0.0)
    facts = {"y_bounds": table.y_bounds, "epsilon": epsilon, "unit": unit, "model": "central", "rows_per_client": 30}
    run = simulate(
        plan_federated(problem, columns, table.bounds, clients, **facts), table.X, table.y, table.parts, seed=seed
    )
    found = problem.objective(X, y, *run.server.to_user(run.server.averaged_weights))
    return (found - best) / (nothing - best)


def error_with(name: str, value: float, table: tuple[bool, int, int, float], seed: int) -> float:
    """The error of one run with another value of a constant."""
    with mock.patch.object(planning, name, value):
        return run_error(UNITS[name], *table, seed)
