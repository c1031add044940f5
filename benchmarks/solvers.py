"""Every solver on every problem that it takes, with default settings: relative error, held-out score, time.

Run: make bench-solvers. Results are kept in build/bench-solvers.json as they come, so that a stopped run goes on where
it stopped; --fresh starts anew. Tables, plots and what is measured: docs/benchmarks/solvers.md.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: times are those of one core

import numpy as np
import solver_page
from solver_problems import Case, form_for, open_case, recipes
from solver_tuning import GRIDS, excess, tuned
from stored_tables import command, is_stand_in, labelled, may_write

from discreet import Budget, solve
from discreet._common.exceptions import IncompatibleSolverError
from discreet.data.clipping import clip_columns
from discreet.solvers import SOLVERS, Solver

EPSILONS = (0.1, 1.0, 10.0)
MIDDLE = 1.0  # the epsilon at which solvers are also tuned, and the excess is measured
RUNS = 5
MOST_SECONDS = 6.0  # of processor time for one solver at one epsilon; what is left of its runs is not made
STORE = Path(__file__).resolve().parents[1] / "build" / "bench-solvers.json"
STAND_INS = STORE.with_name("bench-solvers-stand-ins.json")  # never among the results of the real tables

Cell = dict[str, Any]


def budget_of(case: Case, epsilon: float) -> Budget:
    return Budget(epsilon, 1.0 / len(case.y) ** 2)


def measure(case: Case, solver: Solver, epsilon: float, declared: bool) -> Cell:
    """Some runs of one solver with fresh noise; or the reason why there are none."""
    budget = budget_of(case, epsilon)
    found = form_for(solver, case, budget)
    if isinstance(found, str):
        return {"refused": found}
    form, problem = found
    known = case.declared() if declared else {}
    cell: Cell = {"form": form, "error": [], "excess": [], "score": [], "seconds": []}
    while len(cell["error"]) < RUNS and sum(cell["seconds"]) < MOST_SECONDS:
        start = time.process_time()
        try:
            solution = solve(problem, case.X, case.y, solver, budget, **known)
        except IncompatibleSolverError as why_incompatible:  # some can tell only when they plan
            return {"refused": str(why_incompatible).partition(": ")[2].partition("; ")[0]}
        except (ValueError, MemoryError) as failure:  # a fault of the solver: shown, so that it is not overlooked
            return {"refused": f"it failed: {failure}".rstrip(".")}
        cell["seconds"].append(time.process_time() - start)
        limits, model = (solution.scaling.low, solution.scaling.high), (solution.w, solution.intercept)
        cell["error"].append(case.error(clip_columns(case.X, *limits), *model))
        if epsilon == MIDDLE:
            cell["excess"].append(excess(case, solution))
        cell["score"].append(case.score(clip_columns(case.X_test, *limits), *model))
    return cell


def yardsticks(case: Case) -> Cell:
    """What needs no solver: the shape of the table, the optimum and the best constant."""
    coef, intercept = case.constant()
    return {
        "rows": len(case.y),
        "columns": case.X.shape[1],
        "test_rows": len(case.y_test),
        "optimum": case.best.value,
        "optimum_score": case.score(case.X_test, case.best.coef, case.best.intercept),
        "constant": case.error(case.X, coef, intercept),
        "constant_score": case.score(case.X_test, coef, intercept),
        "classification": case.recipe.loss.classification,
        "declarable": case.declarable,
        "papers": case.recipe.papers,
    }


def run(results: dict[str, Cell], names: list[str], store: Path) -> None:
    """Fill in what is missing, and keep it after every cell."""
    for recipe in recipes():
        if names and recipe.name not in names:
            continue
        case = open_case(recipe)
        results[recipe.name] = yardsticks(case)
        for declared in (False, True) if case.declarable else (False,):
            for solver in SOLVERS:
                for epsilon in EPSILONS:
                    key = solver_page.key_of(recipe.name, solver, epsilon, declared)
                    if key in results:
                        continue
                    keep(results, key, measure(case, SOLVERS[solver](), epsilon, declared), store)
        for solver in GRIDS if case.declarable else ():
            key = solver_page.tuned_key(recipe.name, solver)
            if key not in results:
                best = tuned(case, solver, budget_of(case, MIDDLE))
                keep(results, key, {**measure(case, best, MIDDLE, False), "setting": str(best)}, store)


def keep(results: dict[str, Cell], key: str, cell: Cell, store: Path) -> None:
    results[key] = cell
    print(key, summary(cell), flush=True)
    store.parent.mkdir(exist_ok=True)
    store.write_text(json.dumps(results, indent=1))


def summary(cell: Cell) -> str:
    if "refused" in cell:
        return cell["refused"]
    error, score, seconds = (np.mean(cell[k]) for k in ("error", "score", "seconds"))
    return f"error {error:.2e} score {score:.3f} seconds {seconds:.2f} ({len(cell['error'])} runs)"


def main() -> None:
    warnings.simplefilter("ignore")
    stored = {recipe.name: recipe.name.split("-")[0] for recipe in recipes() if recipe.name != "sparse-lasso"}
    parser = command(__doc__, *dict.fromkeys(stored.values()), other="sparse-lasso is generated")
    names = [recipe.name for recipe in recipes()]
    parser.add_argument("problems", nargs="*", help=f"some of {', '.join(names)}; all by default")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    parser.add_argument("--write", action="store_true", help="put tables and plots into docs/benchmarks/")
    wanted = parser.parse_args()
    if unknown := set(wanted.problems) - set(names):
        parser.error(f"no such problem: {', '.join(sorted(unknown))}")
    used = {stored[name] for name in wanted.problems or names if name in stored}
    write = wanted.write and may_write(*sorted(used))
    store = STAND_INS if any(is_stand_in(name) for name in used) else STORE
    if wanted.fresh:
        store.unlink(missing_ok=True)
    results: dict[str, Cell] = json.loads(store.read_text()) if store.exists() else {}
    start = time.perf_counter()
    run(results, wanted.problems, store)
    print(f"{time.perf_counter() - start:.0f} s")
    for name in [name for name in wanted.problems or names if name in results]:
        shown = labelled(name, stored[name]) if name in stored else name
        print(f"\n## {shown}\n\n{solver_page.table(results, name, EPSILONS, RUNS)}")
        if write:
            solver_page.write(results, name, EPSILONS, RUNS)


if __name__ == "__main__":
    main()
