"""Train on a table file: read it through a schema, decide the task if nobody did, fit, and add up the cost.

The order is the one of the whole library: everything that can be planned from public facts is planned first,
the ledger grants it, and only then is anything computed from the rows released.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import estimators
from discreet._common.exceptions import BudgetExceededError, UtilityWarning
from discreet.data.files import Table, read_table
from discreet.data.public import public_rows
from discreet.data.schema import Schema
from discreet.estimators.model_file import CLASSIFIERS, REGRESSORS
from discreet.estimators.task import Task, TaskQuestion, binary_labels, budget_beside, covers_either, plan_question
from discreet.privacy import accounting
from discreet.privacy.budget import budget_from
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.random.generator import generator_from

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Ledger

DEFAULTS: dict[Task, str] = {"classification": "LogisticRegression", "regression": "Ridge"}


@dataclass(frozen=True)
class FitRequest:
    """What to train: the schema of the table (with the name of the target) and the estimator's parameters.

    `task` and `estimator` may be None: the schema's target decides, and if it leaves the task open, a noisy
    count does. `parameters` go to the estimator as they are.
    """

    schema: Schema
    task: Task | None = None
    estimator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known_task(self) -> Task | None:
        """The task, if the request or the declarations in the schema say it; they must agree."""
        said: list[tuple[str, Task]] = []
        if self.task is not None:
            said.append((f"the task {self.task!r}", self.task))
        if self.estimator is not None:
            said.append((f"the estimator {self.estimator!r}", _task_of(self.estimator)))
        if self.schema.target.task == "classification":
            said.append(("a target with classes", "classification"))
        elif self.schema.target.task == "regression":
            said.append(("a target with bounds", "regression"))
        if len({task for _, task in said}) > 1:
            raise ValueError(f"{said[0][0]} and {said[-1][0]} do not go together.")
        return said[0][1] if said else None

    def model(self, task: Task) -> Any:
        """An estimator for the task, not fitted; a classification of undeclared numbers has classes 0 and 1."""
        name = self.estimator or DEFAULTS[task]
        target = self.schema.target
        declared: dict[str, Any] = {"bounds": self.schema.bounds, "relation": self.schema.relation}
        if task == "classification":
            declared["classes"] = target.labels or [0, 1]
        elif target.low is not None:
            declared["y_bounds"] = (target.low, target.high)
        kind = getattr(estimators, name)
        unknown = sorted(set(self.parameters) - set(kind.__dataclass_fields__))
        if unknown:
            raise ValueError(f"{name} has no parameter {unknown[0]!r}.")
        return kind(**declared, **self.parameters)


@dataclass(frozen=True)
class TableFit:
    """A model trained on a file, and the question that decided its task (None if it was known)."""

    model: Any
    schema: Schema
    task: Task
    question: TaskQuestion | None = None


def fit_table(path: str | Path, request: FitRequest) -> TableFit:
    """Train a model on a table file.

    Guarantee: the model and the choice of the task are differentially private together, as
    `model.guarantee_` states; with a ledger, nothing is released before the ledger has granted its cost.
    """
    if request.schema.target.name is None:
        raise ValueError("the target is missing: name the column to predict, --target NAME.")
    task = request.known_task
    table = read_table(path, request.schema, target=True)
    if task is None:
        return _fit_after_question(request, table)
    model = request.model(task).fit(table.to_pandas(), table.y)
    return TableFit(model, request.schema, task)


def _fit_after_question(request: FitRequest, table: Table) -> TableFit:
    """Ask for the task with a small share of the budget and fit with the rest."""
    relation = request.schema.relation
    models: dict[Task, Any] = {task: request.model(task) for task in DEFAULTS}
    first = models["regression"]
    rows = public_rows(relation, table.rows, first.public_n)
    budget = budget_from(first.epsilon, first.delta, rows)
    question = plan_question(budget, rows)
    rng = generator_from(first.random_state)
    for model in models.values():
        rest = budget_beside(question, budget, relation, _planned_event(model, table))
        model.set_params(epsilon=rest, random_state=rng)
    _check_plans(question, [model.plan(*table.X.shape).event for model in models.values()], budget)
    _reserve_question(question, list(models.values()), table)
    task = question.ask(table.y, rng)
    model = models[task].fit(table.to_pandas(), binary_labels(table.y) if task == "classification" else table.y)
    if not budget.is_infinite:
        model.guarantee_ = _whole_guarantee(question, model, budget)
    return TableFit(model, request.schema, task, question)


def _check_plans(question: TaskQuestion, events: list[Any], budget: Budget) -> None:
    """Refuse or warn, from public facts, where the question cannot be answered well."""
    if not covers_either(events, budget):
        raise ValueError("this solver costs differently for classification and regression; say which with --task.")
    if not question.reliable:
        warnings.warn(
            f"{question.rows} rows are too few to decide reliably between classification and regression at this "
            "budget; say which with --task.",
            UtilityWarning,
            stacklevel=4,
        )


def _planned_event(model: Any, table: Table) -> Any:
    return lambda budget: model.set_params(epsilon=budget).plan(*table.X.shape).event


def _whole_guarantee(question: TaskQuestion, model: Any, budget: Budget) -> Guarantee:
    event = accounting.compose([question.event, model.plan_.event])
    public = model.plan_.public
    return guarantee_for(event, budget, public.relation, public.rows)


def _reserve_question(question: TaskQuestion, models: list[Any], table: Table) -> None:
    """Book the question; refuse it if the ledger would not grant the model afterwards, whichever it is."""
    first = models[0]
    if first.ledger is None:
        return
    from discreet.privacy.ledger import Ledger

    if first.dataset is None:
        raise ValueError("a ledger needs the name of the data set as well (--dataset).")
    book: Ledger = Ledger.of(first.ledger)
    for model in models:
        event = accounting.compose([question.event, model.plan(*table.X.shape).event])
        if not book.fits(first.dataset, event):
            allowance = book.allowance(first.dataset)
            raise BudgetExceededError(
                f"data set {first.dataset!r} does not cover this fit: epsilon {book.remaining(first.dataset):.6g} "
                f"of {allowance.epsilon:.6g} remains at delta {allowance.delta:.6g}; nothing was spent."
            )
    relation = first.relation
    book.reserve(first.dataset, question.event, "classification or regression", relation=relation).commit()


def _task_of(estimator: str) -> Task:
    if estimator in CLASSIFIERS:
        return "classification"
    if estimator in REGRESSORS:
        return "regression"
    raise ValueError(f"estimator must be one of {', '.join(CLASSIFIERS + REGRESSORS)}; got {estimator!r}.")
