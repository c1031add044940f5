"""Coefficients as dots with bars of noise, one line for each column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from discreet._common.text import one_line
from discreet.report.svg.chart import Chart, ticks

LINE = 19.0  # height of a line
NAME = 20  # characters of a name, at most
SMALLEST = 1e-300  # effects below it are drawn as 0
MARGIN = 0.04  # of the width, beyond the outermost mark


@dataclass(frozen=True)
class Bar:
    """One column: its name, its effect, and how far a bar reaches to both sides; None where that is not known."""

    name: str
    value: float
    reach: float | None

    @property
    def is_clear(self) -> bool:
        """Whether the bar leaves no doubt about the sign."""
        return not self.reach or abs(self.value) >= self.reach


def coefficients(bars: Sequence[Bar], label: str, title: str, name: str) -> str:
    """The picture; numbers of any size are drawn, since all are divided by a power of ten first."""
    ends = [abs(bar.value) for bar in bars] + [bar.reach for bar in bars if bar.reach is not None]
    largest = max([end for end in ends if end > 0.0], default=1.0)
    scale = 10.0 ** math.floor(math.log10(max(largest, SMALLEST)))
    places = [(bar.value / scale, 0.0 if bar.reach is None else bar.reach / scale) for bar in bars]
    low = min([0.0, *(value - reach for value, reach in places)])
    high = max([0.0, *(value + reach for value, reach in places)])
    wide = MARGIN * max(high - low, 1e-9)
    chart = Chart(name, LINE * len(bars) + 54.0, (low - wide, high + wide), (len(bars) - 0.4, -0.6), left=136.0)
    marks = ticks(low - wide, high + wide, 6)
    chart.x_axis(label, marks, [f"{tick * scale:.3g}" for tick in marks])
    chart.line([(0.0, len(bars) - 0.4), (0.0, -0.6)], "zero")
    for k, (bar, (value, reach)) in enumerate(zip(bars, places, strict=True)):
        chart.write(chart.left - 6.0, chart.at(0.0, k)[1] + 4.0, one_line(bar.name, NAME), "end", "label name")
        if reach > 0.0:
            chart.line([(value - reach, k), (value + reach, k)], "bar" if bar.is_clear else "bar doubtful")
        chart.dot(value, k, "dot" if bar.is_clear else "dot doubtful")
    told = "One line for each column: a dot at its effect, and a bar of two standard deviations of noise to each side."
    return chart.svg(title, told)
