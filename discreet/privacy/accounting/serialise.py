"""Events as JSON-safe dictionaries and back; only known types are built, never one named by the data."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from discreet._common.codec import Unbounded, checked, plain

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# What each field of an event holds; the events inside are read one by one.
_NUMBERS = (
    *("noise_multiplier", "epsilon", "noise_parameter", "sampling_probability", "standard_deviation"),
    *("shift", "eta", "gamma"),
)
_COUNTS = ("tails", "num_buckets", "count", "source_dataset_size", "sample_size")
_LISTS = ("sensitivities", "sampling_probs")
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(_NUMBERS, Unbounded),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_LISTS, list[Unbounded]),
    "event": Any,
    "events": list[Any],
}
_DEEPEST = 50


def event_to_dict(event: DpEvent) -> dict[str, Any]:
    """Return an event as a dictionary that JSON can hold; floats keep every digit, infinity becomes "inf"."""
    name = type(event).__name__
    if _types().get(name) is not type(event):
        raise ValueError(f"cannot write the event {event!r}; only the events that discreet accounts for are known")
    content: dict[str, Any] = {"type": name}
    for field in _fields_of(name):
        value = getattr(event, field)
        if field == "events":
            content[field] = list(map(event_to_dict, value))
        else:
            content[field] = event_to_dict(value) if field == "event" else plain(value)
    return content


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


def _read_event(content: Any, depth: int) -> DpEvent:
    if not isinstance(content, dict) or depth > _DEEPEST:
        raise ValueError(f"an event must be a dictionary, nested at most {_DEEPEST} deep, got {type(content).__name__}")
    name = content.get("type")
    if not isinstance(name, str) or name not in _types():
        raise ValueError(f"unknown event type {name!r}; known are {', '.join(sorted(_types()))}")
    hints = {field: _FIELDS[field] for field in _fields_of(name)}
    found = checked(hints, tuple(hints), {key: value for key, value in content.items() if key != "type"}, f"a {name}")
    if "event" in found:
        found["event"] = _read_event(found["event"], depth + 1)
    if "events" in found:
        found["events"] = [_read_event(part, depth + 1) for part in found["events"]]
    return _types()[name](**found)
