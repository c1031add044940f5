"""What each tuned default loses against the best value of a scan around it, on synthetic tables.

The constant is replaced by each value of a grid, everything else stays. An error is what a model leaves of the way
from the best constant to the optimum of the training objective: 0 is the optimum, 1 a constant. Errors are averaged as
logarithms (geometric means) over seeds; table and noise are drawn anew for each seed, the same for all values. Two
figures result:

    regret         the error of the default over that of the one value which is best over all tables, less 1;
    worst table    the same for the table on which the default loses most, against the value that is best there.

Each comes with its standard error. Both are somewhat too large, the second one more: the best of several noisy means
owes a part of its place to luck. The optimum is read from the rows: scans are not private, and no user's rows are part
of them. Each constant is an experiment of its name: `run.py defaults --only solvers.newton.planning.STEPS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from defaults import federated
from defaults.regret import regret_table
from defaults.replaced import replaced
from defaults.scans import SCANS, Scan, shown
from framework import Cell, Experiment

from discreet.federated import planning

LEAST_ERROR = 1e-4  # smaller ones count as this: clipped columns may even fit better than the optimum without clipping
FEDERATED_SEEDS = 2
QUICK = {"solvers.gradient_descent.GradientDescent.step", "federated.planning.SPREAD"}


def cells(constant: str, quick: bool) -> Iterator[Cell]:
    """One for each table and seed; it tries all values."""
    values, _, tables, seeds = facts(constant)
    for name in tables if not quick else tables[:2] * (constant in QUICK):
        for seed in range(1 if quick else seeds):
            yield Cell(constant, name, "all values", {"values": list(map(shown, values))}, seed)


def facts(constant: str) -> tuple[tuple[Any, ...], int, list[str], int]:
    """The values that are tried, the place of the default, the names of the tables, and how many seeds."""
    if constant in SCANS:
        scan = SCANS[constant]
        return scan.values, scan.values.index(scan.default), [table.name for table in scan.tables], scan.seeds
    usual = getattr(planning, constant.rsplit(".", 1)[1])
    values = tuple(usual * factor for factor in federated.FACTORS)
    return values, values.index(usual), list(federated.TABLES), FEDERATED_SEEDS


def measure(cell: Cell) -> dict[str, Any]:
    if cell.experiment in SCANS:
        return {"errors": scan_errors(SCANS[cell.experiment], cell.dataset, cell.seed)}
    name, table = cell.experiment.rsplit(".", 1)[1], federated.TABLES[cell.dataset]
    return {"errors": [federated.error_with(name, value, table, cell.seed) for value in facts(cell.experiment)[0]]}


def scan_errors(scan: Scan, name: str, seed: int) -> list[float]:
    """The error of each value on one table; warnings that a table has too few rows say nothing new."""
    table = next(each for each in scan.tables if each.name == name)
    error, found = scan.measure(table, seed), []
    for value in scan.values:
        with replaced(scan, value) as settings:
            found.append(error(**settings))
    return found


def page(results: Any, folder: Any) -> str:
    """Of the tables on which no run failed."""
    values, default, _, _ = facts(results.experiment.name)
    failed = {cell.dataset for cell, _ in results.failures}
    tables = [name for name in dict.fromkeys(cell.dataset for cell in results.cells) if name not in failed]
    if not tables:
        return ""
    errors = [[numbers["errors"] for _, numbers in results.select(dataset=name)] for name in tables]
    found = np.log(np.maximum(np.array(errors, dtype=float), LEAST_ERROR))  # by table, seed and value
    return regret_table(results.experiment.name, values, default, tables, found.transpose(2, 0, 1))


NAMES = [*SCANS, *(f"federated.planning.{name}" for name in federated.UNITS)]
defaults = [
    Experiment(name, "defaults", "what the default loses", partial(cells, name), measure, page) for name in NAMES
]
