"""Which solver: by name, as an object, or chosen from public facts."""

from __future__ import annotations

from typing import Any

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Solver
from discreet.solvers.newton.solver import enough_rows
from discreet.solvers.screened.planning import worth_screening

FEW_COLUMNS = 200  # up to which `auto` preconditions: docs/benchmarks/solvers.md


def make_solver(solver: Any, problem: Problem, public: Public, budget: Budget) -> Solver:
    """A solver by name, or the object itself; "auto" decides by public facts."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return SOLVERS[_automatic(problem, public, budget)]()
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    known = ", ".join(repr(name) for name in ("auto", *SOLVERS))
    raise ValueError(f"solver must be one of {known} or a solver object; got {solver!r}.")


def _automatic(problem: Problem, public: Public, budget: Budget) -> str:
    """Preconditioned steps for few columns, coordinate descent for many, gradient steps for sets it cannot take.

    Where columns are too many for the budget, a few are chosen first (docs/guarantees/screened.md). Where rows are too
    few to learn the limits of preconditioned steps, plain ones are better (docs/benchmarks/generality.md). Coordinate
    descent needs all rows at hand, so gradient steps also stand in for it where rows stay in files.
    """
    if worth_screening(problem, public, budget):
        return "screened"
    few = 0 < public.columns <= FEW_COLUMNS and not budget.is_infinite
    if few and SOLVERS["newton"]().why_incompatible(problem, budget) is None:
        return "newton" if enough_rows(budget, public) else "gd"
    return "cd" if problem.separable and not public.stored else "gd"
