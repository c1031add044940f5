"""Estimates with intervals, as a picture and as a table, where the fit was planned for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet._common.blocks import Block, Facts, Heading, Table, Text
from discreet._common.text import one_line
from discreet.inference.text import header, lines, notes
from discreet.report.blocks import Figure
from discreet.report.pictures import Interval, forest

if TYPE_CHECKING:
    from discreet.inference import Inference

ALPHA = 0.05
TOLD = "Estimates with intervals that hold in 95 % of fits, sampling and privacy noise included; hollow: 0 is inside."


def interval_blocks(found: Inference | None, shown: Sequence[int]) -> list[Block]:
    """A forest plot and a table of these columns, or why there are none; nothing if none were asked for."""
    if found is None:
        return []
    title: Block = Heading("Estimates with intervals")
    if not found.valid:
        return [title, *(Text(one_line(reason)) for reason in found.reasons)]
    ends, names = found.conf_int(ALPHA), found.names
    drawn = [Interval(names[k], found.params[k], ends[k, 0], ends[k, 1]) for k in shown]
    rows = tuple(lines(found, ALPHA, shown))
    told: list[Block] = [title]
    if drawn:
        told.append(Figure(forest(drawn, "estimate per unit", "Estimates with intervals", "intervals"), TOLD))
    table = Table("Estimates, which are not shrunk; the coefficients above are, and have no intervals", *_cells(rows))
    return [*told, table, Facts(tuple(notes(found, ALPHA).items()))]


def _cells(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[int, ...]]:
    names = header(ALPHA)
    return ("term", *names[1:]), rows, tuple(range(1, len(names)))
