"""Coefficients as dots with bars of noise, one line for each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet._common.text import one_line
from discreet.report.svg.chart import Chart, ticks

LINE = 19.0  # height of a line
NAME = 20  # characters of a name, at most
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
        return self.reach is None or abs(self.value) > self.reach


def coefficients(bars: Sequence[Bar], label: str, title: str, name: str) -> str:
    """The picture; numbers of any size are drawn, since all are divided by the largest first."""
    ends = [abs(bar.value) for bar in bars] + [bar.reach for bar in bars if bar.reach is not None]
    scale = max([end for end in ends if np.isfinite(end)], default=0.0) or 1.0
    places = [(bar.value / scale, 0.0 if bar.reach is None else bar.reach / scale) for bar in bars]
    low = min([0.0, *(value - reach for value, reach in places)])
    high = max([0.0, *(value + reach for value, reach in places)])
    wide = MARGIN * max(high - low, 1e-9)
    chart = Chart(name, LINE * len(bars) + 54.0, (low - wide, high + wide), (len(bars) - 0.4, -0.6), left=136.0)
    marks = [tick for tick in ticks(low - wide, high + wide, 4) if np.isfinite(tick * scale)]
    chart.x_axis(label, marks, [f"{tick * scale:.3g}" for tick in marks])
    chart.line([(0.0, len(bars) - 0.4), (0.0, -0.6)], "zero")
    for k, (bar, (value, reach)) in enumerate(zip(bars, places, strict=True)):
        chart.write(chart.left - 6.0, chart.at(0.0, k)[1] + 4.0, one_line(bar.name, NAME), "end", "label name")
        if reach > 0.0:
            chart.line([(value - reach, k), (value + reach, k)], "bar" if bar.is_clear else "bar doubtful")
        chart.dot(value, k, "dot" if bar.is_clear else "dot doubtful")
    told = "One line for each column: a dot at its effect, and a bar of two standard deviations of noise to each side."
    return chart.svg(title, told)
