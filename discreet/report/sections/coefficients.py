"""What the model says: the columns that can move it most, as a picture with bars of noise and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.estimators.reading.summary_text import (
    DOUBTFUL,
    HEADER,
    heading,
    lines_of,
    most_moving,
    noise_told,
    ranges_told,
)
from discreet.report.blocks import Block, Figure, Heading, Section, Table, Text
from discreet.report.pictures import Bar, coefficients

if TYPE_CHECKING:
    from discreet.estimators.reading.summary import ModelSummary
    from discreet.report.material import Material

NAME = 60  # characters of a column's name, at most
NAMELESS = "(no name)"
SHOWN_OUTPUTS = 12  # classes of which the coefficients are shown


def says(material: Material) -> Section:
    """One picture and one table for each output of the model."""
    summary = material.summary
    outputs = summary.form.intercept.size
    shown = range(min(outputs, SHOWN_OUTPUTS))
    blocks: list[Block] = [Text(text) for text in _explanation(summary)]
    if outputs > len(shown):
        blocks.append(Text(f"The coefficients of {outputs - len(shown):,} more classes are in the model file."))
    for output in shown:
        blocks += _output(summary, output, most_moving(summary, material.columns, output))
    return Section("coefficients", "What the model says", tuple(blocks))


def _explanation(summary: ModelSummary) -> list[str]:
    return [
        "Per unit: how far one more unit of the column moves the value. Per range: how far the way from its low to its "
        "high end moves it, which compares columns of different units.",
        f"Low, high: entries outside are moved to the nearest end. How they were found: {ranges_told(summary)}.",
        f"Noise: {noise_told(summary)}",
    ]


def _output(summary: ModelSummary, output: int, shown: list[int]) -> list[Block]:
    hidden = summary.form.columns - len(shown)
    more = f"; {hidden:,} columns that can move it less are not shown" if hidden else ""
    told: list[Block] = [Heading(heading(summary, output))]
    if shown:
        told.append(_picture(summary, output, shown))
    rows = [(name or NAMELESS, *cells) for name, *cells in lines_of(summary, output, shown, NAME)]
    caption = f"Coefficients of {len(shown):,} columns, those that can move it most first{more}"
    return [*told, Table(caption, HEADER, tuple(rows), (1, 2, 3, 4, 5))]


def _picture(summary: ModelSummary, output: int, shown: list[int]) -> Figure:
    """Effects per range; per unit if a column has no range."""
    form, noise, effects = summary.form, summary.noise, summary.per_range[output]
    ranged = bool(np.isfinite(effects[shown]).all())
    widths = form.high - form.low if ranged else np.ones(form.columns)
    effects = effects if ranged else form.coef[output]
    bars = [
        Bar(
            form.shown_names[j] or NAMELESS,
            effects[j],
            None if noise.per_unit is None else DOUBTFUL * noise.per_unit[j] * widths[j],
        )
        for j in shown
    ]
    unit = "per range" if ranged else "per unit"
    if noise.per_unit is None:
        told = f"Effects {unit}; how large the noise in them is, is not known."
    elif noise.kind == "none":
        told = f"Effects {unit}; there is no noise in them."
    else:
        told = (
            f"Effects {unit} with bars of {DOUBTFUL:g} standard deviations of the predicted noise to each side; hollow "
            "dots: the sign may be noise."
        )
    return Figure(coefficients(bars, f"effect {unit}", heading(summary, output), f"effects-{output}"), told)
