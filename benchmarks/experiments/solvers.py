"""Every solver on every problem that it takes, with default settings: relative error, held-out score, time.

What is measured is said in docs/benchmarks/solvers.md.
"""

from __future__ import annotations

import time
from typing import Any

from experiments.solvers_page import page_of
from framework import Cell as Task
from framework import Experiment
from framework.registry import datasets, datasets_of
from framework.solver_cases import Case, form_for, open_case
from framework.solver_tuning import GRIDS, excess, tuned

from discreet import Budget, solve
from discreet._common.exceptions import IncompatibleSolverError
from discreet.data.public import clip_columns
from discreet.solvers import SOLVERS, Solver

NAME = "solvers"
EPSILONS = (0.1, 1.0, 10.0)
MIDDLE = 1.0  # the epsilon at which solvers are also tuned, and the excess is measured
RUNS = 5
MOST_SECONDS = 6.0  # of processor time for one solver at one epsilon; what is left of its runs is not made
QUICK = ("cd", "newton")

Cell = dict[str, Any]


def cells(quick):
    for dataset in datasets_of(NAME)[: 1 if quick else None]:
        yield Task(NAME, dataset.name, "yardsticks")
        declarable = dataset.facts[NAME]["declarable"]
        for declared in (False, True) if declarable and not quick else (False,):
            for solver in QUICK if quick else SOLVERS:
                for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                    yield Task(NAME, dataset.name, solver, {"epsilon": epsilon, "declared": declared})
        for solver in GRIDS if declarable and not quick else ():
            yield Task(NAME, dataset.name, solver, {"tuned": True})


def measure(task):
    case = open_case(task.dataset)
    if task.method == "yardsticks":
        return yardsticks(case)
    if task.setting.get("tuned"):
        best = tuned(case, task.method, budget_of(case, MIDDLE))
        return {**runs_of(case, best, MIDDLE, False), "setting": str(best)}
    return runs_of(case, SOLVERS[task.method](), task.setting["epsilon"], task.setting["declared"])


def budget_of(case: Case, epsilon: float) -> Budget:
    return Budget(epsilon, 1.0 / len(case.y) ** 2)


def runs_of(case: Case, solver: Solver, epsilon: float, declared: bool) -> Cell:
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
    facts = datasets()[case.name].facts["solvers"]
    return {
        "rows": len(case.y),
        "columns": case.X.shape[1],
        "test_rows": len(case.y_test),
        "optimum": case.best.value,
        "optimum_score": case.score(case.X_test, case.best.coef, case.best.intercept),
        "constant": case.error(case.X, coef, intercept),
        "constant_score": case.score(case.X_test, coef, intercept),
        "classification": case.loss.classification,
        "declarable": facts["declarable"],
        "papers": facts.get("papers", {}),
    }


def page(results, folder):
    return page_of(results, EPSILONS, RUNS, folder)


solvers = Experiment(
    NAME,
    "solvers",
    "every solver on every problem that it takes, untuned",
    cells,
    measure,
    page,
    file="solvers.md",
    stored=("electricity", "california", "adult", "acsincome_co", "meltingpoint"),
)
