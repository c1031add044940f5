"""The parameters of an estimator as JSON values: all that a file can hold comes back equal, the rest is refused.

Solvers and constraints of discreet are written by name with their settings. Nothing is left out in silence: a model
that came back with another constraint or solver would be another model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from discreet._common.codec import by_name, from_name, numbers, plain, tuples
from discreet.data.public_inputs import PublicModel
from discreet.privacy.budget import Budget
from discreet.problem.constraints import CONSTRAINTS, Constraint
from discreet.solvers import SOLVERS, Solver

# Not written: a seed removes the noise, the address of a ledger may hold a password, and a public table may be large;
# that there was one is told by the guarantee.
NEVER_WRITTEN = ("random_state", "ledger", "dataset", "verbose", "public_table")


def _named(kind: type, known: Mapping[str, Any], what: str) -> tuple[type, Any, Any]:
    """How an object of discreet is written and read: its name, and its settings."""
    return kind, partial(by_name, known=known, what=what), partial(from_name, known=known, what=what)


# What is more than numbers and texts: its class, and how its settings are written and read.
_OBJECTS: dict[str, tuple[type, Any, Any]] = {
    "budget": (Budget, Budget.to_dict, Budget.from_dict),
    "public_model": (PublicModel, PublicModel.to_dict, lambda settings: PublicModel(**settings)),
    "solver": _named(Solver, SOLVERS, "solver"),
    "constraint": _named(Constraint, CONSTRAINTS, "constraint"),
}


def write_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON values; one that a file cannot hold is a ValueError."""
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in NEVER_WRITTEN}
    return {name: _write(name, value) for name, value in given.items()}


def read_parameters(content: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """What `write_parameters` wrote for an estimator of this kind; anything else is a ValueError."""
    unknown = sorted(set(content) - ({field.name for field in fields(kind)} - set(NEVER_WRITTEN)))
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    # A class may be called "inf"; everywhere else that text is a number.
    return {name: value if name == "classes" else _read(value) for name, value in content.items()}


def _write(name: str, value: Any) -> Any:
    try:
        content = json.loads(json.dumps(_as_json(name, value), allow_nan=False))
        # What is not a plain value must come back as what it was; bounds by name do not, as lists become tuples.
        if isinstance(content, dict) and name != "bounds" and _read(content) != value:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} = {' '.join(repr(value).split())} cannot be written to a model file, and a model without it would "
            f"be another one; pickle the model, or set_params({name}=...) to a value that numbers and texts can tell."
        ) from None
    return content


def _as_json(name: str, value: Any) -> Any:
    if name == "bounds" and isinstance(value, Mapping):
        if not all(isinstance(column, str) for column in value):
            raise ValueError("bounds by name need names that are texts.")
        return {"columns": {column: _open_as_none(plain(pair)) for column, pair in value.items()}}
    if name == "bounds":
        return _open_as_none(plain(value))
    if name == "class_weight" and isinstance(value, Mapping):
        return {"class_weight": [[plain(label), plain(weight)] for label, weight in value.items()]}
    written = [{what: write(value)} for what, (kind, write, _) in _OBJECTS.items() if isinstance(value, kind)]
    return written[0] if written else plain(value)


def _open_as_none(value: Any) -> Any:
    """Bounds with NaN, which JSON does not have, written as None, which means the same."""
    if isinstance(value, list):
        return [_open_as_none(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _read(content: Any) -> Any:
    if not isinstance(content, dict):
        return numbers(content)
    what, settings = next(iter(content.items())) if len(content) == 1 else ("", {})
    if what == "class_weight":
        return dict(settings)
    if what == "columns" and isinstance(settings, dict):
        return {column: tuples(numbers(pair)) for column, pair in settings.items()}
    if what not in _OBJECTS:
        raise ValueError(
            f"a parameter is no budget, solver, constraint, public model or bounds by name: {sorted(content)}."
        )
    return _OBJECTS[what][2](settings)
