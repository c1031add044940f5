"""The laws that losses, penalties, constraints and solvers must keep, run one after the other.

Privacy and optimality of every solver rely on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from discreet.audit.worst_case import AuditCase
from discreet.problem.constraints import Constraint
from discreet.problem.losses import Loss
from discreet.problem.penalties import Penalty
from discreet.problem.problem import Problem
from discreet.solvers import Solver
from discreet.testing import constraint_laws, loss_laws, penalty_laws, solver_laws
from discreet.testing.laws import LawResult, OnFail, laws_of, run_laws
from discreet.testing.tables import BUDGET, Kernel, LossCase, SolverCase, example_problems


def check_loss(
    loss: Loss,
    *,
    kernel: Kernel | Literal["auto"] | None = "auto",
    targets: Sequence[float] | None = None,
    on_fail: OnFail = "raise",
    expected_failures: Mapping[str, str] | None = None,
) -> list[LawResult]:
    """Check a loss: derivatives, convexity, conjugate, bounds on slope and curvature, flags, overflow, compiled forms.

    Noise is in proportion to `loss.lipschitz`, and `loss.smoothness` decides about step lengths: the margins at which
    slope and curvature are largest are searched for, so that a constant that is too small is found.

    Parameters
    ----------
    loss : Loss
        The loss to check.
    kernel : {"auto"}, function or None
        What compiled loops have of the loss, by `loss.code`, is compared with its methods; a function
        kernel(code, parameter, margins, y, slopes) that fills `slopes`, for all rows (one output) or for one row
        (several outputs), is compared in place of their slope; None compares nothing.
    targets : sequence of float, optional
        Targets that a regression loss admits, if it does not admit all numbers.
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
        An AssertionError that names the law, the margin and the target.

    Examples
    --------
    >>> from discreet.problem.losses import Logistic
    >>> from discreet.testing import check_loss
    >>> sorted({result.status for result in check_loss(Logistic())})
    ['passed', 'skipped']
    >>> class Halved(Logistic):
    ...     lipschitz = 0.5
    >>> check_loss(Halved())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    discreet.testing.laws.LawBrokenError: ... breaks the law 'slope_is_bounded_by_lipschitz': ...
    """
    return run_laws(laws_of(loss_laws), LossCase(loss, kernel, targets), repr(loss), on_fail, expected_failures)


def check_penalty(
    penalty: Penalty, *, on_fail: OnFail = "raise", expected_failures: Mapping[str, str] | None = None
) -> list[LawResult]:
    """Check a penalty: proximal map, conjugate, convexity, behaviour at extremes.

    Parameters
    ----------
    penalty : Penalty
        The penalty to check, for four columns.
    on_fail, expected_failures
        As in `check_loss`.

    Returns
    -------
    list of LawResult
        One for each law.

    Examples
    --------
    >>> from discreet.problem.penalties import L1
    >>> from discreet.testing import check_penalty
    >>> {result.status for result in check_penalty(L1(0.1))}
    {'passed'}
    """
    return run_laws(laws_of(penalty_laws), penalty, repr(penalty), on_fail, expected_failures)


def check_constraint(
    constraint: Constraint, *, on_fail: OnFail = "raise", expected_failures: Mapping[str, str] | None = None
) -> list[LawResult]:
    """Check a constraint: projection, linear oracle, support function, diameter, behaviour at extremes.

    Parameters
    ----------
    constraint : Constraint
        The set to check.
    on_fail, expected_failures
        As in `check_loss`.

    Returns
    -------
    list of LawResult
        One for each law.

    Examples
    --------
    >>> from discreet.problem.constraints import L2Ball
    >>> from discreet.testing import check_constraint
    >>> {result.status for result in check_constraint(L2Ball(1.0))}
    {'passed'}
    """
    return run_laws(laws_of(constraint_laws), constraint, repr(constraint), on_fail, expected_failures)


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
    return run_laws(laws_of(solver_laws), case, repr(made), on_fail, expected_failures)
