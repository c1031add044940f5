"""Who called: the frames above, and warnings that point at the line of the user's code that led to them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType

# Packages between a line of the user's code and a warning: a warning points above them.
BETWEEN = {"discreet", "sklearn", "joblib", "dask", "distributed", "contextlib", "concurrent", "threading"}


def callers(depth: int = 1) -> Iterator[FrameType]:
    """The frames of the callers, the nearest first; `depth` 1 begins with who called the caller of this."""
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def module_of(frame: FrameType) -> str:
    """The dotted name of the module whose code a frame runs."""
    return str(frame.f_globals.get("__name__", ""))


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line outside discreet, and outside what it calls and is called by, from which this was reached."""
    level = 1
    for depth, frame in enumerate(callers(0), start=1):
        level = depth
        if module_of(frame).partition(".")[0] not in BETWEEN:
            break
    warnings.warn(message, category, stacklevel=level)
