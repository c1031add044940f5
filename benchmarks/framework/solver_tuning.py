"""Solvers with settings tuned on the objective itself, as the papers tune theirs. The tuning is not private."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from discreet import Budget, solve
from discreet.data.public import clip_columns
from discreet.solvers import CoordinateDescent, Newton, Solution, Solver
from framework.solver_cases import Case

RUNS = 3  # of each setting; their noise is seeded, so that all settings see the same ranges
TOLERANCE = 1e-7

GRIDS: dict[str, tuple[Solver, dict[str, tuple[float | None, ...]]]] = {
    "cd": (
        CoordinateDescent(),
        {
            "clip": (0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0, 15.0, 25.0),
            "passes": (1, 2, 3, 5, 8, 15, 30, 60, 120),
        },
    ),
    "newton": (
        Newton(),
        {
            "clip": (None, 1.2, 1.8, 2.5, 3.5, 5.0),
            "steps": (6, 10, 14, 20, 30, 45),
            "moment_share": (0.03, 0.06, 0.1, 0.2),
        },
    ),
}


def tuned(case: Case, name: str, budget: Budget) -> Solver:
    """The setting with the least excess, on average."""
    optima: dict[int, float] = {}

    def loss(solver: Solver) -> float:
        found = []
        for seed in range(RUNS):
            solution = solve(case.problem, case.X, case.y, solver, budget, random_state=seed)
            optima.setdefault(seed, clipped_optimum(case, solution))
            found.append(value(case, solution) / optima[seed])
        return float(np.mean(found))

    return min(settings(name), key=loss)


def settings(name: str) -> Iterator[Solver]:
    base, grid = GRIDS[name]
    for values in itertools.product(*grid.values()):
        yield replace(base, **dict(zip(grid, values, strict=True)))


def excess(case: Case, solution: Solution) -> float:
    """How far above the optimum of the very problem it solved: on columns clipped to the model's ranges."""
    return value(case, solution) / clipped_optimum(case, solution) - 1.0


def value(case: Case, solution: Solution) -> float:
    return case.problem.objective(clipped(case, solution), case.y, solution.w, solution.intercept)


def clipped_optimum(case: Case, solution: Solution) -> float:
    return case.problem.optimum(clipped(case, solution), case.y, tolerance=TOLERANCE).value


def clipped(case: Case, solution: Solution) -> np.ndarray:
    return clip_columns(case.X, solution.scaling.low, solution.scaling.high)
