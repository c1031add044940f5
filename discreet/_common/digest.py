"""A digest of a plan and of what it is made of: equal for equal contents, in every process and on every machine."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import numbers
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

UNORDERED = {"mapping", "set"}


def digest_of(*parts: Any) -> bytes:
    """SHA-256 of the contents of plans, mechanisms, settings, arrays and plain values.

    Equal numbers have equal digests whatever their type, and so have lists and tuples of equal values. An object that
    is not a dataclass counts as its class and its attributes, without cached properties; a function as its name. Fields
    of dataclasses with the metadata {"digest": "if given"} do not count while they are None. Names of classes of this
    package do not depend on where they are: `digest_names.txt` keeps those of old classes, and a class that has the
    name of another one states a `digest_name`. An object with a method `digested` says itself under which name and by
    which parts it counts.
    """
    return hashlib.sha256(_encoded(parts)).digest()


def _encoded(value: Any) -> bytes:
    """A text that no other value shares: the length of each part comes before it."""
    tag, texts, values = _parts(value)
    parts = [*texts, *map(_encoded, values)]
    if tag in UNORDERED:
        parts.sort()
    return tag.encode() + b"(" + b"".join([b"%d:%s" % (len(part), part) for part in parts]) + b")"


def _parts(value: Any) -> tuple[str, list[bytes], Iterable[Any]]:
    """What a value is made of: a tag, texts, and other values."""
    parts = next((parts for kind, parts in _KINDS if isinstance(value, kind)), _object)
    return parts(value)


def _object(value: Any) -> Any:
    if hasattr(value, "__qualname__"):
        return "name", [_name(value)], ()
    if hasattr(type(value), "digested"):
        name, parts = value.digested()
        return "object", [_full_name(name)], [parts]
    return "object", [_name(type(value))], [_attributes(value)]


def _number(value: Any) -> Any:
    if isinstance(value, numbers.Integral):
        return "number", [str(int(value)).encode()], ()
    number = float(value)
    return "number", [(str(int(number)) if number.is_integer() else number.hex()).encode()], ()


def _array(value: Any) -> Any:
    if value.dtype == object:
        return _parts(value.tolist())
    return "array", [value.dtype.str.encode(), repr(value.shape).encode(), value.tobytes()], ()


# The first that fits: a text or a number may be a member of an enumeration as well.
_KINDS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (bool | np.bool_ | None, lambda value: ("constant", [str(value).encode()], ())),
    (numbers.Real, _number),
    (str, lambda value: ("text", [value.encode()], ())),
    (bytes, lambda value: ("bytes", [value], ())),
    (enum.Enum, lambda value: ("enum", [_name(type(value)), value.name.encode()], ())),
    (np.ndarray, _array),
    (Mapping, lambda value: ("mapping", [], value.items())),
    (Set, lambda value: ("set", [], value)),
    (Iterable, lambda value: ("sequence", [], value)),
)


def _attributes(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {field.name: (getattr(value, field.name), field.metadata) for field in dataclasses.fields(value)}
        return {name: part for name, (part, notes) in fields.items() if part is not None or "digest" not in notes}
    state = value.__getstate__()
    if not isinstance(state, dict):
        return state
    return {
        name: part for name, part in state.items() if not isinstance(getattr(type(value), name, None), cached_property)
    }


def _name(kind: Any) -> bytes:
    """A name that stays when a class of this package moves to another module."""
    module, name = str(kind.__module__), kind.__qualname__
    if module.partition(".")[0] == "discreet":
        own = vars(kind).get("digest_name") if isinstance(kind, type) else None
        return own.encode() if own else _full_name(name)
    return f"{module}.{name}".encode()


def _full_name(name: str) -> bytes:
    return f"{_first_modules().get(name, 'discreet')}.{name}".encode()


@cache
def _first_modules() -> dict[str, str]:
    """The module in which each class was when its name first entered a digest."""
    lines = Path(__file__).with_name("digest_names.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(": ") for line in lines if not line.startswith("#"))
    return {name: module for module, names in pairs for name in names.split()}
