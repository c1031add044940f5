"""One private run of a solver on a problem of the papers, and what is read from it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.data.public import Public
from discreet.privacy.random.generator import seeded_generator
from discreet.solvers import Solution, Solver
from framework.cells import Numbers
from framework.paper_noise import with_calibration
from framework.problems import PaperProblem

NOT_ZERO = 1e-10  # coefficients of an optimum below it are counted as zeros


def common_bounds(problem: PaperProblem) -> dict[str, Any]:
    """One bound for all columns, so that a solver that scales columns by their bounds leaves them as they are."""
    return {"bounds": (-problem.largest, problem.largest), "y_bounds": target_bounds(problem)}


def target_bounds(problem: PaperProblem) -> tuple[float, float] | None:
    """Symmetric, so that the target is not moved: the papers' problems have no intercept."""
    if problem.problem.loss.classification:
        return None
    largest = float(np.abs(problem.y).max())
    return (-largest, largest)


def fit(
    problem: PaperProblem,
    solver: Solver,
    seed: int,
    *,
    epsilon: float | None = None,
    calibration: str = "certified",
    traced: bool = False,
    **declared: Any,
) -> Solution:
    """A run with seeded noise, so that all settings see the same noise; `declared` goes to `Public.of`."""
    public = Public.of(problem.rows, problem.columns, sparse=sp.issparse(problem.X), **declared)
    plan = with_calibration(solver.plan(problem.problem, public, problem.budget(epsilon)), calibration)
    trace: Any = "non-private" if traced else None
    return solver.solve(problem.problem, problem.data, plan, seeded_generator(seed), None, trace)


def numbers_of(problem: PaperProblem, make: Any, traced: bool = False) -> Numbers:
    """The error of the solution that `make()` gives, its support, the time, and if `traced` the way to it."""
    start = time.process_time()
    solution: Solution = make()
    seconds = time.process_time() - start
    numbers: Numbers = {"error": problem.error_of(solution), "seconds": seconds, **support_of(problem, solution.w)}
    if traced and solution.objective_trace is not None:
        numbers["trace"] = [value / problem.best.value - 1.0 for value in solution.objective_trace]
    return numbers


def support_of(problem: PaperProblem, coef: np.ndarray) -> Numbers:
    """How many non-zeros are right, and how many wrong."""
    true, found = np.abs(problem.best.coef) > NOT_ZERO, coef != 0.0
    return {"right": int((true & found).sum()), "wrong": int((~true & found).sum())}
