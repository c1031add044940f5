"""Laws of `Solver.plan`: it never sees rows, fits its budget, and refuses in words what it cannot do."""

from __future__ import annotations

from discreet._common.exceptions import IncompatibleSolverError
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS
from discreet.testing.laws import broken
from discreet.testing.tables import SolverCase, name_of

BUDGETS = (Budget(1.0, 1e-6), Budget.pure(1.0), Budget.zcdp(0.1), Budget.gdp(0.5))


def plans_do_not_depend_on_rows(case: SolverCase) -> None:
    """The plan stays the same whatever tables the solver has seen, and it is the plan that is run."""
    problem = case.problem
    plan = case.plan(problem)
    tables = {"an ordinary table": case.table(problem)}
    tables |= case.hostile_tables(problem)
    wanted = plan.to_dict()
    for name, (X, y) in tables.items():
        solution = case.run(plan, X, y)
        if solution.plan.to_dict() != wanted:
            broken(f"after a run on {name} the solution states another plan than the one it was given")
        again = case.plan(problem).to_dict()
        if again != wanted:
            changed = [key for key in wanted if again.get(key) != wanted[key]]
            broken(f"plan() has read rows: after a run on {name} the same public facts give another {changed[0]}")


def plans_fit_their_budget(case: SolverCase) -> None:
    """For every kind of budget and every relation the event of the plan costs at most what was granted."""
    for budget in BUDGETS:
        problem = next((p for p in case.problems if case.solver.why_incompatible(p, budget) is None), None)
        if problem is None:
            continue
        for relation in Relation:
            try:
                plan = case.plan(problem, budget, relation=relation)
            except IncompatibleSolverError:
                continue  # in words, which another law checks
            spent = accounting.amount_of(plan.event, budget, relation)
            if not 0.0 < spent <= budget.amount:
                broken(f"with the budget {budget} and the relation {relation} the event of the plan costs {spent!r}")


def refusals_name_other_solvers(case: SolverCase) -> None:
    """What the solver cannot take it refuses with an IncompatibleSolverError that says which solvers can."""
    for budget in BUDGETS:
        for problem in case.offered:
            reason = case.solver.why_incompatible(problem, budget)
            try:
                case.plan(problem, budget)
            except IncompatibleSolverError as error:
                _check_refusal(case, problem, budget, str(error))
            else:
                if reason is not None:
                    broken(f"plan() takes {name_of(problem)} with {budget}, and why_incompatible() says {reason!r}")


def _check_refusal(case: SolverCase, problem: Problem, budget: Budget, message: str) -> None:
    """The message names a solver that takes the problem, if there is one."""
    able = [
        name
        for name, kind in SOLVERS.items()
        if name != case.solver.name and kind().why_incompatible(problem, budget) is None
    ]
    if able and not any(repr(name) in message for name in able):
        broken(f"{name_of(problem)} with {budget} is refused without naming {able[0]!r}, which takes it: {message}")
