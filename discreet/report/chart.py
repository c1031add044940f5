"""A plot with two linear axes as SVG; every colour is a class of the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from discreet._common.text import one_line

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
    left, bottom : float
        Room for what is written beside the axes.
    """

    def __init__(
        self,
        name: str,
        height: float,
        x: tuple[float, float],
        y: tuple[float, float],
        left: float = 54.0,
        bottom: float = 42.0,
    ) -> None:
        self.name, self.height, self.x, self.y = name, height, x, y
        self.left, self.right, self.top, self.bottom = left, WIDTH - 20.0, 10.0, height - bottom
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
