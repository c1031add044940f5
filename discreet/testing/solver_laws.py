"""Laws of a solver.

Of `plan`: it never sees rows, fits its budget, and refuses in words what it cannot do. Of `solve`: what it returns on
ordinary and on hostile tables, with noise and without.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.exceptions import IncompatibleSolverError
from discreet.audit.lower_bound import CONFIDENCE
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import RandomGenerator, seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Solution
from discreet.testing.laws import broken, skipped
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


NO_BUDGET = Budget(math.inf, 0.5)
WEAK_NOISE = Budget(5.0, 1e-4)
GAP = 1e-6  # relative distance from the optimum, in objective
FORMS = {
    "Fortran order": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "single precision": lambda X: X.astype(np.float32),
}


def iterations_are_those_of_the_plan(case: SolverCase) -> None:
    """With noise the number of iterations is fixed by the plan: a number read from the rows would be a release."""
    problem = case.problem
    plan = case.plan(problem)
    tables = case.hostile_tables(problem)
    chosen = ("rows of 1e308", "subnormal rows", "constant columns")
    counts = {name: case.run(plan, *tables[name]).iterations for name in chosen}
    if len(set(counts.values())) > 1:
        broken(f"the number of iterations depends on the rows: {counts}")


def seeds_reproduce(case: SolverCase) -> None:
    """The same seed gives the same result to the last bit; another seed gives another result."""
    problem = case.problem
    X, y = case.table(problem)
    plan = case.plan(problem)
    first, second = _flat(case.run(plan, X, y)), _flat(case.run(plan, X, y))
    if not np.array_equal(first, second):
        broken(f"two runs with the seed {case.seed} differ by {np.abs(first - second).max()!r}")
    others = [_flat(case.run(plan, X, y, seed=case.seed + k)) for k in (1, 2, 3)]
    if all(np.array_equal(first, other) for other in others):
        broken("four seeds give the same result: no noise reaches it")


def results_lie_in_the_constraint(case: SolverCase) -> None:
    """Private coefficients are feasible."""
    constrained = [problem for problem in case.problems if problem.constraint is not None]
    if not constrained:
        skipped("no problem that the solver takes has a constraint")
    for problem in constrained:
        assert problem.constraint is not None
        coef = case.run(case.plan(problem), *case.table(problem)).coef
        if not problem.constraint.contains(coef, 1e-9):
            broken(f"the coefficients {coef} of {name_of(problem)} are not in the {problem.constraint.name}")


def without_noise_the_optimum_is_reached(case: SolverCase) -> None:
    """With an infinite epsilon the objective is within 1e-6 of the certified optimum, relatively."""
    for problem in case.problems:
        X, y = case.table(problem)
        best = problem.optimum(X, y)
        plan = case.solver.plan(problem, case.public(problem, bounded=False), NO_BUDGET)
        solution = case.run(plan, X, y)
        value = problem.objective(X, y, solution.coef, solution.intercept)
        if not value - best.value <= GAP * abs(best.value):
            broken(f"without noise the objective of {name_of(problem)} is {value!r}, and its optimum {best.value!r}")
        if problem.constraint is not None and not problem.constraint.contains(solution.coef, 1e-6):
            broken(f"without noise the coefficients of {name_of(problem)} are not in the {problem.constraint.name}")


def hostile_rows_give_finite_results(case: SolverCase) -> None:
    """Huge, subnormal, constant and empty columns give finite coefficients, with declared bounds and without."""
    problems = {problem.loss.classification: problem for problem in reversed(case.problems)}
    for problem in problems.values():
        for bounded in (True, False):
            plan = case.plan(problem, bounded=bounded)
            for name, (X, y) in case.hostile_tables(problem).items():
                found = _flat(case.run(plan, X, y))
                if not np.isfinite(found).all():
                    broken(f"{name} give {name_of(problem)} the coefficients {found}")


def every_form_of_a_table_gives_the_same_result(case: SolverCase) -> None:
    """Dense in either order, sparse and single precision: the same table and seed give the same result."""
    problem, solver = case.problem, case.unscaled
    X, y = case.table(problem)
    X = np.round(X * 8.0) / 8.0  # numbers that single precision holds exactly

    def result(form: Any, sparse: bool) -> Any:
        plan = solver.plan(problem, case.public(problem, sparse=sparse), WEAK_NOISE)
        return _flat(case.run(plan, form, y, rng=SameDraws(case.seed)))  # a sparse table has a plan of its own

    wanted = result(np.ascontiguousarray(X), False)
    for name, convert in FORMS.items():
        found = result(convert(X), name in ("CSR", "CSC"))
        relative, absolute = (1e-3, 1e-4) if name == "single precision" else (1e-7, 1e-9)
        if not np.allclose(found, wanted, rtol=relative, atol=absolute):
            broken(f"the table in {name} gives {found}, and in C order {wanted}")


def rows_of_weight_zero_contribute_nothing(case: SolverCase) -> None:
    """Under the relation zero_out a null row is a row of weight 0: whatever it holds, the result is the same."""
    problem = case.problem
    X, y = case.table(problem)
    weight = np.ones(case.rows)
    weight[:3] = 0.0
    for bounded in (True, False):
        plan = case.plan(problem, relation=Relation.ZERO_OUT, bounded=bounded)
        wanted = _flat(case.run(plan, X, y, weight))
        for content in (0.0, -30.0, 1e308):
            other, target = X.copy(), y.copy()
            other[:3] = content
            target[:3] = y[3]
            found = _flat(case.run(plan, other, target, weight))
            if not np.allclose(found, wanted, rtol=1e-9, atol=1e-12):
                broken(f"rows of weight 0 that hold {content!r} change the result from {wanted} to {found}")


def _flat(solution: Solution) -> Any:
    """Coefficients and intercepts in one vector."""
    return np.concatenate([np.ravel(solution.coef), np.ravel(solution.intercept)])


def audit_finds_no_more_than_epsilon(case: SolverCase) -> None:
    """On neighbouring tables many runs show no larger epsilon than claimed; with half the noise they do."""
    if not case.audits:
        skipped("no audit was asked for: pass audits=[AuditCase.flipped_row(solver, problem)] with fitting settings")
    for audit in case.audits:
        promised = audit.plan.guarantee.epsilon
        found = audit.lower_bound()
        if found > promised:
            broken(
                f"under the relation {audit.relation} an attacker shows epsilon >= {found:.3f} instead of {promised} "
                f"(false alarms below {1.0 - CONFIDENCE:.0e}): too little noise, or too small a sensitivity"
            )
        weaker = audit.lower_bound(noise=0.5)
        if not weaker > promised:
            broken(
                f"under the relation {audit.relation} half of the noise shows epsilon >= {weaker:.3f} only, so the "
                "audit is too weak: pass settings and tables with which one row has its full effect"
            )


class SameDraws(RandomGenerator):
    """A seeded generator whose draws do not depend on the plan, to compare plans that must do the same.

    Not for releases: two plans with the same noise reveal what they were computed from.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seeded_generator(seed).bytes(32), secure=False)

    def rekey(self, context: bytes) -> None:
        """Keep the key, whatever the plan is."""
