"""Comparing texts whose numbers may differ in their last digits."""

from __future__ import annotations

import re

CLOSE = 1e-9  # processors differ in the last digits of sums
NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")


def same_numbers(text: str, other: str) -> bool:
    """Whether two texts differ in the last digits of their numbers at most."""
    if text == other:
        return True
    here, there = NUMBER.split(text), NUMBER.split(other)
    scale = max((abs(float(each)) for each in there[1::2]), default=0.0)
    same = len(here) == len(there) and here[::2] == there[::2]
    return same and all(abs(float(a) - float(b)) <= CLOSE * scale for a, b in zip(here[1::2], there[1::2], strict=True))
