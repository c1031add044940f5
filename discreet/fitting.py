"""From parameters and a table to a solution: budget, problem, plan, ledger, solve, in that order.

Shared by the estimators and by `discreet.solve`, so that there is one way in and the ledger cannot be
forgotten on any of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from discreet.accounting import Budget
from discreet.data import Data, Public, bounds_from_rows, check_bounds, load
from discreet.exceptions import NotPrivateWarning, UtilityWarning
from discreet.problem import Problem
from discreet.relation import Relation
from discreet.solvers import SOLVERS, Plan, Solution, Solver

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.ledger.book import Reservation

Progress = Callable[[int, int], None]


FEW_COLUMNS = 200  # up to which `auto` preconditions: docs/benchmarks/solvers.md


def make_budget(epsilon: Any, delta: float | None, rows: int) -> Budget:
    """A Budget from plain numbers; delta=None stands for 1/rows^2, delta=0 for pure epsilon-DP."""
    if isinstance(epsilon, Budget):
        return epsilon
    if delta is None:
        delta = 1.0 / max(rows, 2) ** 2
    if delta == 0 and epsilon != math.inf:
        return Budget.pure(epsilon)
    return Budget(epsilon, delta)


def make_relation(relation: Any) -> Relation:
    try:
        return Relation(relation)
    except ValueError:
        allowed = ", ".join(repr(str(r)) for r in Relation)
        raise ValueError(f"relation must be one of {allowed}; got {relation!r}.") from None


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
    """Preconditioned steps for few columns, coordinate descent for many, gradient steps for sets it cannot take."""
    few = 0 < public.columns <= FEW_COLUMNS and not budget.is_infinite
    if few and SOLVERS["newton"]().refusal(problem, budget) is None:
        return "newton"
    return "cd" if problem.separable else "gd"


def public_rows(relation: Relation, rows: int, public_n: int | None) -> int:
    """The number of rows that may be known: the true one, except under add/remove."""
    if relation is not Relation.ADD_REMOVE:
        if public_n is not None and public_n != rows:
            raise ValueError(f"public_n={public_n} differs from the {rows} rows; omit it or use add_remove.")
        return rows
    if public_n is None:
        raise ValueError('relation="add_remove" keeps the number of rows secret: pass a public estimate, public_n=.')
    if isinstance(public_n, bool) or int(public_n) != public_n or public_n < 1:
        raise ValueError(f"public_n must be a positive whole number; got {public_n!r}.")
    return int(public_n)


def describe(
    X: Any,
    y: Any,
    relation: Relation,
    bounds: Any,
    y_bounds: Any,
    public_n: int | None,
    regression: bool,
    leaks: Sequence[str] = (),
) -> Public:
    """The public facts of a validated table; bounds="data" is the only thing read from its rows."""
    rows, columns = X.shape
    leaks = list(leaks)
    if isinstance(bounds, str) and bounds == "data":
        limits: Any = bounds_from_rows(X)
        leaks.append("the bounds of the columns")
    else:
        limits = check_bounds(bounds, columns)
    low, high = limits if limits is not None else (None, None)
    if sp.issparse(X):
        check_sparse_bounds(low, high)
    target: Any = None
    if isinstance(y_bounds, str) and y_bounds == "data" and regression:
        target = bounds_from_rows(np.reshape(y, (-1, 1)), "y_bounds")
        leaks.append("the bounds of the target")
    elif regression:
        target = check_bounds(y_bounds, 1, "y_bounds")
    return Public(
        rows=public_rows(relation, rows, public_n),
        columns=columns,
        relation=relation,
        low=low,
        high=high,
        target_low=None if target is None else float(target[0][0]),
        target_high=None if target is None else float(target[1][0]),
        sparse=sp.issparse(X),
        leaks=tuple(leaks),
    )


def check_sparse_bounds(low: Any, high: Any) -> None:
    """Entries that are not stored are 0, so 0 must be within the bounds."""
    if low is not None and ((low > 0.0) | (high < 0.0)).any():
        raise ValueError("bounds of sparse columns must contain 0, the value of every entry that is not stored.")


def run_plan(
    plan: Plan,
    data: Data,
    rng: Any,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    note: str = "",
    progress: Progress | None = None,
    trace: Literal["non-private"] | None = None,
) -> Solution:
    """Reserve the plan's cost, solve, commit. A run that dies in between stays counted.

    Guarantee: nothing is computed from the rows before the ledger has granted the plan's event.
    """
    warn_about(plan)
    reservation = reserve(plan, ledger, dataset, note)
    solution = plan.solver.solve(plan.problem, data, plan, rng, progress, trace)
    if reservation is not None:
        reservation.commit()
    warn_of_nothing_learned(solution)
    return solution


def reserve(plan: Plan, ledger: Ledger | str | None, dataset: str | None, note: str) -> Reservation | None:
    """Have the plan's cost counted; None where no ledger is kept."""
    if ledger is None:
        return None
    from discreet.ledger import Ledger

    if dataset is None:
        raise ValueError("ledger needs dataset= as well: the name under which the table's budget was opened.")
    return Ledger.of(ledger).reserve(dataset, plan.event, note, relation=plan.public.relation)


def warn_about(plan: Plan) -> None:
    """Say what a person should know before the run."""
    if plan.budget.is_infinite:
        warnings.warn("epsilon is infinite: the result is not private.", NotPrivateWarning, stacklevel=3)
    elif plan.scaling.method == "common":
        warnings.warn(
            f"{plan.public.rows} rows are too few to learn a scale for each of {plan.public.columns} columns "
            "privately, so one common scale is used; pass bounds=(low, high) for a better model.",
            UtilityWarning,
            stacklevel=3,
        )


def warn_of_nothing_learned(solution: Solution) -> None:
    """Say that the noise hid all columns; the frame has been released, so this tells nothing more."""
    frame = solution.frame
    if frame.columns and frame.frozen.all():
        warnings.warn(
            "no column could be told from noise, so the model is a constant; pass bounds=(low, high), or spend more "
            "epsilon on more rows.",
            UtilityWarning,
            stacklevel=3,
        )


def solve(
    problem: Problem,
    X: Any,
    y: Any,
    solver: str | Solver = "auto",
    budget: Budget | float = 1.0,
    *,
    bounds: Any = None,
    y_bounds: Any = None,
    sample_weight: Any = None,
    relation: str | Relation = "replace",
    public_n: int | None = None,
    random_state: Any = None,
    callback: Progress | None = None,
    trace: Literal["non-private"] | None = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
) -> Solution:
    """Solve a problem privately.

    Parameters
    ----------
    problem : Problem
    X, y : table and numeric target (labels -1 and +1, or class numbers 0..K-1, for classification losses)
    solver : a name, a solver object, or "auto"
    budget : Budget, or an epsilon for which delta = 1/n^2
    bounds, y_bounds : public (low, high) of the columns and of a regression target; None learns scales
    callback : called as callback(done, total) while the solver runs
    trace : "non-private" records the objective after every pass, outside the guarantee

    Guarantee: the returned coefficients are differentially private as `solution.guarantee` states.
    """
    from discreet.randomness import stream_from

    data = load(X, y, sample_weight)
    problem.check_labels(data.y)
    kind = make_relation(relation)
    public = describe(data.X, data.y, kind, bounds, y_bounds, public_n, not problem.loss.classification)
    granted = make_budget(budget, None, public.rows)
    plan = make_solver(solver, problem, public, granted).plan(problem, public, granted)
    return run_plan(plan, data, stream_from(random_state), ledger, dataset, "solve", callback, trace)
