"""The contract of a solver, what it returns, and what it refuses; algorithms are in the files and folders beside it.

Two steps that never mix: `plan` sees public facts only and fixes noise, steps, clipping and cost; `solve`
reads the rows and may do only what the plan says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal

from discreet._common.callers import warn
from discreet._common.exceptions import IncompatibleSolverError, PrivacyLeakWarning
from discreet._common.types import FloatArray, Progress
from discreet.data.people import gather_persons
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.relation import Relation
from discreet.privacy.release import PlannedRelease, planned_releases
from discreet.problem.scaled_problem import ScaledProblem, scale_problem, unscaled_problem
from discreet.scaling.learn import learn_scaling, opened
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_scaling
from discreet.scaling.public_scales import plan_start_check, start_is_better
from discreet.solvers import SOLVERS
from discreet.solvers.plan import M, Plan, S

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Rows
    from discreet.inference.released import InferenceReleases
    from discreet.privacy.budget import Budget
    from discreet.privacy.guarantee import Guarantee, ReleaseRecord
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem
    from discreet.problem.scaled_problem import BlockwiseProblem

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


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returns.

    Attributes
    ----------
    coef : array, (p,) or (outputs, p)
        The coefficients in the user's columns; `w`, as the papers call them, is the same.
    intercept : float or array
    iterations : int
        How many steps were made; planned, unless epsilon is infinite.
    plan : Plan
        What was decided before the rows were read.
    scaling : ColumnScaling
        Where columns were clipped, centred and scaled.
    objective_trace : list of float or None
        The objective after each pass, if the caller asked for it by name. Not private.
    seeded : bool
        Whether the noise came from a seed or from a NumPy generator; the guarantee then names this as a leak.
    release : ReleaseRecord or None
        Which table it was, when, and where the cost was booked; None until the run has ended.
    released : InferenceReleases or None
        What standard errors are computed from, where the plan was made for them.

    Guarantee: `coef`, `intercept`, `scaling` and `released` are differentially private as `guarantee` states.
    """

    coef: FloatArray
    intercept: Any
    iterations: int
    plan: Plan
    scaling: ColumnScaling
    objective_trace: list[float] | None = None
    seeded: bool = False
    release: ReleaseRecord | None = None
    released: InferenceReleases | None = None

    @property
    def w(self) -> FloatArray:
        """The coefficients, by their name in the papers."""
        return self.coef

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised about this result; a seed, and a trace that was asked for, are named as leaks."""
        promise = self.plan.guarantee.about(self.release)
        promise = promise.with_seed() if self.seeded else promise
        return promise if self.objective_trace is None else promise.with_leak("the objectives of the trace")


class Run:
    """What a descending solver needs from outside: noise, progress reports and an optional trace."""

    def __init__(self, rng: RandomGenerator, progress: Progress | None, traced: bool) -> None:
        self.rng = rng
        self.progress = progress
        self.trace: list[float] | None = [] if traced else None
        self.released: InferenceReleases | None = None

    def report(self, done: int, total: int, scaled: BlockwiseProblem, w: FloatArray) -> None:
        if self.progress is not None:
            self.progress(done, total)
        if self.trace is not None:
            self.trace.append(scaled.value(w))


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Which problems, budgets and rows a solver takes."""

    order: Literal["C", "F"] = "C"  # in which order it wants the rows in memory
    pure: bool = False  # whether it has a form with pure epsilon-DP
    separable_only: bool = False  # whether every set must act on single coordinates
    coupled: bool = False  # whether it takes penalties that tie coefficients together, by their prox
    single_output: bool = False  # whether it takes losses of one output only
    selects: bool = False  # whether it makes private selections, which have no cost in Gaussian DP
    compiled: tuple[str, ...] = ()  # what its compiled loop needs of a loss: names of `CompiledForms`
    start: bool = False  # whether it can begin at public coefficients
    persons: bool = False  # whether it uses several rows of a person (docs/guarantees/people.md), or a random one
    stored: bool = False  # whether sums over blocks of rows are enough, or its loop needs all rows in memory
    copied: bool = False  # whether its loop over rows in memory is compiled, and wants a scaled copy of them
    workers: bool = True  # whether sums over rows on workers are enough, or it must see the blocks
    scales_first: bool = True  # whether the scales are its first release, or `_event` and `_releases` place them
    shrinks: bool = False  # whether it pulls scores towards a constant as far as noise may have made them
    consistent: bool = True  # whether its bias falls below its noise and the error of sampled rows as the noise falls
    freezes: bool = True  # whether columns in which nothing was seen keep a coefficient of 0
    opens: bool = False  # whether entries are clipped at declared bounds only, and not where the scales end


