"""Train on a table file: read it through a schema, decide the task if nobody did, fit, and add up the cost.

The order is the one of the whole library: everything that can be planned from public facts is planned first,
the ledger grants it, and only then is anything computed from the rows released. What a ledger that refuses would still
grant, the largest epsilon with which the fit could be repeated, is public as well: no row is read for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet import estimators
from discreet._common.digest import digest_of
from discreet._common.exceptions import BudgetExceededError
from discreet.data.loading import load
from discreet.data.people import person_numbers, person_weights
from discreet.data.schema import Schema
from discreet.data.stored_table import StoredTable, machine_memory
from discreet.data.validation import Table, is_neutral
from discreet.estimators.fitting import budget_for, keep_fit, load_for, plan_fit, public_for, run_settings
from discreet.estimators.names import CLASSIFIERS, REGRESSORS
from discreet.estimators.task import (
    SHARE,
    Task,
    TaskQuestion,
    binary_labels,
    code_counts,
    covers_either,
    plan_beside,
    plan_question,
)
from discreet.privacy import accounting
from discreet.privacy.guarantee import Guarantee, guarantee_for
from discreet.privacy.random.generator import generator_from
from discreet.privacy.relation import Relation, Unit
from discreet.privacy.release import reserve
from discreet.solvers.run import run_plan

if TYPE_CHECKING:
    from discreet.data.files import TableFile
    from discreet.privacy.budget import Budget
    from discreet.solvers import Plan

SMALLEST_SHARE = 1e-3  # of the epsilon asked for; less than that trains no useful model
STEPS = 9
MEMORY_SHARE = 0.25  # above it a table stays in its file: solvers make a copy, and others want memory too
BYTES_OF_A_NUMBER = 8
DEFAULTS: dict[Task, str] = {"classification": "LogisticRegression", "regression": "Ridge"}


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


def exceeds_memory(file: TableFile, schema: Schema, relation: Relation, public_n: int | None) -> bool:
    """Whether the table would take more than a quarter of the machine's memory as numbers; a public fact."""
    rows = public_n if relation is Relation.ADD_REMOVE else file.rows
    memory = machine_memory()
    if file.rows is None or rows is None or memory is None:
        return False
    return rows * len(schema.feature_names) * BYTES_OF_A_NUMBER > MEMORY_SHARE * memory


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

    @property
    def unit(self) -> Unit:
        """What the guarantee will be for."""
        return "row" if self.schema.person is None else "person"

    @property
    def has_public_inputs(self) -> bool:
        return any(self.parameters.get(name) is not None for name in ("start", "public_table"))

    def exceeds_memory(self, file: TableFile) -> bool:
        """Whether the rows should stay in the file.

        Never where a person may have several rows: their number is not public then, and they must lie in memory.
        """
        if self.unit == "person":
            return False
        return exceeds_memory(file, self.schema, self.schema.relation, self.parameters.get("public_n"))

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


def fit_table(file: TableFile, request: FitRequest, out_of_core: bool | None = None) -> TableFit:
    """Train a model on a table file.

    `out_of_core` says whether the rows stay in the file and are read block by block; None lets their public number
    decide.

    Guarantee: the model and the choice of the task are differentially private together, as
    `model.guarantee_` states; with a ledger, nothing is released before the ledger has granted its cost.
    """
    if request.schema.target.name is None:
        raise ValueError("the target is missing: name the column to predict, --target NAME.")
    task = request.known_task
    if task is None and request.has_public_inputs:
        raise ValueError("--start and --public-table need --task classification or --task regression.")
    stored = request.exceeds_memory(file) if out_of_core is None else out_of_core
    if stored and request.unit == "person":
        raise ValueError("--person-column needs the rows in memory: leave --out-of-core and --dask out.")
    neutral = is_neutral(request.parameters.get("invalid_rows", "error"))
    if neutral and task is None:
        raise ValueError("--invalid-rows neutral needs --task, or a target that is declared: classes or limits.")
    table = file.stored(request.schema) if stored else file.read(request.schema, True, neutral)
    ids = file.persons(request.schema, neutral)
    groups = {} if ids is None else {"groups": ids}
    try:
        if task is None:
            return _fit_after_question(request, table, file.path.name, groups)
        model = request.model(task).fit(table, None, **groups)
    except BudgetExceededError as error:
        classes = len(request.schema.target.labels or (0, 1))
        units = table.rows if ids is None else len({*ids.tolist()} - {None})
        fitting = what_fits(request, units, len(table.names), classes, stored)
        raise BudgetExceededError(f"{str(error).partition(';')[0]}; {fitting}.") from None
    model.guarantee_ = model.guarantee_.of_table(file.path.name)
    return TableFit(model, request.schema, task)


