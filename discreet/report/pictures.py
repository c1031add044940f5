"""The pictures of a report as SVG: what the promise means, coefficients with their noise, curves of an evaluation.

Plots have two linear axes; every colour is a class of the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.text import one_line
from discreet.privacy.statement import belief_after
from discreet.privacy.tradeoffs import TradeOff, trade_off

if TYPE_CHECKING:
    from discreet.metrics import CalibrationBin, Limits, RocPoint


WIDTH = 360.0  # of every picture, in its own units: about the pixels of a narrow screen
SIDE = 332.0  # height of a picture whose plot is a square
SHARES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def number(value: float) -> str:
    """A coordinate; a hundredth of a unit cannot be seen."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two ends, about so many."""
    rough = (high - low) / about
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1.0, 2.0, 5.0, 10.0) if size * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


class Chart:
    """A picture that is drawn mark by mark.

    Parameters
    ----------
    name : str
        Distinguishes the picture from others on the page.
    height : float
        Of the whole picture; its width is `WIDTH`.
    x, y : tuple of two numbers
        The ends of the axes; that of y may be turned round.
    left : float
        Room for what is written beside the y axis.
    """

    def __init__(
        self, name: str, height: float, x: tuple[float, float], y: tuple[float, float], left: float = 54.0
    ) -> None:
        self.name, self.height, self.x, self.y = name, height, x, y
        self.left, self.right, self.top, self.bottom = left, WIDTH - 20.0, 10.0, height - 42.0
        self._marks: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the plot lies in the picture."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * (self.right - self.left), self.bottom + up * (self.top - self.bottom)

    def line(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """A line through points."""
        self._marks.append(f'<path class="{style}" d="{self._path(points)}"/>')

    def area(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """A filled shape."""
        self._marks.append(f'<path class="{style}" d="{self._path(points)}Z"/>')

    def dot(self, x: float, y: float, style: str, size: float = 3.5) -> None:
        """A round mark."""
        across, down = self.at(x, y)
        self._marks.append(f'<circle class="{style}" cx="{number(across)}" cy="{number(down)}" r="{number(size)}"/>')

    def write(self, x: float, y: float, text: str, anchor: str = "middle", style: str = "label") -> None:
        """A text at a place of the picture itself."""
        shown = escape(one_line(text))
        self._marks.append(
            f'<text class="{style}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{shown}</text>'
        )

    def x_axis(self, label: str, at: Sequence[float], texts: Sequence[str]) -> None:
        """The axis below the plot, with lines across it."""
        for place, text in zip(at, texts, strict=True):
            self.line([(place, self.y[0]), (place, self.y[1])], "grid")
            self.write(self.at(place, 0.0)[0], self.bottom + 15.0, text)
        self.write(0.5 * (self.left + self.right), self.height - 8.0, label, style="axis")

    def y_axis(self, label: str, at: Sequence[float], texts: Sequence[str]) -> None:
        """The axis to the left of the plot, with lines across it."""
        for place, text in zip(at, texts, strict=True):
            self.line([(self.x[0], place), (self.x[1], place)], "grid")
            self.write(self.left - 6.0, self.at(0.0, place)[1] + 4.0, text, "end")
        middle = number(0.5 * (self.top + self.bottom))
        self._marks.append(
            f'<text class="axis" x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">'
            f"{escape(label)}</text>"
        )

    def svg(self, title: str, description: str) -> str:
        """The picture, with a title and a description for those who do not see it."""
        names = f"{self.name}-title {self.name}-text"
        return (
            f'<svg viewBox="0 0 {number(WIDTH)} {number(self.height)}" role="img" aria-labelledby="{names}">'
            f'<title id="{self.name}-title">{escape(one_line(title))}</title>'
            f'<desc id="{self.name}-text">{escape(one_line(description))}</desc>{"".join(self._marks)}</svg>'
        )

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        places = (self.at(x, y) for x, y in points)
        return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)


def unit_square(name: str, x_label: str, y_label: str) -> Chart:
    """An empty plot of two shares between 0 and 1."""
    chart = Chart(name, SIDE, (0.0, 1.0), (0.0, 1.0))
    percent = [f"{100 * share:.0f} %" for share in SHARES]
    chart.x_axis(x_label, SHARES, percent)
    chart.y_axis(y_label, SHARES, percent)
    return chart


FOR_ORIENTATION = (0.5, 1.0, 2.0, 4.0)  # epsilons of dotted curves


def errors(curve: TradeOff, advantage: float, name: str) -> str:
    """The trade-off curve, whose advantage is given: false negatives of the best attack against its false positives."""
    chart = unit_square(name, "people outside the table called members", "people in the table who are missed")
    rates = np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 12), np.linspace(0.02, 1.0, 99)])
    missed = curve.false_negative(rates)
    chart.area([*zip(rates, missed, strict=True), (0.0, 0.0)], "shade")
    for epsilon in FOR_ORIENTATION:
        if abs(trade_off(epsilon).advantage - advantage) >= 0.03:  # else it would lie on the promise's own curve
            corner = 1.0 / (1.0 + math.exp(epsilon))
            chart.line([(0.0, 1.0), (corner, corner), (1.0, 0.0)], "line dotted third")
            across, down = chart.at(corner, corner)
            chart.write(across + 3.0, down - 3.0, f"{epsilon:g}", "start", "label small")
    chart.line([(0.0, 1.0), (1.0, 0.0)], "line dashed second")
    chart.line(zip(rates, missed, strict=True), "line first")
    told = (
        "Every attack has errors above the solid curve; blind guessing lies on the dashed line. The nearer the two, "
        "the better the protection."
    )
    return chart.svg("How often an attacker errs", told)


