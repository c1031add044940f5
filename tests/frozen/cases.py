"""Every solver under every relation and kind of budget, on one small table, and what a seeded run of it must give.

`python -m tests.frozen.cases` writes `fits.json` anew; do this only where a change of the numbers is meant, and say in
the commit by how much they change and why.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path

import numpy as np

from discreet import Budget, IncompatibleSolverError, solve
from discreet.privacy.accounting.events import event_to_dict
from discreet.problem import L2, Box, L1Ball, Logistic, Problem, Squared
from discreet.solvers import SOLVERS

STORED = Path(__file__).with_name("fits.json")
RELATIONS = ("replace", "zero_out", "add_remove")
BUDGETS = {
    "approximate": Budget(1.0, 1e-6),
    "pure": Budget.pure(2.0),
    "zcdp": Budget.zcdp(0.1),
    "gdp": Budget.gdp(0.5),
    "infinite": Budget(math.inf, 1e-6),
}
FORMS = ({"penalty": L2(0.01)}, {"constraint": Box(-2.0, 2.0)}, {"constraint": L1Ball(2.0)})
LOSSES = {"labels": Logistic(), "targets": Squared()}
ROWS = 240


def table(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of uneven scale, made of sines, so that no generator of random numbers has a part in them."""
    rows = np.arange(1.0, ROWS + 1.0)[:, None]
    X = np.sin(rows * np.sqrt(np.arange(2.0, columns + 2.0))) * np.linspace(0.5, 3.0, columns)
    return X, X @ np.linspace(1.0, -0.5, columns) + 0.3 * np.sin(7.0 * rows[:, 0])


def cases() -> list[tuple[str, str, str, str]]:
    return [(solver, kind, relation, budget)
            for solver in SOLVERS for kind in LOSSES for relation in RELATIONS for budget in BUDGETS]  # fmt: skip


def problem_for(solver: str, kind: str, budget: Budget) -> Problem:
    """The problem nearest to a ridge penalty that the solver takes."""
    problems = [Problem(LOSSES[kind], **form) for form in FORMS]
    return next((each for each in problems if SOLVERS[solver]().why_incompatible(each, budget) is None), problems[0])


def outcome(solver: str, kind: str, relation: str, budget: str) -> dict[str, object]:
    """What a seeded run gives; for a combination that is refused, the words of the refusal."""
    X, y = table(2 if solver == "exponential" else 4)
    y = np.sign(y) if kind == "labels" else y
    facts = {"relation": relation, "bounds": (-3.0, 3.0), "random_state": 11}
    facts |= {"public_n": ROWS} if relation == "add_remove" else {}
    facts |= {} if kind == "labels" else {"y_bounds": (-6.0, 6.0)}
    problem = problem_for(solver, kind, BUDGETS[budget])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            solution = solve(problem, X, y, solver, BUDGETS[budget], **facts)
        except (IncompatibleSolverError, ValueError) as error:
            return {"refused": str(error)}
    plan = solution.plan
    event = "none" if BUDGETS[budget].is_infinite else brief(event_to_dict(plan.event))
    weights = " ".join(f"{w:.12g}" for w in [*np.ravel(solution.coef), *np.ravel(solution.intercept)])
    return {"weights": weights, "event": event, "digest": plan.digest.hex(), "plan": str(plan).splitlines()}


def brief(event: object) -> str:
    """An event in one line: equal neighbours of a composition are counted."""
    if isinstance(event, dict):
        kind = event["type"].removesuffix("DpEvent")
        return kind + "(" + ", ".join(brief(value) for name, value in event.items() if name != "type") + ")"
    if isinstance(event, list):
        runs = [(text, sum(1 for _ in run)) for text, run in itertools.groupby(map(brief, event))]
        return " + ".join(text if times == 1 else f"{times} x {text}" for text, times in runs)
    return f"{event:.12g}" if isinstance(event, float) else str(event)


def name_of(case: tuple[str, str, str, str]) -> str:
    return " ".join(case)


if __name__ == "__main__":
    STORED.write_text(json.dumps({name_of(case): outcome(*case) for case in cases()}, indent=1) + "\n")
