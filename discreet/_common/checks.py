"""Checks of arguments: each refuses a value with a message that names the argument and says what is allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = float(np.finfo(np.float64).max)
SMALLEST_THRESHOLD, LARGEST_THRESHOLD = 1e-100, 1e100


def positive(name: str, value: float | None, whole: bool = False) -> None:
    """Refuse a setting that is not a positive (whole) number; None means "decide for me"."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0 or not np.isfinite(value):
        raise ValueError(f"{name} must be a positive number or None; got {value!r}.")
    if whole and int(value) != value:
        raise ValueError(f"{name} must be a whole number; got {value!r}.")


def check_threshold(name: str, value: float | None) -> None:
    """Refuse a threshold with which sums or noise could overflow or vanish; None means "decide for me"."""
    positive(name, value)
    if value is not None and not SMALLEST_THRESHOLD <= value <= LARGEST_THRESHOLD:
        raise ValueError(f"{name} must lie between {SMALLEST_THRESHOLD:g} and {LARGEST_THRESHOLD:g}; got {value!r}.")


def number_in(name: str, value: object, low: float, high: float = LARGEST, above: bool = False) -> float:
    """Return the value as a float if it is a number from `low` (or `above` it) to `high`; both must be finite."""
    inside = isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high
    if not inside or (above and value == low):
        least = f"{'above' if above else 'at least'} {low:g}"
        most = "finite" if high == LARGEST else f"at most {high:g}"
        raise ValueError(f"{name} must be a number, {least} and {most}, got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def real_number(name: str, value: Any) -> float:
    """Return the value as a float if it is a number (infinity allowed)."""
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(float(value)):
        raise ValueError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    return float(value)


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
