"""Tables of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value: float | None) -> str:
    """Three digits; an empty field for None."""
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) >= 1e-3 or value == 0.0 else f"{value:.1e}"


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation."""
    return f"{number(float(np.mean(values)))} ± {np.std(values):.0e}"


def beside(ours: str, printed: Any) -> str:
    """Our number with the printed one behind it."""
    return ours if printed is None else f"{ours} ({printed if isinstance(printed, str) else number(printed)})"
