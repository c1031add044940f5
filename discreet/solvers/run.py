"""Plan, have the ledger grant the cost, solve, commit: in that order, for everything that fits a model.

Shared by the estimators and by `discreet.solve`, so that the ledger cannot be forgotten on any way in.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from discreet._common.docstrings import with_options
from discreet._common.exceptions import UtilityWarning
from discreet._common.threads import thread_count
from discreet._common.types import Progress
from discreet.data.loading import load_array
from discreet.data.public_inputs import refuse_private_rows
from discreet.data.rows import Rows
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.relation import Relation
from discreet.privacy.release import booked
from discreet.problem.problem import Problem
from discreet.solvers import Plan, Solution, Solver
from discreet.solvers.choose import make_plan
from discreet.solvers.refusals import check_rows

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel, PublicTable
    from discreet.privacy.ledger import Ledger


def run_plan(
    plan: Plan,
    rows: Rows,
    rng: Any,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
    note: str = "",
    progress: AbstractContextManager[Progress | None] = nullcontext(),  # noqa: B008 - it has no state
    trace: Literal["non-private"] | None = None,
) -> Solution:
    """Reserve the plan's cost, solve, commit. A run that dies in between stays counted.

    Guarantee: nothing is computed from the rows before the ledger has granted the plan's event.
    """
    check_rows(plan, rows)
    with booked(plan, rng, ledger, dataset, note) as booking, progress as report:
        solution = plan.solver.solve(plan.problem, rows, plan, rng, report, trace)
    warn_of_nothing_learned(solution)
    return replace(solution, release=booking.record)


def warn_of_nothing_learned(solution: Solution) -> None:
    """Warn that the noise hid the target or all columns; the scaling has been released, so this tells nothing more."""
    scaling, learned = solution.scaling, solution.plan.scaling_plan.learns_target
    if learned and scaling.target_low == scaling.target_high and solution.plan.is_noisy:
        warnings.warn(
            f"the target could not be told from noise, so the model predicts {scaling.constant_prediction:g} for every "
            "row; "
            "pass y_bounds=(low, high), or spend more epsilon on more rows.",
            UtilityWarning,
            stacklevel=3,
        )
    elif scaling.columns and scaling.frozen.all():
        warnings.warn(
            "no column could be told from noise, so the model is a constant; if limits of the columns are known, pass "
            "them as bounds=(low, high), or spend more epsilon on more rows.",
            UtilityWarning,
            stacklevel=3,
        )


@with_options
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
    groups: Any = None,
    rows_per_person: int | None = None,
    relation: str | Relation = "replace",
    public_n: int | None = None,
    start: PublicModel | None = None,
    public_table: PublicTable | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Progress | None = None,
    trace: Literal["non-private"] | None = None,
    ledger: Ledger | str | None = None,
    dataset: str | None = None,
) -> Solution:
    """Solve a problem privately.

    Guarantee: the returned coefficients are differentially private as `solution.guarantee` states.

    Parameters
    ----------
    problem : Problem
        Loss, penalty, constraint and whether there is an intercept.
    X : array, sparse matrix or table of shape (n_samples, n_features)
        The private rows; finite numbers.
    y : array of shape (n_samples,)
        Numeric targets; for classification losses labels -1 and +1, or class numbers 0 to K - 1.
    solver : str or Solver, default="auto"
        A name from `discreet.solvers.SOLVERS`, a solver object, or "auto".
    budget : Budget or float, default=1.0
        Privacy budget; a number is an epsilon, with delta = 1/n^2.
    bounds : tuple (low, high), dict or "data", optional
        Public limits of the columns, by name if X is a data frame; what is not declared is learned privately, "data"
        reads them from the rows and warns.
    y_bounds : tuple (low, high) or "data", optional
        The same for a regression target.
    groups : array of shape (n_samples,), optional
        The id of each row's person: the promise is then for a person and all of their rows.
    rows_per_person : int, optional
        With `groups`: the most rows of a person that are used; None: as many as the solver can.
    start : PublicModel, optional
        Public coefficients at which the solver begins.
    public_table : PublicTable, optional
        A public table with the same columns, its target coded like y: scales and a start come from it.
    n_jobs : int, optional
        Number of threads for sums over the rows of large tables; None and -1 use all cores. It changes no bit.
    callback : callable, optional
        Called as callback(done, total) while the solver runs.
    trace : "non-private", optional
        Records the objective after every pass, outside the guarantee.
    ledger : Ledger or str, optional
        Where the cost is booked before any row is used. Needs `dataset`.

    Returns
    -------
    Solution
        Coefficients, intercept, the plan and its guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Problem, solve
    >>> from discreet.problem import L2, Squared
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (5000, 2))
    >>> y = 2.0 * X[:, 0] - X[:, 1]
    >>> found = solve(Problem(Squared(), L2(1e-5)), X, y, bounds=(-1, 1), y_bounds=(-3, 3), random_state=0)
    >>> found.guarantee.epsilon  # a seed, so that this example repeats; leave it out
    1.0
    """
    from discreet.privacy.random.generator import generator_from

    refuse_private_rows(public_table, X)
    others = {"sample_weight": sample_weight, "groups": groups}
    table = load_array(X, y, "numbers", others, jobs=thread_count(n_jobs))
    data: Any = table.rows
    problem.check_labels(data.y)
    limits = None if problem.loss.classification else y_bounds
    declared = {"relation": relation, "bounds": bounds, "y_bounds": limits, "public_n": public_n}
    public = table.public(**declared, rows_per_person=rows_per_person, start=start, table=public_table)
    granted = budget_from(budget, None, public.rows)
    plan = make_plan(solver, problem, public, granted)
    rng, note = generator_from(random_state), "coefficients, by solve"
    return run_plan(plan, data, rng, ledger, dataset, note, nullcontext(callback), trace)
