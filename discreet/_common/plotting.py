"""Matplotlib, which is not needed unless somebody asks for a picture."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """Return `matplotlib.pyplot` for pictures in files, or say what to install."""
    try:
        import matplotlib
    except ImportError:
        raise RuntimeError("a plot needs Matplotlib: pip install matplotlib.") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt
