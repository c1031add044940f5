"""Pictures in files, drawn by Matplotlib: the extra `plots`. Those of a report are SVG of our own and need no extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def pyplot() -> Any:
    """Return `matplotlib.pyplot` for pictures in files, or say what to install."""
    try:
        import matplotlib
    except ImportError:
        raise RuntimeError("a plot needs Matplotlib: pip install 'discreet[plots]'.") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt


@contextmanager
def picture(path: str | Path, *shape: int, **layout: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, which are written to the file when all is drawn."""
    plt = pyplot()
    figure, axes = plt.subplots(*shape, **layout)
    try:
        yield figure, axes
        figure.savefig(path, dpi=120)
    finally:
        plt.close(figure)
