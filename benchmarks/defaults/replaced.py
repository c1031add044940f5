"""Puts another value in the place of a constant of the library."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from defaults.register import constants
from defaults.scans import Scan


@contextmanager
def replaced(scan: Scan, value: Any) -> Iterator[dict[str, Any]]:
    """The constant with another value, wherever it was imported; yields the settings that a solver then needs."""
    if scan.field is not None:
        yield {scan.field: value}
        return
    home, name = scan.constant.rsplit(".", 1)
    before = getattr(import_module(f"discreet.{home}"), name)
    holders = _holders(name, scan.constant)
    functions = [f for m in holders for f in vars(m).values() if _has_default(f, before)]
    defaults = [f.__defaults__ for f in functions]
    try:
        for module in holders:
            setattr(module, name, value)
        for function in functions:
            function.__defaults__ = tuple(value if d is before else d for d in function.__defaults__)
        yield {}
    finally:
        for module in holders:
            setattr(module, name, before)
        for function, old in zip(functions, defaults, strict=True):
            function.__defaults__ = old


@cache
def _holders(name: str, constant: str) -> list[Any]:
    """The module of the constant, and those that import it; not those that have another one of the same name."""
    others = {other.rsplit(".", 1)[0] for other in constants() if other.endswith(f".{name}") and other != constant}
    loaded = {m.removeprefix("discreet."): module for m, module in sys.modules.items() if m.startswith("discreet.")}
    return [module for m, module in loaded.items() if name in vars(module) and m not in others]


def _has_default(function: Any, value: Any) -> bool:
    return any(default is value for default in getattr(function, "__defaults__", None) or ())
