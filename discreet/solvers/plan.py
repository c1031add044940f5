"""What is decided before the first row is read: the plan of a run, and the settings of its solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet._common.codec import written
from discreet._common.digest import digest_of
from discreet.data.public import MOST_ROWS
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.mechanisms.additive import Mechanism
from discreet.privacy.planned_release import PlannedRelease, with_shares
from discreet.scaling.plan import ScalingPlan, scaling_releases

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.data.public_inputs import PublicModel
    from discreet.privacy.budget import Budget
    from discreet.problem.column_scaling import ColumnScaling
    from discreet.problem.problem import Problem
    from discreet.solvers.base import Solver
    from discreet.solvers.theory.plan_theory import PlanTheory
    from discreet.theory.bound import Bound
    from discreet.theory.distance import DistanceLaw


# The size that a good linear predictor has: a log-odds of 2 is a probability of 0.88, and no predictor explains more
# than the target's whole variance. Columns usually tell about a quarter of that variance. Where the noise has as much,
# it is likely to do more harm than the columns do good: docs/plans.md.
LABEL_MARGIN, TARGET_MARGIN = 2.0, 1.0
USUALLY_TOLD = 0.5  # of these
# What the noise of a release is measured in, in the words of a plan.
OF_THE_THRESHOLD = "of the clipping threshold"
SQUARED_LENGTH = "of the squared length limit"
COEFFICIENT = "per scaled coefficient"
SQUARED_RANGE = "of a column's squared half-width"


@dataclass(frozen=True)
class Settings:
    """What a solver fixes beside its noise: a frozen dataclass of numbers, words and flags for each solver."""

    @property
    def is_constant(self) -> bool:
        """Whether the whole budget goes into a constant prediction, because the rows are too few for more."""
        return False

    @property
    def passes_over_rows(self) -> int | None:
        """How often the steps read all rows where these are stored; None: once for each release."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: what is None is left out, an infinite number is written as "inf"."""
        return {name: value for name, value in written(self).items() if value is not None}


M = TypeVar("M", bound=Mechanism)
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, eq=False)
class Plan(Generic[M, S]):
    """Everything that is decided before the first row is read.

    Attributes
    ----------
    solver : Solver
        The solver that made the plan and will run it.
    problem : Problem
        The loss, the penalty and the constraint.
    public : Public
        What is known about the table without reading its rows.
    budget : Budget
        The privacy budget of the whole run.
    scaling_plan : ScalingPlan
        Which scales of the columns will be learned, and by which mechanisms.
    mechanism : Mechanism
        What draws the noise of the solver and states its cost.
    settings : Settings
        Steps, batches and whatever else the solver fixed from public facts.
    chosen_because : str
        Why "auto" took this solver; empty where the caller named it.
    """

    solver: Solver[M, S]
    problem: Problem
    public: Public
    budget: Budget
    scaling_plan: ScalingPlan
    mechanism: M
    settings: S
    chosen_because: str = ""

    @cached_property
    def event(self) -> Any:
        """What the run will do to privacy, in the vocabulary of dp-accounting."""
        if self.budget.is_infinite:
            return accounting.non_private_event()
        return self.solver._event(self)

    @property
    def is_noisy(self) -> bool:
        """Whether noise is added: whether the budget is finite."""
        return not self.budget.is_infinite

    @property
    def rows_per_person(self) -> int:
        """The most rows of a person that are used, which are drawn at random; 1 where each row is a person."""
        if self.public.unit == "row":
            return 1
        return self.public.rows_per_person or (MOST_ROWS if self.solver.capabilities.persons else 1)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the run will promise, with its exact cost."""
        public = self.public
        rows, leaks, inputs = public.rows, public.leaks, public.inputs
        return guarantee_for(self.event, self.budget, public.relation, rows, leaks, inputs, public.unit)

    @property
    def has_public_start(self) -> bool:
        """Whether the solver begins at public coefficients, unless the rows tell that these are worse than none."""
        return self.solver.capabilities.start and self.public.has_start

    @cached_property
    def start(self) -> PublicModel | None:
        """The public coefficients at which the solver begins: as given, or fitted on the public table; else None."""
        if not self.has_public_start or self.public.start is not None:
            return self.public.start
        from discreet.solvers._shared.public_start import fitted_start

        return fitted_start(self.problem, self.public)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of everything that decides what a run does to the rows; seeded noise is keyed by it.

        Left out are where the rows are stored, since a file and memory give the same model, and what was read from the
        rows outside the guarantee.
        """
        public = replace(self.public, stored=False, leaks=())
        parts = (self.solver, self.problem, public, self.budget, self.scaling_plan, self.mechanism, self.settings)
        return digest_of("plan", *parts)

    @cached_property
    def releases(self) -> list[PlannedRelease]:
        """What will be told about the rows, in order, each with its noise and its share; empty without noise."""
        if self.budget.is_infinite:
            return []
        first = self.solver.capabilities.scales_first
        scales = scaling_releases(self.scaling_plan, self.public) if first else []
        return with_shares(scales + self.solver._releases(self), self.budget)

    @cached_property
    def standard_error(self) -> float | None:
        """The noise of a coefficient of a scaled column, predicted from public facts; None where it cannot be.

        In standard deviations of the target for regressions. docs/plans.md says how.
        """
        if self.budget.is_infinite or self.problem.loss.outputs > 1 or self.scaling_plan.method == "none":
            return None
        from discreet.solvers.standard_errors import standard_error_of

        return standard_error_of(self.solver, self)

    def warnings(self) -> list[str]:
        """Say what a person should know before the budget is spent; from public facts alone."""
        if self.budget.is_infinite:
            return []
        if self.settings.is_constant:
            return [self._warn_of_constant()]
        noise = self._warn_of_noise()
        told = [*self.scaling_plan.warnings(self.public), *self.solver._warnings(self), noise]
        return [warning for warning in told if warning]

    def _warn_of_constant(self) -> str:
        what = "the shares of the labels" if self.problem.loss.classification else "the mean of the target"
        return (
            f"{self.public.rows} {self.public.unit}s are too few at this budget to learn privately what the columns "
            f"tell, so all of it goes into {what}, and the model predicts the same for every row; use more "
            f"{self.public.unit}s or a larger epsilon."
        )

    def weaknesses(self, rows_are_known: bool = True) -> list[str]:
        """Say why the promise itself protects little: epsilon > 10, or delta > 1/rows; from public facts alone."""
        return self.guarantee.weaknesses(self.public.rows if rows_are_known else None)

    def _warn_of_noise(self) -> str | None:
        """Compare the noise of a prediction, sqrt(columns) times that of a coefficient, with usual predictions."""
        labels = self.problem.loss.classification
        usual = USUALLY_TOLD * (LABEL_MARGIN if labels else TARGET_MARGIN)
        noise = math.sqrt(self.public.columns + self.problem.fit_intercept) * (self.standard_error or 0.0)
        if noise <= usual:
            return None
        return (
            f"the noise in a prediction is expected to be about {noise / usual:.2g} times as large as what the columns "
            f"can usually tell about the {'label' if labels else 'target'}, so that a constant may predict better; "
            f"use more {self.public.unit}s, fewer columns or a larger epsilon."
        )

    def theory(self, radius: float = 1.0) -> PlanTheory:
        """Return where the plan stands between lower and upper bounds of the literature; from public facts alone.

        Parameters
        ----------
        radius : float, default=1.0
            An assumed bound on the norm of the optimum in the solver's (scaled) columns. Where the penalty gives a
            smaller one, that is used.
        """
        from discreet.solvers.theory.plan_theory import theory_of

        return theory_of(self, radius)

    def error_bound(self, radius: float) -> Bound | None:
        """Return the bound of the literature on the error of the planned run; None where no theorem covers it.

        `radius` is an assumed bound on the norm of the optimum in the scaled columns.
        """
        from discreet.solvers.theory import bound_of

        return bound_of(self.solver, self, radius) if self.is_noisy else None

    def distance_law(self, scaling: ColumnScaling) -> DistanceLaw:
        """Return how far the run can be from its noise-free limit, in the scaled columns (the intercept last).

        From the plan and the released scales alone. A ValueError where no theorem covers the plan.
        """
        from discreet.solvers.theory import distance_of

        return distance_of(self.solver, self, scaling)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "solver": self.solver.name,
            "chosen_because": self.chosen_because,
            "needs_all_rows": not self.solver.capabilities.stored,
            "public": self.public.to_dict(),
            "budget": self.budget.to_dict(),
            "scaling": self.scaling_plan.to_dict(),
            "settings": self.settings.to_dict(),
            "rows_per_person": self.rows_per_person,
            "releases": [release.to_dict() for release in self.releases],
            "standard_error": self.standard_error,
            "warnings": self.weaknesses() + self.warnings(),
            "event": accounting.event_to_dict(self.event),
        }

    def __str__(self) -> str:
        from discreet.solvers.plan_text import describe_plan

        return describe_plan(self)
