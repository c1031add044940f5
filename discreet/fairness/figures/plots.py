"""Pictures of fairness certificates: bounds and a band of private models, against rows or against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet._common.plotting import picture

Interval = tuple[float, float]

# Line style and colour of each bound, by its name; solid lines need neither of the two models to be compared.
STYLES = {
    "printed": ("-", "#7f7f7f", "bound as printed in the thesis"),
    "tail": ("-", "#1f77b4", "our bound, distance alone"),
    "best": ("-", "#d62728", "our bound, best form"),
    "gradient": ("-", "#9467bd", "bound from the gradients (owner only)"),
    "distance known": ("--", "#1f77b4", "distance known"),
    "both known": (":", "#1f77b4", "both models known"),
}
BAND, REFERENCE = "#2ca02c", "black"
COLUMNS = 3  # panels beside each other


@dataclass(frozen=True)
class Point:
    """What is drawn at one number of rows, or at one epsilon.

    Attributes
    ----------
    at : float
        The number of rows, or epsilon.
    value : float
        The value of the reference model.
    band : tuple of two floats, or None
        Smallest and largest value among private models.
    bounds : mapping of str to tuple of two floats
        For each form of the bound, the interval that it certifies.
    """

    at: float
    value: float
    band: Interval | None = None
    bounds: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """One panel: a quantity (a notion of fairness, or accuracy) along an axis."""

    title: str
    axis: str  # what `Point.at` is: "rows" or "epsilon"
    points: Sequence[Point]
    reference: str = "without noise"  # what the black line is


def plot_curves(
    curves: Sequence[Curve], path: str | Path, heading: str | None = None, band: str = "", across: int = COLUMNS
) -> None:
    """Draw the panels and write them to one picture.

    Parameters
    ----------
    curves : sequence of Curve
        The panels, in reading order.
    path : str or Path
        Where to write the picture.
    heading : str, optional
        Above all panels.
    band : str
        What the band is made of, for the legend.
    across : int, default=3
        Number of panels beside each other.
    """
    across = min(across, len(curves))
    down = -(-len(curves) // across)
    size = (4.1 * across, 3.0 * down + 1.1)
    with picture(path, down, across, figsize=size, squeeze=False, layout="constrained") as (figure, grid):
        for axes, curve in zip(grid.flat, curves, strict=False):
            _draw(axes, curve, band)
        for axes in grid.flat[len(curves) :]:
            axes.set_axis_off()
        legends = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid.flat)
        entries = {label: line for legend in legends for line, label in legend}
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, fontsize=9)
        if heading is not None:
            figure.suptitle(heading)


def _draw(panel: Any, curve: Curve, band: str) -> None:
    at = [point.at for point in curve.points]
    panel.plot(at, [point.value for point in curve.points], color=REFERENCE, linewidth=1.2, label=curve.reference)
    if all(point.band is not None for point in curve.points):
        low, high = zip(*(point.band for point in curve.points if point.band is not None), strict=True)
        panel.fill_between(at, low, high, color=BAND, alpha=0.35, linewidth=0, label=band or "private models")
    for name, (line, colour, label) in STYLES.items():
        known = [point for point in curve.points if name in point.bounds]
        if known:
            ends = zip(*(point.bounds[name] for point in known), strict=True)
            for end, text in zip(ends, (label, None), strict=True):
                panel.plot([point.at for point in known], end, line, color=colour, linewidth=1.2, label=text)
    panel.set(xscale="log", title=curve.title, ylim=_limits(curve))
    panel.set_xlabel("rows" if curve.axis == "rows" else "epsilon")
    panel.grid(alpha=0.25)


def _limits(curve: Curve) -> Interval:
    """From 0 to 1 for values that fill it; else the widest interval drawn, with room around it."""
    ends = [end for point in curve.points for pair in point.bounds.values() for end in pair]
    ends += [end for point in curve.points if point.band is not None for end in point.band]
    ends += [point.value for point in curve.points]
    low, high = min(ends), max(ends)
    room = 0.04 * max(high - low, 1e-6)
    return max(low - room, -1.02), min(high + room, 1.02)
