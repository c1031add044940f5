"""The contract of a solver; algorithms are in the files and folders beside it.

Two steps that never mix: `plan` sees public facts only and fixes noise, steps, clipping and cost; `solve`
reads the rows and may do only what the plan says.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal

from discreet._common.exceptions import IncompatibleSolverError, PrivacyLeakWarning
from discreet._common.types import FloatArray, Progress
from discreet.data.people import gather_persons, rounded_rows
from discreet.data.rows import Data
from discreet.privacy import accounting
from discreet.privacy.planned_release import PlannedRelease, planned_releases
from discreet.privacy.relation import Relation
from discreet.problem.scaled_problem import ScaledProblem, scale_problem
from discreet.problem.unscaled_problem import unscaled_problem
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import ScalingPlan, facts_for_scales, plan_scaling
from discreet.scaling.planned_releases import scaling_releases
from discreet.scaling.start_check import plan_start_check, start_is_better
from discreet.solvers.plan import M, Plan, S
from discreet.solvers.solution import Run, Solution

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicModel
    from discreet.data.rows import Rows
    from discreet.privacy.budget import Budget
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem
    from discreet.theory.bound import Bound
    from discreet.theory.distance import DistanceLaw

ALL_ROWS_NEEDED = "its loop needs all rows in memory, and they are read in blocks"
BLOCKS_NEEDED = "it draws noise for every row, and rows on workers give sums only"
ONE_ROW_NEEDED = "its proof is for one row of each person (rows_per_person=1)"


class Solver(ABC, Generic[M, S]):
    """A frozen set of parameters with `plan` and `solve`; state is never stored on it.

    A solver names its types: `class Newton(Solver[BudgetSplit, NewtonSettings])` draws its noise from a `BudgetSplit`
    and plans `NewtonSettings`.
    """

    name: ClassVar[str]
    order: ClassVar[Literal["C", "F"]]  # in which order it wants the rows in memory
    needs_separable: ClassVar[bool]  # whether every set and penalty must act on single coordinates
    takes_coupled: ClassVar[bool] = False  # whether it takes penalties that tie coefficients together, by their prox
    pure: ClassVar[bool]  # whether it has a form with pure epsilon-DP
    single_output: ClassVar[bool] = False  # whether it knows losses of one output only
    selects: ClassVar[bool] = False  # whether it makes private selections, which have no cost in Gaussian DP
    compiled: ClassVar[tuple[str, ...]] = ()  # what its compiled loop needs of a loss: names of `CompiledForms`
    takes_start: ClassVar[bool] = False  # whether it can begin at public coefficients
    takes_persons: ClassVar[bool] = False
    """Whether it can use several rows of a person, as docs/guarantees/people.md says; False: one random row of each."""
    needs_all_rows: ClassVar[bool] = True
    """Whether its loop needs all rows in memory; False: sums over blocks of rows are enough."""
    copies_rows: ClassVar[bool] = False
    """Whether its loop over rows in memory is a compiled one, which wants a scaled copy of them."""
    needs_blocks: bool = False  # whether the driver must see the blocks; such a run has no form on workers
    scale_share: float | None

    def plan(self, problem: Problem, public: Public, budget: Budget) -> Plan[M, S]:
        """Fix noise, steps, clipping and the privacy event from public facts: data is not an argument."""
        self._check(problem, budget, public.stored)
        problem.penalty.check_columns(public.columns)
        if public.stored and (reason := self.why_not_stored()) is not None:
            raise self._refused(reason, problem, budget, stored=True)
        if (public.rows_per_person or 1) > 1 and not self.takes_persons:
            raise self._refused(ONE_ROW_NEEDED, problem, budget, persons=True)
        if public.start is not None:
            self._check_start(problem, public.start, budget)
        target = not problem.loss.classification
        scaling_plan = self._plan_scaling(problem, public, budget, target)
        if self.takes_start and public.has_start:
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
        self._check_plan(problem, data, plan)
        if not rng.secure:
            rng.rekey(plan.digest)
        if not isinstance(data, Data):
            return self._run(problem, data, plan, rng, progress, trace)
        data = gather_persons(data, plan.rows_per_person, rng)
        try:
            return self._run(problem, data, plan, rng, progress, trace)
        finally:
            data.forget()

    def _run(
        self,
        problem: Problem,
        data: Rows,
        plan: Plan[M, S],
        rng: RandomGenerator,
        progress: Progress | None,
        trace: Literal["non-private"] | None,
    ) -> Solution:
        """Learn the planned scales, then descend as planned.

        Guarantee: as for `solve`, which alone may call it: it has checked the plan and gathered the rows of persons.
        """
        scaling = self._learn_scaling(plan, data, rng)
        scaled: Any = (
            scale_problem(problem, data, scaling, plan.public.rows, self.order, plan.start)
            if isinstance(data, Data) and self._copies(data)
            else unscaled_problem(problem, data, scaling, plan.public.rows, plan.start)
        )
        if trace == "non-private":
            warnings.warn("the objective trace is read from the rows without noise.", PrivacyLeakWarning, stacklevel=3)
        check = plan.scaling_plan.start_check
        relation, rounded = plan.public.relation, rounded_rows(plan.public)
        if check is not None and not start_is_better(scaled, check, relation, rng, rounded):
            scaled = replace(scaled, origin=None)
        run = Run(rng, progress, trace == "non-private")
        w, iterations = self._descend(scaled, plan, run)
        coef, intercept = scaled.to_user(w)
        return Solution(coef, intercept, iterations, plan, scaled.scaling, run.trace, seeded=not rng.secure)

    def _copies(self, data: Data) -> bool:
        """Whether the loop needs a scaled copy of rows in memory; sums over dense rows scale them on the way."""
        return self.needs_all_rows or self.copies_rows or data.sparse or data.persons is not None

    def _plan_scaling(self, problem: Problem, public: Public, budget: Budget, target: bool) -> ScalingPlan:
        facts = facts_for_scales(public, problem.loss.log_link and self.scale_share != 0.0)
        return plan_scaling(facts, budget, self.scale_share, problem.fit_intercept, target)

    def distance_law(self, plan: Plan[M, S], scaling: ColumnScaling) -> DistanceLaw:
        """Return how far a run can be from its noise-free limit, in the scaled columns (the intercept last).

        From the plan and the released scales alone. A ValueError where no theorem covers the plan.
        """
        raise ValueError(f"no theorem bounds the distance of {self.name} from its optimum.")

    def error_bound(self, plan: Plan[M, S], radius: float) -> Bound | None:
        """Return the bound of the literature on the error of a planned run; None where no theorem covers it.

        `radius` is an assumed bound on the norm of the optimum in the scaled columns.
        """
        return None

    def _learn_scaling(self, plan: Plan[M, S], data: Rows, rng: RandomGenerator) -> ColumnScaling:
        return learn_scaling(plan.scaling_plan, data, plan.public, rng)

    @abstractmethod
    def _decide(self, problem: Problem, public: Public, budget: Budget, scaling_plan: ScalingPlan) -> tuple[M, S]:
        """The mechanism that pays for the descent, and the settings."""

    def _event(self, plan: Plan[M, S]) -> Any:
        """What a run costs, its releases in the order in which they are made."""
        return accounting.compose([plan.scaling_plan.event, plan.mechanism.event])

    def _releases_in_order(self, plan: Plan[M, S]) -> list[PlannedRelease]:
        """What a run will release in plain words, the scales included."""
        return scaling_releases(plan.scaling_plan, plan.public) + self._releases(plan)

    def _warnings(self, plan: Plan[M, S]) -> list[str]:
        """What else a person should know of a plan of this solver before the budget is spent."""
        return []

    def _releases(self, plan: Plan[M, S]) -> list[PlannedRelease]:
        """What the solver will release beside the scales, in order and in plain words."""
        return planned_releases("releases of the solver", plan.mechanism.event, plan.public.relation)

    def _standard_error(self, plan: Plan[M, S]) -> float | None:
        """The noise of a coefficient of a scaled column, in target scales for regressions; None: not predicted."""
        return None

    @abstractmethod
    def _descend(self, scaled: ScaledProblem, plan: Plan[M, S], run: Run) -> tuple[FloatArray, int]:
        """Weights in scaled columns, and the number of iterations."""

    def why_incompatible(self, problem: Problem, budget: Budget) -> str | None:
        """Why this solver cannot take this problem under this budget; None if it can."""
        loss, penalty, constraint, finite = problem.loss, problem.penalty, problem.constraint, not budget.is_infinite
        unknown = next((form.replace("_", " ") for form in self.compiled if form not in loss.forms), None)
        reasons = {
            f"the {penalty.name} penalty ties coefficients together": not (penalty.separable or self.takes_coupled),
            f"the {constraint.name if constraint else ''} constraint is not separable": (
                self.needs_separable and constraint is not None and not constraint.separable
            ),
            f"its compiled loop does not know the {unknown} of the {loss.name} loss": unknown is not None,
            "it has no form for several classes": self.single_output and loss.outputs > 1,
            "it has no form with pure epsilon-DP (delta=0)": finite and budget.kind == "pure" and not self.pure,
            "its private selections have no cost in Gaussian DP": finite and budget.kind == "gdp" and self.selects,
        }
        return next((reason for reason, applies in reasons.items() if applies), None)

    def why_not_stored(self) -> str | None:
        """Why this solver cannot take rows that are read block by block; None if it can."""
        return ALL_ROWS_NEEDED if self.needs_all_rows else None

    def passes_over_rows(self, plan: Plan[M, S]) -> int | None:
        """How often the steps of a plan read all rows where these are stored; None: not stated."""
        return None

    def _check(self, problem: Problem, budget: Budget, stored: bool) -> None:
        reason = self.why_incompatible(problem, budget)
        if reason is not None:
            raise self._refused(reason, problem, budget, stored=stored)

    def _check_start(self, problem: Problem, start: PublicModel, budget: Budget) -> None:
        if not self.takes_start:
            raise self._refused("its result does not depend on where it starts", problem, budget, started=True)
        outputs = problem.loss.outputs
        wanted = (start.columns,) if outputs == 1 else (outputs, start.columns)
        if start.coef.shape != wanted:
            raise ValueError(f"coef of start has shape {start.coef.shape}; this loss needs {wanted}.")
        if not problem.fit_intercept and start.intercept.any():
            raise ValueError("start has an intercept, and fit_intercept=False leaves none; pass intercept=0.")

    def _refused(
        self,
        reason: str,
        problem: Problem,
        budget: Budget,
        stored: bool = False,
        started: bool = False,
        persons: bool = False,
    ) -> IncompatibleSolverError:
        """The error that says why, and which other solvers would work."""
        from discreet.solvers import SOLVERS

        others = [
            (name, kind())
            for name, kind in SOLVERS.items()
            if name != self.name
            and not (stored and kind().why_not_stored() is not None)
            and not (started and not kind.takes_start)
            and not (persons and not kind.takes_persons)
        ]
        able = [repr(name) for name, solver in others if solver.why_incompatible(problem, budget) is None]
        advice = f"use one of {', '.join(able)}" if able else "no solver takes this problem as it stands"
        return IncompatibleSolverError(f"solver {self.name!r} cannot be used: {reason}; {advice}.")

    def check_rows(self, plan: Plan[M, S], rows: Rows) -> None:
        """Refuse rows that give sums only, before anything is booked, where the run needs more."""
        if self.needs_blocks and not rows.gives_blocks:
            raise self._refused(BLOCKS_NEEDED, plan.problem, plan.budget, stored=True)

    def _check_plan(self, problem: Problem, data: Rows, plan: Plan) -> None:
        """A plan's cost holds for its own solver and problem, and for tables with its public facts only."""
        if isinstance(data, Data):  # who reads stored rows checks their labels, block by block
            problem.check_labels(data.y)
        elif (reason := self.why_not_stored()) is not None:
            raise self._refused(reason, problem, plan.budget, stored=True)
        if plan.solver != self or plan.problem != problem:
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


def calibrated(make: Callable[[float], M], scaling_plan: ScalingPlan, budget: Budget, public: Public) -> M:
    """The mechanism with the least noise that fits the budget beside the planned scales."""

    def event_at(multiplier: float) -> Any:
        return accounting.compose([scaling_plan.event, make(multiplier).event])

    if budget.is_infinite:
        return make(0.0)
    return make(accounting.calibrate(event_at, budget, public.relation))