class Solver(ABC, Generic[M, S]):
    """A frozen set of parameters with `plan` and `solve`; state is never stored on it.

    A solver names its types: `class Newton(Solver[BudgetSplit, NewtonSettings])` draws its noise from a `BudgetSplit`
    and plans `NewtonSettings`. It must state `name`, `capabilities`, `_decide` and `_descend`; the other methods have
    defaults.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    scale_share: float | None

    def plan(self, problem: Problem, public: Public, budget: Budget) -> Plan[M, S]:
        """Fix noise, steps, clipping and the privacy event from public facts: data is not an argument."""
        check_task(self, problem, public, budget)
        scaling_plan = self._plan_scaling(problem, public, budget)
        if self.capabilities.start and public.has_start:
            scaling_plan = replace(scaling_plan, start_check=plan_start_check(public, budget))
        mechanism, settings = self._decide(problem, public, budget, scaling_plan)
        return Plan(self, problem, public, budget, scaling_plan, mechanism, settings)

    def solve(
        self,
        problem: Problem,
        data: Rows,
        plan: Plan[M, S],
        rng: RandomGenerator,
        progress: Progress | None = None,
        trace: Literal["non-private"] | None = None,
    ) -> Solution:
        """Do what the plan says, with at most the planned number of rows of each person.

        The rows are in memory (`Data`) or stored elsewhere and read in blocks, which gives the same result.

        Guarantee: the result costs exactly `plan.event` under the plan's relation and unit, unless `rng` is seeded.
        """
        rows = planned_rows(self, problem, data, plan, rng)
        scaled = scaled_problem(plan, rows, scaling_of(plan, rows, rng), rng)
        if trace == "non-private":
            told = "the objective trace is read from the rows without noise."
            warn(told, PrivacyLeakWarning)
        run = Run(rng, progress, trace == "non-private")
        w, iterations = self._descend(scaled, plan, run)
        coef, intercept = scaled.to_user(w)
        solution = Solution(coef, intercept, iterations, plan, scaled.scaling, run.trace, seeded=not rng.secure)
        return replace(solution, released=run.released)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why this solver cannot take this problem under this budget; None if it can."""
        return why_not(self.capabilities, problem, budget)

    @abstractmethod
    def _decide(self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan) -> tuple[M, S]:
        """The mechanism that pays for the descent, and the settings."""

    @abstractmethod
    def _descend(self, scaled: ScaledProblem, plan: Plan[M, S], run: Run) -> tuple[FloatArray, int]:
        """Weights in scaled columns, and the number of iterations."""

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget) -> ScalingPlan:
        """Which scales of the columns will be learned."""
        facts = facts_for_scales(public, problem.loss.log_link and self.scale_share != 0.0)
        return plan_scaling(facts, budget, self.scale_share, problem.fit_intercept, not problem.loss.classification)

    def _event(self, plan: Plan[M, S]) -> Any:
        """What a run costs, its releases in the order in which they are made."""
        return accounting.compose([plan.scaling_plan.event, plan.mechanism.event])

    def _releases(self, plan: Plan[M, S]) -> list[PlannedRelease]:
        """What the solver will release beside the scales, in order and in plain words."""
        return planned_releases("releases of the solver", plan.mechanism.event, plan.public.relation)

    def _warnings(self, plan: Plan[M, S]) -> list[str]:
        """What else a person should know of a plan of this solver before the budget is spent."""
        return []


def planned_rows(solver: Solver[M, S], problem: Problem, data: Rows, plan: Plan[M, S], rng: RandomGenerator) -> Any:
    """The rows that the plan will use: checked, with those of a person gathered; seeded noise is keyed by the plan."""
    check_plan(solver, problem, data, plan)
    if not rng.secure:
        rng.rekey(plan.digest)
    if not isinstance(data, Data) or data.persons is None:
        return data
    return gather_persons(data, plan.rows_per_person, rng)


def scaled_problem(plan: Plan, rows: Rows, scaling: ColumnScaling, rng: RandomGenerator) -> Any:
    """The problem in scaled columns, from its public start if that is better than none.

    Guarantee: costs the planned check of the start.
    """
    problem, public, takes = plan.problem, plan.public, plan.solver.capabilities
    scaled: Any
    if isinstance(rows, Data) and (not takes.stored or takes.copied or rows.sparse or rows.persons is not None):
        scaled = scale_problem(problem, rows, scaling, public.rows, takes.order, plan.start)
    else:  # sums over dense rows scale them on the way
        scaled = unscaled_problem(problem, rows, scaling, public.rows, plan.start)
    check = plan.scaling_plan.start_check
    if check is not None and not start_is_better(scaled, check, public.relation, rng, public.rounded_rows):
        return replace(scaled, origin=None)
    return scaled


def scaling_of(plan: Plan, rows: Rows, rng: RandomGenerator) -> ColumnScaling:
    """The planned scales of the columns, learned from the rows.

    Guarantee: costs the planned scales.
    """
    scaling = learn_scaling(plan.scaling_plan, rows, plan.public, rng)
    if plan.solver.capabilities.opens:
        return opened(scaling, plan.public)
    if plan.solver.capabilities.freezes:
        return scaling
    return (scaling.uniform() if plan.problem.common_scale else scaling).without_frozen()


def calibrated(make: Callable[[float], M], scaling_plan: ScalingPlan, budget: Budget, public: Public) -> M:
    """The mechanism with the least noise that fits the budget beside the planned scales."""

    def event_at(multiplier: float) -> Any:
        return accounting.compose([scaling_plan.event, make(multiplier).event])

    if budget.is_infinite:
        return make(0.0)
    return make(accounting.calibrate(event_at, budget, public.relation))
