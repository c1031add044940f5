"""The contract of a solver; algorithms are in the files and folders beside it.

Two steps that never mix: `plan` sees public facts only and fixes noise, steps, clipping and cost; `solve`
reads the rows and may do only what the plan says.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal

from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import FloatArray, Progress
from discreet.data.people import gather_persons
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.planned_release import PlannedRelease, planned_releases
from discreet.problem.scaled_problem import ScaledProblem, scale_problem, unscaled_problem
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_scaling
from discreet.scaling.start_check import plan_start_check, start_is_better
from discreet.solvers import refusals
from discreet.solvers.plan import M, Plan, S
from discreet.solvers.solution import Run, Solution

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.rows import Rows
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem


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
    freezes: bool = True  # whether columns in which nothing was seen keep a coefficient of 0


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
        refusals.check_task(self, problem, public, budget)
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
            warnings.warn(told, PrivacyLeakWarning, stacklevel=2)
        run = Run(rng, progress, trace == "non-private")
        w, iterations = self._descend(scaled, plan, run)
        coef, intercept = scaled.to_user(w)
        return Solution(coef, intercept, iterations, plan, scaled.scaling, run.trace, seeded=not rng.secure)

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why this solver cannot take this problem under this budget; None if it can."""
        return refusals.why_not(self.capabilities, problem, budget)

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
    refusals.check_plan(solver, problem, data, plan)
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
