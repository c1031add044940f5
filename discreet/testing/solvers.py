"""`check_solver`: the laws that make a solver private and right, for any solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.audit.worst_case import AuditCase
from discreet.problem.problem import Problem
from discreet.solvers import Solver
from discreet.testing import plan_laws, solution_laws
from discreet.testing.laws import LawResult, OnFail, laws_of, run_laws
from discreet.testing.tables import BUDGET, SolverCase, example_problems


def check_solver(
    solver: Solver[Any, Any] | type[Solver[Any, Any]],
    *,
    problems: Sequence[Problem] | None = None,
    n: int = 120,
    columns: int = 4,
    seed: int = 0,
    audits: Sequence[AuditCase] = (),
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Check a solver: plans, budgets, refusals, seeds, feasibility, optimality, hostile rows, forms of tables, audits.

    Passing is no proof of privacy. An audit measures a lower bound on epsilon and raises a false alarm with
    probability at most 1e-6; a sensitivity that is wrong for rows that no law looks at stays unseen. Write the proof.

    Parameters
    ----------
    solver : Solver or subclass of Solver
        What to check; a class is made with its defaults.
    problems : sequence of Problem, optional
        What to solve; those that the solver cannot take must be refused in words. By default one of each kind.
    n, columns : int
        The size of the tables.
    seed : int
        Seed of tables and noise: the checks are the same every time.
    audits : sequence of AuditCase
        Neighbouring tables, and settings, with which one row moves the result as far as it may: the claimed epsilon
        must be accepted, and half of the noise detected. Without any, this law is skipped.
    on_fail : {"raise", None}
        Whether to raise the first failure, or to return all results.
    expected_failures : mapping, optional
        Laws that are known to fail, each with the reason.

    Returns
    -------
    list of LawResult
        One for each law.

    Raises
    ------
    LawBrokenError
        An AssertionError that names the law and the case.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent
    >>> from discreet.testing import check_solver
    >>> [result.law for result in check_solver(GradientDescent) if result.status == "skipped"]
    ['audit_finds_no_more_than_epsilon']
    """
    made = solver() if isinstance(solver, type) else solver
    offered = example_problems() if problems is None else list(problems)
    taken = [problem for problem in offered if made.why_incompatible(problem, BUDGET) is None]
    if not taken:
        raise ValueError(f"{made!r} takes none of the problems; pass problems= with one that it can solve.")
    case = SolverCase(made, taken, offered, n, columns, seed, audits)
    return run_laws(laws_of(plan_laws, solution_laws), case, repr(made), on_fail, expected_failures)
