"""Choose the solver, plan, have the ledger grant the cost, solve, commit: in that order, for all that fits a model.

Shared by the estimators and by `discreet.solve`, so that the ledger cannot be forgotten on any way in. A solver comes
by name, as an object, or is chosen from public facts. The noise of a coefficient that its plan lets expect is looked up
by its type: docs/plans.md.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import singledispatch
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet._common.callers import warn
from discreet._common.docstrings import with_options
from discreet._common.exceptions import UtilityWarning
from discreet._common.threads import thread_count
from discreet._common.types import Progress
from discreet.data.loading import load_array
from discreet.data.public import Public
from discreet.data.public_inputs import refuse_private_rows
from discreet.data.rows import Rows
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.relation import Relation
from discreet.privacy.release import booked
from discreet.problem.losses.scalar import every_label
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Solution, Solver
from discreet.solvers._shared.descents import (
    COORDINATE_CLIP,
    GRADIENT_CLIP,
    averaged_noise,
    planned_slope,
    planned_threshold,
)
from discreet.solvers._shared.full_batch import FullBatchPlan
from discreet.solvers._shared.noisy_scores import warn_after, warn_before
from discreet.solvers.base import check_rows, why_not
from discreet.solvers.coordinate_descent import CoordinateDescent, CoordinateDescentPlan
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.newton import planning
from discreet.solvers.newton.solver import Newton, weights_of_iterates
from discreet.solvers.output_perturbation import OutputPerturbation, OutputPerturbationPlan
from discreet.solvers.plan import Plan
from discreet.solvers.screened import Screened, ScreenedPlan, worth_screening
from discreet.solvers.sufficient_statistics import (
    MOMENT,
    SufficientStatistics,
    SufficientStatisticsPlan,
    long_rows,
    moment_sensitivity,
)

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel, PublicTable
    from discreet.privacy.ledger import Ledger

# Measured: docs/defaults.md.
FEW_COLUMNS = 200  # up to which `auto` preconditions for a target
MOST_COLUMNS = 2_000  # the same for labels: the eigenvectors of a larger matrix take minutes
MANY_SPARSE_COLUMNS = 2_000  # from which on steps on one column at a time are better
# By the noise of one step of newton: scores that many short steps follow better. Of persons with several rows, or of
# several classes, from the first on (of weights of classes or targets, up to the second); of two labels from the third.
LEAST_MOVED, MOST_MOVED, LEAST_MOVED_BY_TWO = 0.03, 1.0, 0.3
MOST_HIDDEN = 0.5  # of the rows' squared length: in a table that is worth a metric, no single direction holds more


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
    """Warn that the noise hid the target, all columns or what they tell; of released numbers, so it tells no more."""
    scaling, learned = solution.scaling, solution.plan.scaling_plan.learns_target
    if learned and scaling.target_low == scaling.target_high and solution.plan.is_noisy:
        warn(
            f"the target could not be told from noise, so the model predicts {scaling.constant_prediction:g} for every "
            "row; pass y_bounds=(low, high), or spend more epsilon on more rows.",
            UtilityWarning,
        )
    elif scaling.columns and scaling.frozen.all():
        warn(
            "no column could be told from noise, so the model is a constant; if limits of the columns are known, pass "
            "them as bounds=(low, high), or spend more epsilon on more rows.",
            UtilityWarning,
        )
    elif warn_before(solution.plan) is None and (message := warn_after(solution)) is not None:
        warn(message, UtilityWarning)


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
    invalid_rows: str = "error",
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
    labels = every_label(problem.loss)[1] if problem.loss.classification else None
    how: dict[str, Any] = {"classes": labels, "jobs": thread_count(n_jobs), "invalid_rows": invalid_rows}
    table = load_array(X, y, "numbers", others, **how)
    data: Any = table.rows
    problem.check_labels(data.y)
    limits = None if problem.loss.classification else y_bounds
    declared = {"relation": relation, "bounds": bounds, "y_bounds": limits, "public_n": public_n}
    public = table.public(**declared, rows_per_person=rows_per_person, start=start, table=public_table)
    granted = budget_from(budget, None, public.rows)
    plan = make_plan(solver, problem, public, granted)
    rng, note = generator_from(random_state), "coefficients, by solve"
    return run_plan(plan, data, rng, ledger, dataset, note, nullcontext(callback), trace)


def make_plan(solver: Any, problem: Problem, public: Public, budget: Budget) -> Plan:
    """The plan of a solver by name or as an object; "auto" decides by public facts, and the plan says why."""
    if solver == "auto":
        name, reason = _automatic(problem, public, budget)
        return replace(_made(name, problem).plan(problem, public, budget), chosen_because=reason)
    return make_solver(solver, problem, public, budget).plan(problem, public, budget)


def make_solver(solver: Any, problem: Problem, public: Public, budget: Budget) -> Solver:
    """A solver by name, or the object itself; "auto" decides by public facts."""
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return _made(_automatic(problem, public, budget)[0], problem)
    if isinstance(solver, str) and solver in SOLVERS:
        return SOLVERS[solver]()
    known = ", ".join(repr(name) for name in ("auto", *SOLVERS))
    raise ValueError(f"solver must be one of {known} or a solver object; got {solver!r}.")


def _made(name: str, problem: Problem) -> Solver:
    """The solver that "auto" takes: its defaults, and shrunk scores of several classes."""
    if name == "gd" and problem.loss.classification and problem.loss.outputs > 1:
        return GradientDescent(shrink=True)
    return SOLVERS[name]()


def _automatic(problem: Problem, public: Public, budget: Budget) -> tuple[str, str]:
    """The name of a solver, and why it is taken: the first reason that applies."""
    if public.columns == 0:
        return "gd", "there are no columns"
    reasons = (
        ("screened", _why_screened(problem, public, budget)),
        ("cd", _why_cd(problem, public, budget)),
        ("adaptive", _why_adaptive(problem, public, budget)),
        ("newton", _why_constant(problem, public, budget)),
        ("gd", _why_not_newton(problem, public, budget)),
        ("newton", _why_public_inputs(public)),
    )
    for name, reason in reasons:
        if reason is not None:
            return name, reason
    told = f"directions with more than {_hidden(problem, public, budget):.2g} of the rows' squared length will be seen"
    return "newton", f"{told} through the noise of the second moment, so that few steps are needed"


def _why_constant(problem: Problem, public: Public, budget: Budget) -> str | None:
    fits = planning.fits_constant(Newton(), problem, public, budget)
    return "rows are too few for anything but a constant" if fits else None


def _why_adaptive(problem: Problem, public: Public, budget: Budget) -> str | None:
    """Why released numbers decide how the budget is spent; with weak noise nothing is to be decided."""
    if public.has_start or public.table is not None or budget.is_infinite:
        return None
    several_rows = public.persons and public.rows_per_person != 1
    least = LEAST_MOVED if several_rows or problem.loss.outputs > 1 else LEAST_MOVED_BY_TWO
    moved = planning.moved_by_noise(problem, budget, public, public.columns + 1)
    if moved <= least or SOLVERS["adaptive"]().why_incompatible(problem, budget) is not None:
        return None
    return (
        f"the noise of one step of newton would move scores by {moved:.2g}: it is better to decide by released numbers "
        "what labels, gradients and scores are worth"
    )


def _why_screened(problem: Problem, public: Public, budget: Budget) -> str | None:
    """Why columns are chosen first; a public start, which is a model of all of them, would be lost by that."""
    if public.has_start or public.columns <= FEW_COLUMNS or not worth_screening(problem, public, budget):
        return None
    return "the noise in a model of all columns would be larger than what they can tell"


def _why_public_inputs(public: Public) -> str | None:
    if public.table is not None:
        return "the public table gives it a metric without noise, so that few steps are needed"
    if public.has_start:
        return "it shrinks its result towards the public start, as far as noise alone may have moved it"
    return None


def _why_cd(problem: Problem, public: Public, budget: Budget) -> str | None:
    """Why steps on one coordinate at a time are planned; None if they are not.

    They need all rows at hand, so gradient steps stand in for them where rows stay in files; and they take one row of
    each person, so these stand in for them where persons have several.
    """
    several = public.persons and public.rows_per_person != 1  # of which coordinate steps would take one
    if public.stored or several or why_not(SOLVERS["cd"].capabilities, problem, budget) is not None:
        return None
    if budget.is_infinite:
        return "without noise, it is the fastest way to the optimum"
    if budget.kind == "pure":
        return "with delta = 0, a step on one coordinate needs less noise than one on all of them"
    if public.sparse and (public.columns >= MANY_SPARSE_COLUMNS or _hides_all(problem, public, budget)):
        return f"of {public.columns:,} sparse columns most say little, and steps on one at a time leave them alone"
    return None


def _why_not_newton(problem: Problem, public: Public, budget: Budget) -> str | None:
    """Why plain gradient steps are planned instead of preconditioned ones; None if they are not."""
    newton = SOLVERS["newton"]()
    reason = newton.why_incompatible(problem, budget)
    if reason is not None or budget.is_infinite:
        return f"newton cannot be used: {reason}" if reason else "without noise, nothing has to be learned first"
    labels, alone = problem.loss.classification, not public.has_start and public.table is None
    several_rows, classes = public.persons and public.rows_per_person != 1, problem.loss.outputs if labels else 1
    if alone and (several_rows or classes > 1):
        moved = planning.moved_by_noise(problem, budget, public, public.columns + problem.fit_intercept)
        if LEAST_MOVED < moved <= MOST_MOVED:
            if several_rows:
                return (
                    f"the noise of one step would move scores by {moved:.2g}, and the mean gradients of persons with "
                    "several rows are short: many short steps need to learn no threshold for them"
                )
            return (
                f"the noise of one step would move the scores of {classes} classes by {moved:.2g}: many "
                "short steps find what the largest directions tell of all of them"
            )
    if public.columns > (MOST_COLUMNS if labels else FEW_COLUMNS):
        wanted = "few steps on labels" if labels else "few steps on a target"
        return f"{public.columns:,} columns are too many for {wanted}: many short ones follow the largest directions"
    if _hides_all(problem, public, budget) and public.table is None and not public.has_start:
        hidden = _hidden(problem, public, budget)
        return (
            f"the noise of the second moment would hide every direction with less than {hidden:.2g} of the rows' "
            "squared length, so that newton would learn nothing from it"
        )
    return None


def _hides_all(problem: Problem, public: Public, budget: Budget) -> bool:
    """Whether a metric of many columns would be noise; with few of them its short steps are still the better ones."""
    return public.columns > FEW_COLUMNS and _hidden(problem, public, budget) > MOST_HIDDEN


def _hidden(problem: Problem, public: Public, budget: Budget) -> float:
    return planning.hidden_part(planning.MOMENT_SHARE, budget, public, public.columns + problem.fit_intercept)


@singledispatch
def standard_error_of(solver: Any, plan: Plan) -> float | None:
    """The noise of a coefficient of a scaled column, in target scales for regressions; None: not predicted."""
    return None


@standard_error_of.register(GradientDescent)
def _(solver: GradientDescent, plan: FullBatchPlan) -> float | None:
    """Each step moves by `step` / columns of the way in every direction, and its noise fades as slowly."""
    if solver.clip is not None and not plan.problem.loss.classification:
        return None
    columns, public, mechanism = _coordinates(plan), plan.public, plan.mechanism
    level = mechanism.deviation(mechanisms.clipped_sum(public.relation)) / public.rows
    clip = solver.clip or planned_threshold(
        GRADIENT_CLIP, level, plan, plan.settings.steps / 2.0, columns
    ) * planned_slope(plan.problem) * math.sqrt(columns)
    noise = mechanism.deviation(mechanisms.clipped_sum(public.relation, columns) * clip) / public.rows
    steps = plan.settings.steps
    kept = steps - steps // 2 if solver.average else 1
    return noise / plan.problem.loss.smoothness * averaged_noise(steps, kept, 1.0 - solver.step / columns)


@standard_error_of.register(CoordinateDescent)
def _(solver: CoordinateDescent, plan: CoordinateDescentPlan) -> float | None:
    """Each visit goes all the way to the minimum of its coordinate; the visits of the last loop are averaged."""
    if solver.smoothness is not None or (solver.clip is not None and not plan.problem.loss.classification):
        return None
    level = plan.mechanism.deviation(mechanisms.clipped_sum(plan.public.relation)) / plan.public.rows
    usual = planned_threshold(COORDINATE_CLIP, level, plan, plan.settings.passes / 2.0) * planned_slope(plan.problem)
    clip = usual if solver.clip is None else solver.clip / math.sqrt(_coordinates(plan))
    visits = max(1, round(plan.settings.passes / min(plan.settings.outer, plan.settings.steps)))
    kept = averaged_noise(visits, visits if solver.average else 1, 1.0 - solver.step)
    return level * clip / plan.problem.loss.smoothness * kept


@standard_error_of.register(Newton)
def _(solver: Newton, plan: planning.NewtonPlan) -> float | None:
    """Every step goes all the way to the minimum; those of the second half are averaged by their shares."""
    if plan.settings.is_constant or (solver.clip is not None and not plan.problem.loss.classification):
        return None
    usual = math.sqrt(_coordinates(plan)) * planned_slope(plan.problem)
    learned = 1.0 if plan.problem.loss.classification else planning.LONG_RESIDUALS
    clip = solver.clip or usual * (learned if plan.settings.learns_norm_bounds else planning.first_slope(plan.problem))
    sensitivity = mechanisms.clipped_sum(plan.public.relation) * clip
    parts = (plan.mechanism.part(planning.GRADIENTS + t) for t in range(plan.settings.steps))
    noise = np.array([part.deviation(sensitivity) for part in parts])
    noise = noise / (plan.public.rows * plan.problem.loss.usual_curvature)  # of each step, in the metric
    return float(np.linalg.norm(weights_of_iterates(solver, plan) * noise))


@standard_error_of.register(OutputPerturbation)
def _(solver: OutputPerturbation, plan: OutputPerturbationPlan) -> float | None:
    """That of its one release."""
    return solver._releases(plan)[0].deviation if plan.problem.loss.classification else None


@standard_error_of.register(SufficientStatistics)
def _(solver: SufficientStatistics, plan: SufficientStatisticsPlan) -> float:
    """Noise of the moments with the target, and as much again from those among the columns."""
    squared = solver.radius**2 if solver.radius else squared_length(_coordinates(plan) + 1, long_rows(plan))
    return plan.mechanism.part(MOMENT).deviation(moment_sensitivity(plan) * squared)


@standard_error_of.register(Screened)
def _(solver: Screened, plan: ScreenedPlan) -> float | None:
    """The root mean square over all columns; those that are not chosen have a coefficient of 0."""
    fit = solver.fit_plan(plan)
    return fit.standard_error and fit.standard_error * math.sqrt(_coordinates(fit) / _coordinates(plan))


def squared_length(entries: int, exceeded: float) -> float:
    """What this fraction of the squared lengths of normal rows exceeds, by the rule of Wilson and Hilferty."""
    if exceeded <= 0.0:
        return math.inf
    unit = 2.0 / (9.0 * entries)
    return float(entries * max(1.0 - unit + NormalDist().inv_cdf(1.0 - exceeded) * math.sqrt(unit), 0.0) ** 3)


def _coordinates(plan: Plan) -> int:
    return plan.public.columns + plan.problem.fit_intercept
