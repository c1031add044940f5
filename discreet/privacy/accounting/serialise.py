"""Events as JSON-safe dictionaries and back; only known types are built, never one named by the data."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.checks import LARGEST

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# What each field of an event holds.
_FIELDS = {
    "noise_multiplier": "number",
    "epsilon": "number",
    "noise_parameter": "number",
    "sampling_probability": "number",
    "standard_deviation": "number",
    "shift": "number",
    "eta": "number",
    "gamma": "number",
    "tails": "whole",
    "num_buckets": "whole",
    "count": "whole",
    "source_dataset_size": "whole",
    "sample_size": "whole",
    "event": "event",
    "events": "events",
    "sensitivities": "numbers",
    "sampling_probs": "numbers",
}
_DEEPEST = 50


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary that JSON can hold; floats keep every digit, infinity becomes "inf"."""
    name = type(event).__name__
    if _types().get(name) is not type(event):
        raise ValueError(f"cannot write the event {event!r}; only the events that discreet accounts for are known")
    return {"type": name} | {field: _write(getattr(event, field)) for field in _fields_of(name)}


def event_from_dict(fields: dict[str, Any]) -> DpEvent:
    """Return the event that `event_to_dict` wrote; refuse unknown types, missing fields and surplus ones."""
    return _read_event(fields, 0)


@cache
def _types() -> dict[str, Any]:
    from dp_accounting import dp_event as dp

    from discreet.privacy.accounting.custom_events import (
        BestOfTrialsDpEvent,
        BoundedRangeDpEvent,
        ObjectiveDpEvent,
        PureDpEvent,
    )

    known = [
        dp.NoOpDpEvent,
        dp.NonPrivateDpEvent,
        dp.GaussianDpEvent,
        dp.LaplaceDpEvent,
        BoundedRangeDpEvent,
        PureDpEvent,
        ObjectiveDpEvent,
        BestOfTrialsDpEvent,
        dp.PoissonSampledDpEvent,
        dp.SampledWithoutReplacementDpEvent,
        dp.RandomizedResponseDpEvent,
        dp.MixtureOfGaussiansDpEvent,
        dp.SelfComposedDpEvent,
        dp.ComposedDpEvent,
    ]
    return {kind.__name__: kind for kind in known}


def _fields_of(name: str) -> list[str]:
    import attr

    return [field.name for field in attr.fields(_types()[name])]


def _write(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_write(item) for item in value]
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | np.floating):
        return "inf" if value == math.inf else float(value)
    return event_to_dict(value)


def _read_event(fields: Any, depth: int) -> DpEvent:
    if not isinstance(fields, dict) or depth > _DEEPEST:
        raise ValueError(f"an event must be a dictionary, nested at most {_DEEPEST} deep, got {type(fields).__name__}")
    name = fields.get("type")
    if not isinstance(name, str) or name not in _types():
        raise ValueError(f"unknown event type {name!r}; known are {', '.join(sorted(_types()))}")
    expected = _fields_of(name)
    if set(fields) != {"type", *expected}:
        raise ValueError(f"a {name} needs the fields {expected}, got {sorted(set(fields) - {'type'})}")
    return _types()[name](**{field: _read(_FIELDS[field], field, fields[field], depth) for field in expected})


def _read(kind: str, field: str, value: Any, depth: int) -> Any:
    if kind == "event":
        return _read_event(value, depth + 1)
    if kind in ("events", "numbers"):
        if not isinstance(value, list):
            raise ValueError(f"{field} must be a list, got {value!r}")
        return [_read(kind[:-1], field, item, depth) for item in value]
    if kind == "number" and value == "inf":
        return math.inf
    allowed = int if kind == "whole" else int | float
    known = isinstance(value, allowed) and not isinstance(value, bool)
    if not known or (isinstance(value, int) and abs(value) > LARGEST) or math.isnan(value):
        raise ValueError(f"{field} must be a {'whole ' if kind == 'whole' else ''}number, got {value!r}")
    return value if kind == "whole" else float(value)
