"""What the measured defaults of federated plans cost: errors of whole runs with other values, on made-up tables.

Run: .venv/bin/python benchmarks/defaults/federated.py
An error is what a run leaves of the way from a model of zeros to the optimum; geometric means over tables and seeds.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

from discreet.federated import plan_federated, planning, simulate
from discreet.federated.demo_tables import made_up
from discreet.problem import L2, Logistic, Problem, Squared

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
UNITS = {"CLIENT_CLIP": "client", "ALIGNMENT": "client", "RECORD_CLIP": "record", "SPREAD": "record"}
TABLES = [(clients, columns, epsilon) for clients in (50, 200) for columns in (5, 20) for epsilon in (1.0, 4.0)]


def error(unit: str, labels: bool, clients: int, columns: int, epsilon: float, seed: int) -> float:
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


def mean_error(name: str, value: float) -> float:
    """The geometric mean over all tables, with another value of a constant."""
    with mock.patch.object(planning, name, value):
        found = [
            error(UNITS[name], labels, *table, seed) for labels in (True, False) for table in TABLES for seed in (0, 1)
        ]
    return math.exp(float(np.mean(np.log(np.maximum(found, 1e-6)))))


def main() -> None:
    """Print one line for each constant."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from stored_tables import command

    command(__doc__, other="generated").parse_args()
    warnings.simplefilter("ignore")
    for name in UNITS:
        default = getattr(planning, name)
        print(name, *(f"{default * f:g}: {mean_error(name, default * f):.4f}" for f in FACTORS), sep="  ", flush=True)


if __name__ == "__main__":
    main()
