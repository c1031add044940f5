"""The one road of every fit of an estimator: load the rows, state their public facts, plan, run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.progress import progress_bar
from discreet._common.threads import thread_count
from discreet.data.invalid_rows import label_target, read_rows, target_numbers
from discreet.data.loading import CheckedTable, Kind, load_array
from discreet.data.public import Public
from discreet.data.public_inputs import PublicModel, PublicTable, check_names
from discreet.data.validation import Table, declared_classes, is_neutral
from discreet.privacy.budget import budget_from
from discreet.privacy.random.generator import generator_from

if TYPE_CHECKING:
    from discreet.inference import Inference
    from discreet.inference.released import InferenceReleases
    from discreet.privacy.budget import Budget
    from discreet.solvers import Plan, Solution

DECLARED = ("relation", "bounds", "y_bounds", "public_n", "rows_per_person")


def load_for(
    model: Any, X: Any, y: Any, metadata: Any, door: Callable[..., CheckedTable] = load_array, **how: Any
) -> CheckedTable:
    """The checked rows of a model's fit, which learns from them its columns and, of a classifier, its labels."""
    kind: Kind = "numbers" if model._regression else "labels"
    given = {"classes": getattr(model, "classes", None), "jobs": thread_count(model.n_jobs)} | how
    given["invalid_rows"] = model.invalid_rows
    table = door(X, y, kind, metadata, estimator=model, **given)
    if table.classes is not None:
        model.classes_ = table.classes
    return table


def readable_for(model: Any, X: Any, y: Any, metadata: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The arguments of a model's fit in which every row can be read, for those who cut tables before they fit."""
    if not is_neutral(model.invalid_rows):
        return X, y, metadata
    target = target_numbers if model._regression else label_target(declared_classes(model.classes))
    table, y, metadata = read_rows(X, y, metadata, target)
    if isinstance(table, Table):  # of names that the models should see
        table = type(X)(table.X, **{"columns" if hasattr(X, "iloc") else "schema": table.names})
    return table, y, metadata


def declarations(model: Any, feature_names: Any = None) -> dict[str, Any]:
    """What the parameters declare about the rows, whose columns have these names or those of the last fit."""
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    declared = {name: getattr(model, name, None) for name in DECLARED}
    declared |= {"neutral": is_neutral(model.invalid_rows), "feature_names": names}
    return declared | public_inputs_of(model)


def public_for(model: Any, rows: int, columns: int, feature_names: Any = None, **shape: Any) -> Public:
    """The public facts of a table of this size; `shape` says of it what `Public.of` takes beside declarations."""
    return Public.of(rows, columns, **shape, **declarations(model, feature_names))


def budget_for(model: Any, public: Public) -> Budget:
    """The budget of a fit of a table with these public facts."""
    return budget_from(model.epsilon, model.delta, public.rows)


def plan_fit(model: Any, public: Public, classes: int = 2, budget: Budget | None = None) -> Plan:
    """The plan of a fit of a table with these public facts, for the model's own budget unless another is given."""
    from discreet.solvers.run import make_plan

    granted = budget_for(model, public) if budget is None else budget
    return make_plan(solver_of(model), model._problem(classes), public, granted)


def solver_of(model: Any) -> Any:
    """The solver that the parameters ask for: one whose releases give intervals, where these are wanted."""
    if model.inference is False:
        return model.solver
    if model.inference not in (True, "robust"):
        raise ValueError(f"inference must be False, True or 'robust'; got {model.inference!r}.")
    if model.solver not in ("auto", "newton"):
        raise ValueError("inference has a plan of its own: leave solver='auto', or inference=False.")
    from discreet.solvers.newton.inference import NewtonInference

    return NewtonInference(robust=model.inference == "robust")


def why_no_intervals(model: Any, public: Public, classes: int = 2) -> str | None:
    """Why `inference=True` would be refused for a table with these public facts; None if it would not."""
    from discreet.solvers.newton.inference import NewtonInference

    return NewtonInference().why_refused(model._problem(classes), public, budget_for(model, public))


def run_settings(model: Any) -> dict[str, Any]:
    """How `run_plan` runs a plan of a model: with which noise, where it is booked, and what people see of it."""
    note = type(model).__name__
    settings = {"rng": generator_from(model.random_state), "ledger": model.ledger, "dataset": model.dataset}
    return settings | {"note": note, "progress": progress_bar(note, True) if model.verbose else nullcontext()}


def keep_fit(model: Any, solution: Solution, table: CheckedTable) -> None:
    """Keep in the model what was released; a stream that it had begun is over."""
    model.__dict__.pop("stream_", None)
    model.weighted_ = table.weighted
    model._keep(solution)


def inference_of(model: Any, released: InferenceReleases) -> Inference:
    """The estimates with standard errors of a fit that released what they are made of; no row is read."""
    from discreet.inference.results import infer

    solution = model.solution_
    names = getattr(model, "feature_names_in_", None)
    shown = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
    robust = bool(solution.plan.settings.robust)
    return infer(released, solution.plan.problem, solution.scaling, solution.plan.public.rows, shown, robust)


def public_inputs_of(model: Any) -> dict[str, Any]:
    """What the parameters `start` and `public_table` say, as arguments of `Public.of`."""
    start, table = model.start, model.public_table
    if start is not None and not isinstance(start, PublicModel):
        raise ValueError(
            f"start must be a PublicModel, such as PublicModel.of(fitted_model); got {type(start).__name__}."
        )
    if table is not None and not isinstance(table, PublicTable):
        raise ValueError(f"public_table must be a PublicTable(X, y); got {type(table).__name__}.")
    if model._regression:
        if start is not None and start.classes is not None:
            raise ValueError("start is a classifier, but this estimator is a regressor.")
        if table is not None and table.y is not None and table.y.dtype.kind not in "fiu":
            raise ValueError("the target of the public table must be numbers.")
        return {"start": start, "table": table}
    classes = _classes(model, table)
    own = None if start is None else start.classes
    if own is not None and classes is not None and not np.array_equal(np.asarray(own), np.asarray(classes)):
        raise ValueError(
            f"start was fitted for classes {list(own)}, but this model has {np.asarray(classes).tolist()}."
        )
    return {"start": start, "table": table if table is None else table.coded(classes)}


def check_input_names(model: Any) -> None:
    """Refuse public inputs for columns of other names than those that `fit` has seen."""
    names = getattr(model, "feature_names_in_", None)
    for what in ("start", "public_table"):
        given = getattr(model, what)
        if given is not None:
            check_names(what, getattr(given, "feature_names", None), names)


def _classes(model: Any, table: PublicTable | None) -> Any:
    """The labels: as declared, as seen in `fit`, or those of the public table, where a plan is asked for before."""
    if model.classes is not None:
        return declared_classes(model.classes)
    seen = getattr(model, "classes_", None)
    if seen is not None or table is None or table.y is None:
        return seen
    return np.unique(table.y)
