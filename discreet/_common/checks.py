"""Checks of arguments: each refuses a value with a message that names the argument and says what is allowed."""

from __future__ import annotations

import numpy as np

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


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
