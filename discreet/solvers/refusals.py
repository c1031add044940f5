"""What solvers refuse, in words: problems, budgets, rows and plans that they cannot take, and who could."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet._common.exceptions import IncompatibleSolverError
from discreet.data.rows import Data
from discreet.privacy.relation import Relation
from discreet.solvers import SOLVERS

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Rows
    from discreet.privacy.budget import Budget
    from discreet.problem.problem import Problem
    from discreet.solvers.base import Capabilities, Solver
    from discreet.solvers.plan import Plan

ALL_ROWS_NEEDED = "its loop needs all rows in memory, and they are read in blocks"
BLOCKS_NEEDED = "it draws noise for every row, and rows on workers give sums only"
ONE_ROW_NEEDED = "its proof is for one row of each person (rows_per_person=1)"
NO_START = "its result does not depend on where it starts"


def why_not(takes: Capabilities, problem: Problem, budget: Budget) -> str | None:
    """Why a solver with these capabilities cannot take a problem under a budget; None if it can."""
    loss, penalty, constraint, finite = problem.loss, problem.penalty, problem.constraint, not budget.is_infinite
    unknown = next((form.replace("_", " ") for form in takes.compiled if form not in loss.forms), None)
    reasons = {
        f"the {penalty.name} penalty ties coefficients together": not (penalty.separable or takes.coupled),
        f"the {constraint.name if constraint else ''} constraint is not separable": (
            takes.separable_only and constraint is not None and not constraint.separable
        ),
        f"its compiled loop does not know the {unknown} of the {loss.name} loss": unknown is not None,
        "it has no form for several classes": takes.single_output and loss.outputs > 1,
        "it has no form with pure epsilon-DP (delta=0)": finite and budget.kind == "pure" and not takes.pure,
        "its private selections have no cost in Gaussian DP": finite and budget.kind == "gdp" and takes.selects,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def check_task(solver: Solver[Any, Any], problem: Problem, public: Public, budget: Budget) -> None:
    """Refuse what the solver cannot plan for."""
    if (reason := solver.why_incompatible(problem, budget)) is not None:
        raise refused(solver, reason, problem, budget, stored=public.stored)
    problem.penalty.check_columns(public.columns)
    takes = solver.capabilities
    if public.stored and not takes.stored:
        raise refused(solver, ALL_ROWS_NEEDED, problem, budget, stored=True)
    if (public.rows_per_person or 1) > 1 and not takes.persons:
        raise refused(solver, ONE_ROW_NEEDED, problem, budget, persons=True)
    if public.start is not None:
        if not takes.start:
            raise refused(solver, NO_START, problem, budget, start=True)
        _check_start(problem, public.start)


def _check_start(problem: Problem, start: PublicModel) -> None:
    outputs = problem.loss.outputs
    wanted = (start.columns,) if outputs == 1 else (outputs, start.columns)
    if start.coef.shape != wanted:
        raise ValueError(f"coef of start has shape {start.coef.shape}; this loss needs {wanted}.")
    if not problem.fit_intercept and start.intercept.any():
        raise ValueError("start has an intercept, and fit_intercept=False leaves none; pass intercept=0.")


def refused(
    solver: Solver[Any, Any], reason: str, problem: Problem, budget: Budget, **wanted: bool
) -> IncompatibleSolverError:
    """The error that says why, and which other solvers would work: those with all `wanted` capabilities."""
    asked = [capability for capability, needed in wanted.items() if needed]
    others = [kind() for name, kind in SOLVERS.items() if name != solver.name]
    able = [
        repr(other.name)
        for other in others
        if all(getattr(other.capabilities, capability) for capability in asked)
        and other.why_incompatible(problem, budget) is None
    ]
    advice = f"use one of {', '.join(able)}" if able else "no solver takes this problem as it stands"
    return IncompatibleSolverError(f"solver {solver.name!r} cannot be used: {reason}; {advice}.")


def check_rows(plan: Plan, rows: Rows) -> None:
    """Refuse rows that give sums only, before anything is booked, where the run needs more."""
    if not rows.gives_blocks and not plan.solver.capabilities.workers:
        raise refused(plan.solver, BLOCKS_NEEDED, plan.problem, plan.budget, stored=True)


def check_plan(solver: Solver[Any, Any], problem: Problem, data: Rows, plan: Plan) -> None:
    """A plan's cost holds for its own solver and problem, and for tables with its public facts only."""
    if isinstance(data, Data):  # who reads stored rows checks their labels, block by block
        problem.check_labels(data.y)
    elif not solver.capabilities.stored:
        raise refused(solver, ALL_ROWS_NEEDED, problem, plan.budget, stored=True)
    if plan.solver != solver or plan.problem != problem:
        raise ValueError("plan was made by another solver or for another problem; plan again.")
    of_persons = isinstance(data, Data) and data.persons is not None
    if of_persons != (plan.public.unit == "person"):
        raise ValueError("plan was made for the other of rows and persons (groups=); plan again.")
    units, what = (data.units, "persons") if isinstance(data, Data) and of_persons else (data.rows, "rows")
    if plan.public.relation is not Relation.ADD_REMOVE and plan.public.rows != units:
        raise ValueError(f"plan was made for {plan.public.rows} {what}, but the table has {units}; plan again.")
    if plan.public.sparse != data.sparse:
        raise ValueError("plan was made for the other of dense and sparse tables; plan again.")
    if plan.public.columns != data.columns:
        raise ValueError(f"plan was made for {plan.public.columns} columns, not {data.columns}; plan again.")