def _fit_after_question(request: FitRequest, table: Table | StoredTable, name: str, groups: dict[str, Any]) -> TableFit:
    """Ask for the task with a small share of the budget and fit with the rest; one plan is made for each answer."""
    persons = person_numbers(groups["groups"], table.rows) if groups else None
    units = table.rows if persons is None else int(persons.max()) + 1
    fit = OpenFit.of(request, units, len(table.names), isinstance(table, StoredTable))
    question, plans, budget, first = fit.question, fit.plans, fit.budget, fit.models["regression"]
    _check_plans(fit)
    table.check()
    rng = generator_from(first.random_state)
    entries = _reserve_question(fit, first.ledger, first.dataset, seeded=not rng.secure)
    rng.rekey(digest_of("task", question, [plan.digest for plan in plans.values()]))
    weight = None if persons is None else person_weights(persons, None)
    answer = question.decide(table.sum_of_targets(partial(code_counts, weight=weight)), rng)
    if answer == "codes":
        raise _codes_found(budget)
    task: Task = answer
    if task == "classification":
        table = table.map_target(binary_labels)
    model = fit.models[task].set_params(epsilon=plans[task].budget, random_state=rng)
    rows = load_for(model, table, None, groups, load)
    keep_fit(model, run_plan(plans[task], rows.rows, **run_settings(model)), rows)
    model.random_state = first.random_state  # a generator is of no use after the fit
    if not budget.is_infinite:
        model.guarantee_ = _whole_guarantee(question, model.guarantee_, budget)
    model.guarantee_ = model.guarantee_.of_table(name, entries)
    return TableFit(model, request.schema, task, question)


def _codes_found(budget: Budget) -> ValueError:
    """Ask for the labels; the answer was paid for, and the model is not trained."""
    cost = "nothing" if budget.is_infinite else f"{SHARE:.0%} of the budget"
    return ValueError(
        "noisy counts say that the target may hold codes of classes other than 0 and 1, such as 1 and 2, or 9 for "
        f"unknown: list all labels with --classes, or say --task regression. No model was trained; asking cost {cost}."
    )


def _check_plans(fit: OpenFit) -> None:
    """Refuse, from public facts, where the question cannot be answered well."""
    question = fit.question
    if not covers_either([plan.event for plan in fit.plans.values()], fit.budget):
        raise ValueError("this solver costs differently for classification and regression; say which with --task.")
    if not question.reliable:
        raise ValueError(
            f"{question.rows} {question.unit}s are too few to decide between classification and regression at this "
            "budget, and nothing was spent; say which with --task."
        )


def _whole_guarantee(question: TaskQuestion, model: Guarantee, budget: Budget) -> Guarantee:
    """The guarantee of the question and of a model together."""
    event = accounting.compose([question.event, model.event])
    described = model.leaks, model.public_inputs, model.unit
    guarantee = guarantee_for(event, budget, model.relation, question.rows, *described)
    return guarantee.about(model.release)


def _reserve_question(fit: OpenFit, ledger: Any, dataset: str | None, seeded: bool) -> tuple[int, ...]:
    """Book the question; refuse it if the ledger would not grant the model afterwards, whichever it is.

    Returns the entry, if there is a ledger.
    """
    if ledger is None:
        return ()
    from discreet.privacy.ledger import Ledger

    if dataset is None:
        raise ValueError("a ledger needs the name of the data set as well (--dataset).")
    book, public, question = Ledger.of(ledger), fit.plans["regression"].public, fit.question
    for event in fit.events:
        if not book.fits(dataset, event, unit=public.unit):
            raise BudgetExceededError(f"data set {dataset!r} does not cover this fit, and nothing was spent")
    note, relation, unit = "classification or regression", public.relation, public.unit
    reservation = reserve(book, dataset, question.event, note, relation, unit=unit, seeded=seeded)
    reservation.commit()
    return (reservation.id,)


def _task_of(estimator: str) -> Task:
    if estimator in CLASSIFIERS:
        return "classification"
    if estimator in REGRESSORS:
        return "regression"
    raise ValueError(f"estimator must be one of {', '.join(CLASSIFIERS + REGRESSORS)}; got {estimator!r}.")