def beliefs(epsilon: float, name: str, what: str) -> str:
    """Beliefs after the result against beliefs before it; odds grow by at most exp(epsilon)."""
    chart = unit_square(name, f"belief “{what} used” before", "belief after the result")
    before = 1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 91)))
    highest, lowest = ([(p, belief_after(p, sign * epsilon)) for p in before] for sign in (1.0, -1.0))
    chart.area([(0.0, 0.0), *highest, (1.0, 1.0), *reversed(lowest)], "shade")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    for side in (highest, lowest):
        chart.line([(0.0, 0.0), *side, (1.0, 1.0)], "line first")
    chart.dot(0.5, belief_after(0.5, epsilon), "dot")
    told = "A belief lies, after the result, between the two solid curves; on the dashed line it has not moved."
    return chart.svg("How far a belief can move", told)


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


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval."""

    name: str
    value: float
    low: float
    high: float


def forest(intervals: Sequence[Interval], label: str, title: str, name: str) -> str:
    """A forest plot: one line for each estimate, with its interval; those that hold 0 are hollow."""
    largest = max((abs(end) for each in intervals for end in (each.low, each.high)), default=1.0)
    scale = 10.0 ** math.floor(math.log10(max(largest, SMALLEST)))
    low = min([0.0, *(each.low / scale for each in intervals)])
    high = max([0.0, *(each.high / scale for each in intervals)])
    wide = MARGIN * max(high - low, 1e-9)
    chart = Chart(
        name, LINE * len(intervals) + 54.0, (low - wide, high + wide), (len(intervals) - 0.4, -0.6), left=136.0
    )
    marks = ticks(low - wide, high + wide, 6)
    chart.x_axis(label, marks, [f"{tick * scale:.3g}" for tick in marks])
    chart.line([(0.0, len(intervals) - 0.4), (0.0, -0.6)], "zero")
    for k, each in enumerate(intervals):
        doubtful = " doubtful" if each.low <= 0.0 <= each.high else ""
        chart.write(chart.left - 6.0, chart.at(0.0, k)[1] + 4.0, one_line(each.name, NAME), "end", "label name")
        chart.line([(each.low / scale, k), (each.high / scale, k)], f"bar{doubtful}")
        chart.dot(each.value / scale, k, f"dot{doubtful}")
    told = "One line for each coefficient: a dot at its estimate, and a bar from end to end of its interval."
    return chart.svg(title, told)


UNKNOWN = 0.8  # limits of a share that are so far apart say next to nothing, and are not drawn


def roc(points: Sequence[RocPoint], name: str) -> str:
    """The ROC curve at the thresholds of the release; bars are the confidence limits of both rates."""
    chart = unit_square(name, "share of the first label called the second", "share of the second label found")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    pairs = [(_inside(point.false_positive_rate), _inside(point.true_positive_rate)) for point in points]
    known = [pair for pair in pairs if not any(map(math.isnan, (pair[0][0], pair[1][0])))]
    for (x, *across), (y, *up) in known:
        chart.line([(end, y) for end in across], "bar")
        chart.line([(x, end) for end in up], "bar")
    for (x, *_), (y, *_) in known:
        chart.dot(x, y, "dot", 3.0)
    told = f"{len(known)} thresholds, each with confidence limits; on the dashed line a score tells nothing."
    return chart.svg("ROC curve", told)


def calibration(bins: Sequence[CalibrationBin], name: str) -> str:
    """Observed shares of the second label against predicted probabilities, where anything is known about them."""
    chart = unit_square(name, "predicted probability of the second label", "observed share of it")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "line dashed second")
    known = [each for each in bins if each.observed.high - each.observed.low < UNKNOWN]
    for each in known:
        low, high = _clipped(each.low), _clipped(each.high)
        value, *ends = _inside(each.observed)
        chart.line([(0.5 * (low + high), end) for end in ends], "bar")
        chart.line([(low, value), (high, value)], "bar")
        chart.dot(0.5 * (low + high), value, "dot", 3.0)
    told = f"{len(known)} bins of probabilities, each with confidence limits; on the dashed line predictions are right."
    return chart.svg("Calibration", told)


def _inside(limits: Limits) -> tuple[float, float, float]:
    """A rate and its limits; a file may hold other numbers."""
    return _clipped(limits.value), _clipped(limits.low), _clipped(limits.high)


def _clipped(rate: float) -> float:
    return rate if math.isnan(rate) else min(max(rate, 0.0), 1.0)
