"""Figures in the papers' layout: curves of the mean with bands from the least to the largest of the runs."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

COLOURS = 200  # of a picture, to keep it small
LEAST = 1e-5  # errors below it are drawn there


@contextmanager
def figure(path: Path, rows: int, columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """Axes to draw on, in an array; the picture is written at the end. `size` is that of one panel, in inches."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    drawn, axes = plt.subplots(
        rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False, layout="constrained"
    )
    yield axes
    for axis in axes.flat:
        if not axis.has_data():
            axis.set_axis_off()
    named = {name: line for axis in axes.flat for line, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    if named:
        below = min(4, len(named))
        drawn.legend(named.values(), named, loc="outside lower center", ncols=below, fontsize=8, frameon=False)
    content = io.BytesIO()
    drawn.savefig(content, dpi=90)
    plt.close(drawn)
    Image.open(content).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def curve(axis: Any, x: Sequence[float], band: Mapping[str, Sequence[float]], style: Mapping[str, Any]) -> None:
    """The mean against x, between the least and the largest."""
    low, mean, high = (np.maximum(band[name], LEAST) for name in ("min", "mean", "max"))
    every = max(1, len(x) // 6)
    axis.plot(x, mean, lw=1.4, ms=4, markevery=every, **style)
    axis.fill_between(x, low, high, color=style.get("color"), alpha=0.15, lw=0)


def level(axis: Any, errors: Sequence[float], style: Mapping[str, Any]) -> None:
    """The same for a method without a way: a line across the panel."""
    low, mean, high = (max(float(of(errors)), LEAST) for of in (np.min, np.mean, np.max))
    axis.axhline(mean, lw=1.2, **{name: value for name, value in style.items() if name != "marker"})
    axis.axhspan(low, high, color=style.get("color"), alpha=0.08, lw=0)


def band_of(values: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    """Least, mean and largest of the runs, at each place."""
    return {name: [float(getattr(np, name)(runs)) for runs in values] for name in ("min", "mean", "max")}
