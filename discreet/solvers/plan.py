"""What is decided before the first row is read: the plan of a run, and the settings of its solver."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.mechanisms.base import Mechanism
from discreet.scaling.plan import ScalingPlan

if TYPE_CHECKING:
    from discreet.data.public import Public
    from discreet.privacy.budget import Budget
    from discreet.problem.problem import Problem
    from discreet.solvers.base import Solver


@dataclass(frozen=True)
class Settings:
    """What a solver fixes beside its noise: a frozen dataclass of numbers, words and flags for each solver."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values: what is None is left out, an infinite number is written as "inf"."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: "inf" if value == math.inf else value for name, value in pairs if value is not None}


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
    """

    solver: Solver[M, S]
    problem: Problem
    public: Public
    budget: Budget
    scaling_plan: ScalingPlan
    mechanism: M
    settings: S

    @cached_property
    def event(self) -> Any:
        """What the run will do to privacy, in the vocabulary of dp-accounting."""
        if self.budget.is_infinite:
            return accounting.non_private_event()
        return accounting.compose([self.scaling_plan.event, self.mechanism.event])

    @property
    def is_noisy(self) -> bool:
        """Whether noise is added: whether the budget is finite."""
        return not self.budget.is_infinite

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the run will promise, with its exact cost."""
        return guarantee_for(self.event, self.budget, self.public.relation, self.public.rows, self.public.leaks)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "solver": self.solver.name,
            "needs_all_rows": self.solver.needs_all_rows,
            "public": self.public.to_dict(),
            "budget": self.budget.to_dict(),
            "scaling": self.scaling_plan.to_dict(),
            "noise_multiplier": self.mechanism.multiplier,
            "settings": self.settings.to_dict(),
            "event": accounting.event_to_dict(self.event),
        }

    def __str__(self) -> str:
        public, scaling_plan = self.public, self.scaling_plan
        lines = [
            f"solver            {self.solver.name}",
            f"rows in memory    {'all at once' if self.solver.needs_all_rows else 'block by block'}",
            f"public facts      {public.rows} rows, {public.columns} columns, relation {public.relation}",
            f"budget            {self.budget}",
            f"scales            {_SCALING_WORDS[scaling_plan.method]}",
            f"noise multiplier  {self.mechanism.multiplier:.6g} (noise / sensitivity, per release)",
        ]
        settings = self.settings.to_dict().items()
        return "\n".join(lines + [f"{name.replace('_', ' '):<17} {value}" for name, value in settings])


_SCALING_WORDS = {
    "declared": "declared bounds; nothing is learned about them",
    "moments": "declared bounds; centres and widths are learned privately",
    "narrowed": "declared bounds; ends of the bulk, centres and widths inside them are learned privately",
    "columns": "radius, centre and width of every column are learned privately",
    "common": "too little data for scales per column: one common radius is learned privately",
    "none": "columns as they are",
}
