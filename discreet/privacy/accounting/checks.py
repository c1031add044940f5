"""Checks of single numbers, each with a one-line error that names the argument."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any


def at_least_zero(name: str, value: Any) -> float:
    """Return the value as a float if it is a number >= 0 (infinity allowed)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0.0:
        raise ValueError(f"{name} must be a number that is at least 0, got {value!r}")
    return float(value)


def fraction(name: str, value: Any) -> float:
    """Return the value as a float if it lies between 0 and 1."""
    number = at_least_zero(name, value)
    if number > 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return number


def whole(name: str, value: Any, least: int) -> int:
    """Return the value as an int if it is a whole number >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number that is at least {least}, got {value!r}")
    return int(value)
