"""A loss along a straight line of margins: one function of one number, whatever the number of outputs.

Every law of a loss is checked on lines, so that losses of one and of several margins share the same checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.losses import Loss

ROUNDS, SPLIT, PIECES = 14, 12, 8  # of the search: intervals split in each round, and into how many pieces
NARROWEST = 1e-7  # interval, relative to where it lies: below it differences are mostly rounding
FAR = np.array([1e8, 1e15, 1e50, 1e150, 1e300])
TARGETS = (0.0, 1.0, -1.0, 1e-3, 0.37, -30.0, 1e3)  # of regression losses, where derivatives are compared
HUGE_TARGETS = (1e8, -1e15, 1e150, -1e300, 1.7e308, 5e-324)
Kernel = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Line:
    """Margins start + t * direction of one row with one target; the direction has norm 1."""

    loss: Loss
    start: FloatArray
    direction: FloatArray
    target: float

    def margins(self, t: FloatArray) -> FloatArray:
        """The margins at every t, in the shape that the loss wants."""
        points = self.start + np.multiply.outer(t, self.direction)
        return points[:, 0] if self.loss.outputs == 1 else points

    def targets(self, t: FloatArray) -> FloatArray:
        return np.full(t.size, self.target)

    def value(self, t: FloatArray) -> FloatArray:
        return np.asarray(self.loss.value(self.margins(t), self.targets(t)))

    def gradient(self, t: FloatArray) -> FloatArray:
        """The slope in every margin: one row for every t."""
        return np.asarray(self.loss.slope(self.margins(t), self.targets(t))).reshape(t.size, -1)

    def slope(self, t: FloatArray) -> FloatArray:
        """The derivative along the line."""
        return self.gradient(t) @ self.direction

    def curvature(self, t: FloatArray) -> FloatArray:
        """The second derivative along the line; known where the line follows one margin."""
        rows = np.asarray(self.loss.curvature(self.margins(t), self.targets(t))).reshape(t.size, -1)
        return rows @ self.direction**2

    @property
    def follows_one_margin(self) -> bool:
        return np.count_nonzero(self.direction) == 1

    def at(self, t: float) -> str:
        """Where a law was broken, for messages."""
        margin = self.margins(np.array([t]))[0]
        return f"at margin {np.array2string(np.asarray(margin), precision=17)} and target {self.target:.12g}"


def lines_of(loss: Loss, targets: Sequence[float] | None = None) -> list[Line]:
    """Lines on which a loss shows what it can do: through every target, along and between its margins."""
    if loss.outputs > 1:
        return [Line(loss, start, way, float(label)) for label, start, way in _several(loss.outputs)]
    one = np.ones(1)
    if loss.classification:
        return [Line(loss, np.zeros(1), one, label) for label in (-1.0, 1.0)]
    chosen = TARGETS if targets is None else targets
    return [Line(loss, np.full(1, start), one, float(y)) for y in chosen for start in sorted({0.0, float(y)})]


def huge_lines_of(loss: Loss, targets: Sequence[float] | None = None) -> list[Line]:
    """Lines of targets so large that only bounds can be checked."""
    if loss.classification or targets is not None:
        return []
    return [Line(loss, np.full(1, start), np.ones(1), y) for y in HUGE_TARGETS for start in (0.0, y)]


def _several(outputs: int) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Labels, starts and directions: single margins, ties of two, away from the label, and random ones."""
    rng = np.random.default_rng(0)
    units = np.eye(outputs)
    tied = np.full(outputs, -1e3)
    tied[:2] = 0.0
    for label in (0, outputs - 1):
        away = np.ones(outputs) - 2.0 * units[label]
        directions = [*units[:3], units[0] - units[1], away, rng.standard_normal(outputs)]
        for start in (np.zeros(outputs), tied, rng.standard_normal(outputs)):
            for way in directions:
                yield label, start, way / np.linalg.norm(way)


def grid_of(line: Line) -> FloatArray:
    """Points of all magnitudes, close together where the slope changes most: a search for the steepest places."""
    sizes = np.geomspace(1e-6, 1e6, 97)
    t = np.unique(np.concatenate([-sizes, [0.0], sizes, np.linspace(-10.0, 10.0, 201)]))
    for _ in range(ROUNDS):
        rise, width = np.abs(np.diff(line.slope(t))), np.diff(t)
        open_ = width > NARROWEST * np.maximum(1.0, np.abs(t[1:]))
        most = np.argsort(np.where(open_, rise, -1.0))[-SPLIT:]
        steepest = np.argsort(np.where(open_, rise / width, -1.0))[-SPLIT:]
        chosen = np.unique(np.concatenate([most, steepest]))
        chosen = chosen[open_[chosen]]
        if chosen.size == 0:
            break
        inner = t[chosen, None] + width[chosen, None] * np.linspace(0.0, 1.0, PIECES + 1)[1:-1]
        t = np.unique(np.concatenate([t, inner.ravel()]))
    return t


@dataclass(frozen=True, eq=False)
class LossCase:
    """A loss with the lines of margins on which it is looked at."""

    loss: Loss
    kernel: Kernel | Literal["auto"] | None = "auto"
    targets: Sequence[float] | None = None

    @cached_property
    def lines(self) -> list[tuple[Line, FloatArray]]:
        """Every line, with points that lie close together where the slope changes most."""
        return [(line, grid_of(line)) for line in lines_of(self.loss, self.targets)]

    @cached_property
    def far_lines(self) -> list[tuple[Line, FloatArray]]:
        """The lines with points far out as well, and lines of huge targets: for bounds, which hold everywhere."""
        far = np.concatenate([-FAR[::-1], FAR])
        return [(line, np.concatenate([t, far])) for line, t in self.lines] + [
            (line, np.concatenate([grid_of(line)[::10], far])) for line in huge_lines_of(self.loss, self.targets)
        ]
