"""The parameters of an estimator as JSON values: all that a file can hold comes back equal, the rest is refused.

Solvers and constraints of discreet are written by name with their settings. Nothing is left out in silence: a model
that came back with another constraint or solver would be another model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from discreet.data.public_inputs import PublicModel
from discreet.privacy.budget import Budget
from discreet.problem import constraints
from discreet.solvers import SOLVERS, Solver

# Not written: a seed removes the noise, the address of a ledger may hold a password, and a public table may be large;
# that there was one is told by the guarantee.
NEVER_WRITTEN = ("random_state", "ledger", "dataset", "verbose", "public_table")
CONSTRAINTS: dict[str, type] = {
    kind.name: kind for kind in (constraints.L1Ball, constraints.L2Ball, constraints.Box, constraints.Simplex)
}


def write_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON values; one that a file cannot hold is a ValueError."""
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in NEVER_WRITTEN}
    return {name: _write(name, value) for name, value in given.items()}


def read_parameters(content: Any, kind: type) -> dict[str, Any]:
    """What `write_parameters` wrote for an estimator of this kind; anything else is a ValueError."""
    known = {field.name for field in fields(kind)} - set(NEVER_WRITTEN)
    unknown = sorted(set(content) - known)
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    # A class may be called "inf"; everywhere else that text is a number.
    return {name: value if name == "classes" else _read(value) for name, value in content.items()}


def plain(value: Any) -> Any:
    """NumPy values as lists and numbers, infinities as the texts "inf" and "-inf"."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def open_as_none(value: Any) -> Any:
    """Bounds with NaN, which JSON does not have, written as None, which means the same."""
    value = plain(value)
    if isinstance(value, list):
        return [open_as_none(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def numbers(value: Any) -> Any:
    """Undo `plain`."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def _write(name: str, value: Any) -> Any:
    is_bounds = name == "bounds"
    written = _as_object(value) if not (is_bounds and isinstance(value, Mapping)) else _by_name(value)
    if name == "class_weight" and isinstance(value, Mapping):
        written = {"class_weight": [[plain(label), plain(weight)] for label, weight in value.items()]}
    try:
        text = json.dumps(
            (open_as_none if is_bounds else plain)(value) if written is None else written, allow_nan=False
        )
    except (TypeError, ValueError):
        text = ""
    content = json.loads(text) if text else None
    # What is not a plain value must come back as what it was.
    if not text or (written is not None and not is_bounds and _read(content) != value):
        raise ValueError(
            f"{name} = {' '.join(repr(value).split())} cannot be written to a model file, and a model without it would "
            f"be another one; pickle the model, or set_params({name}=...) to a value that numbers and texts can tell."
        )
    return content


def _by_name(bounds: Mapping[Any, Any]) -> dict[str, Any]:
    """Bounds by name of column."""
    if not all(isinstance(column, str) for column in bounds):
        raise ValueError("bounds by name need names that are texts.")
    return {"columns": {column: open_as_none(pair) for column, pair in bounds.items()}}


def _as_object(value: Any) -> dict[str, Any] | None:
    """A budget, a public model, a solver or a constraint of discreet, with its settings; None for a plain value."""
    if isinstance(value, Budget):
        return {"budget": value.to_dict()}
    if isinstance(value, PublicModel):
        return {"public_model": value.to_dict()}
    for what, base in (("solver", Solver), ("constraint", constraints.Constraint)):
        if isinstance(value, base):
            own = _registry(what).get(value.name) is type(value)  # a class of another package is not
            return {what: _settings(value) if own else value}
    return None


def _settings(value: Any) -> dict[str, Any]:
    return {"name": value.name} | {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def _registry(what: str) -> dict[str, Any]:
    return SOLVERS if what == "solver" else CONSTRAINTS


def _read(content: Any) -> Any:
    if not isinstance(content, dict):
        return numbers(content)
    what, settings = next(iter(content.items())) if len(content) == 1 else ("", {})
    if what == "budget":
        return Budget.from_dict(settings)
    if what == "public_model":
        return PublicModel(**settings)
    if what == "class_weight":
        return dict(settings)
    if what == "columns" and isinstance(settings, dict):
        return {column: _tuples(numbers(pair)) for column, pair in settings.items()}
    if what not in ("solver", "constraint"):
        raise ValueError(
            f"a parameter is no budget, solver, constraint, public model or bounds by name: {sorted(content)}."
        )
    registry, name = _registry(what), settings["name"]
    if not isinstance(name, str) or name not in registry:
        raise ValueError(f"unknown {what} {name!r}.")
    return registry[name](**{key: _tuples(numbers(value)) for key, value in settings.items() if key != "name"})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
