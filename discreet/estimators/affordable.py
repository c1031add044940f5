"""What a ledger would still grant: the largest epsilon with which a refused fit could be repeated.

Everything here is public: plans, events and the ledger; no row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.estimators.fitting import budget_for, plan_fit, public_for
from discreet.estimators.task import Task, TaskQuestion, plan_beside, plan_question
from discreet.privacy import accounting

if TYPE_CHECKING:
    from discreet.estimators.table_fit import FitRequest
    from discreet.privacy.budget import Budget
    from discreet.solvers import Plan

SMALLEST_SHARE = 1e-3  # of the epsilon asked for; less than that trains no useful model
STEPS = 9


def what_fits(request: FitRequest, rows: int, columns: int, classes: int = 2, stored: bool = False) -> str:
    """Say in a few words with which epsilon the ledger of a request would grant it."""
    asked = request.parameters.get("epsilon", 1.0)
    if not isinstance(asked, int | float) or not math.isfinite(asked):
        return "only a finite epsilon can be granted"

    def granted(epsilon: float) -> bool:
        trial = replace(request, parameters={**request.parameters, "epsilon": epsilon})
        return covers(trial, rows, columns, classes, stored)

    largest = _largest(granted, float(asked))
    return "nothing near it would fit" if largest is None else f"--epsilon {largest:g} would fit"


def covers(request: FitRequest, rows: int, columns: int, classes: int = 2, stored: bool = False) -> bool:
    """Whether the ledger of a request would grant it now, whichever task is found for it."""
    from discreet.privacy.ledger import Ledger

    ledger, dataset = Ledger.of(request.parameters["ledger"]), request.parameters["dataset"]
    events = possible_events(request, rows, columns, classes, stored)
    return all(ledger.fits(dataset, event, request.schema.relation, request.unit) for event in events)


def possible_events(request: FitRequest, rows: int, columns: int, classes: int, stored: bool) -> list[Any]:
    """What a fit may cost: one event if the task is known, else one for each task, with the question about it."""
    task = request.known_task
    if task is not None:
        persons = request.unit == "person"
        return [request.model(task).plan(rows, columns, classes, stored=stored, persons=persons).event]
    return OpenFit.of(request, rows, columns, stored).events


@dataclass(frozen=True, eq=False)
class OpenFit:
    """A fit whose task a question decides: the question, and for each answer a model and its plan."""

    question: TaskQuestion
    budget: Budget
    models: dict[Task, Any]
    plans: dict[Task, Plan]

    @classmethod
    def of(cls, request: FitRequest, rows: int, columns: int, stored: bool) -> OpenFit:
        """Plan for a table of this size; both tasks declare the same facts and spend the same budget."""
        tasks: tuple[Task, ...] = ("classification", "regression")
        models = {task: request.model(task) for task in tasks}
        public = public_for(models["regression"], rows, columns, stored=stored, persons=request.unit == "person")
        budget = budget_for(models["regression"], public)
        question = plan_question(budget, public.rows, public.relation, public.unit)
        plans = {
            task: plan_beside(question, budget, public.relation, partial(plan_fit, model, public, 2))
            for task, model in models.items()
        }
        return cls(question, budget, models, plans)

    @property
    def events(self) -> list[Any]:
        """What the question and the model cost together, for each answer."""
        return [accounting.compose([self.question.event, plan.event]) for plan in self.plans.values()]


def _largest(granted: Callable[[float], bool], asked: float) -> float | None:
    """Return the largest epsilon below `asked` that is granted, rounded down to two digits."""
    low, high = math.log(SMALLEST_SHARE * asked), math.log(asked)
    if not granted(math.exp(low)):
        return None
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if granted(math.exp(middle)) else (low, middle)
    epsilon = math.exp(low)
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    rounded = round(math.floor(epsilon / unit) * unit, 12)
    return rounded if granted(rounded) else None
