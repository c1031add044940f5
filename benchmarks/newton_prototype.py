"""How far from the optimum at epsilon 1 and delta 1/n^2: newton beside its rivals, all with their defaults.

Run: python benchmarks/newton_prototype.py [table ...]. Two settings: nothing declared, and bounds declared (here
the minima and maxima of the table, as a stand-in for what a user would know). Tables are read from the folder
named by DISCREET_DATA, or ../shared/data beside the checkout.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from discreet import Budget, Problem, solve
from discreet.losses import Logistic, Squared
from discreet.penalties import L1, L2

FOLDER = Path(os.environ.get("DISCREET_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEEDS = 5
SOLVERS = ("newton", "cd", "gd", "sufficient-statistics")


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def tables():
    """Name, columns, target, problem; logistic for labels, least squares for numbers."""
    for name in ("electricity", "california", "adult", "acsincome_co"):
        z = np.load(FOLDER / f"{name}.npz", allow_pickle=False)
        X, regression = z["X"], name == "california"
        y = z["y"] if regression else 2.0 * z["y"] - 1.0
        loss = Squared() if regression else Logistic()
        yield f"{name} raw", X, y, Problem(loss, L2(1e-3))
        if X.shape[1] > 8:
            continue
        yield f"{name} standardised", standardised(X), y, Problem(loss, L2(1e-3))
        second = L1(1e-2) if regression else L2(1.0 / len(y))
        yield f"{name} raw, {second.name} {second.alpha:.1e}", X, y, Problem(loss, second)


def error(problem, X, y, best, solver, options):
    """Median relative error over the seeds, its range, and the median time of a run."""
    found, seconds = [], []
    for seed in range(SEEDS):
        start = time.perf_counter()
        solution = solve(problem, X, y, solver, Budget(1.0, 1.0 / len(y) ** 2), random_state=seed, **options)
        seconds.append(time.perf_counter() - start)
        found.append(problem.objective(X, y, solution.w, solution.intercept) / best - 1.0)
    return f"{np.median(found):.1e} ({min(found):.0e} to {max(found):.0e}, {np.median(seconds):.2f} s)"


def main(wanted):
    warnings.simplefilter("ignore")
    print("| table | declared | " + " | ".join(SOLVERS) + " |\n" + "|---" * (len(SOLVERS) + 2) + "|")
    for name, X, y, problem in tables():
        if wanted and name.split()[0] not in wanted:
            continue
        best = problem.optimum(X, y).value
        y_bounds = None if problem.loss.classification else (y.min(), y.max())
        for options in ({"bounds": (X.min(axis=0), X.max(axis=0)), "y_bounds": y_bounds}, {}):
            suited = [s for s in SOLVERS if s != "sufficient-statistics" or not problem.loss.classification]
            cells = [error(problem, X, y, best, solver, options) for solver in suited]
            cells += [""] * (len(SOLVERS) - len(suited))
            print(f"| {name} | {'bounds' if options else 'nothing'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
