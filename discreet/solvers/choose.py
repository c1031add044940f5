"""Which solver: by name, as an object, or chosen from public facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Plan, Solver
from discreet.solvers.newton.solver import enough_rows

# Measured: docs/defaults.md.
FEW_COLUMNS = 200  # up to which `auto` preconditions
MANY_SPARSE_COLUMNS = 4_000  # from which on most entries are noise for steps that move all columns at once


def make_plan(solver: Any, problem: Problem, public: Public, budget: Budget) -> Plan:
    """The plan of a solver by name or as an object; "auto" decides by public facts, and the plan says why."""
    if solver == "auto":
        name, reason = _automatic(problem, public, budget)
        return replace(SOLVERS[name]().plan(problem, public, budget), chosen_because=reason)
    return make_solver(solver, problem, public, budget).plan(problem, public, budget)


def make_solver(solver: Any, problem: Problem, public: Public, budget: Budget) -> Solver:
    """A solver by name, or the object itself; "auto" decides by public facts."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return SOLVERS[_automatic(problem, public, budget)[0]]()
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    known = ", ".join(repr(name) for name in ("auto", *SOLVERS))
    raise ValueError(f"solver must be one of {known} or a solver object; got {solver!r}.")


def _automatic(problem: Problem, public: Public, budget: Budget) -> tuple[str, str]:
    """The name of a solver, and why it is taken.

    Coordinate descent needs all rows at hand, so gradient steps stand in for it where rows stay in files.
    """
    takes_cd = SOLVERS["cd"]().why_incompatible(problem, budget) is None and not public.stored
    if public.columns == 0:
        return "gd", "there are no columns"
    if budget.is_infinite and takes_cd:
        return "cd", "without noise, it is the fastest way to the optimum"
    if not problem.separable:
        return "gd", "the set or the penalty ties coefficients together"
    if budget.kind == "pure" and takes_cd:
        return "cd", "with delta = 0, a step on one coordinate needs less noise than one on all of them"
    if takes_cd and public.sparse and public.columns >= MANY_SPARSE_COLUMNS:
        return "cd", f"{public.columns:,} sparse columns: steps on one column at a time skip those that say little"
    why_not = SOLVERS["newton"]().why_incompatible(problem, budget)
    if why_not is not None:
        return "gd", f"newton cannot be used: {why_not}"
    if public.columns > FEW_COLUMNS:
        return "gd", f"{public.columns:,} columns are too many to learn how they are correlated"
    if not enough_rows(budget, public):
        return "gd", "rows are too few to learn the limits of newton under this budget"
    return "newton", "rows are many enough to learn how columns are correlated, so that few steps are needed"
