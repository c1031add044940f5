"""Exact draws from the density exp(-energy) on a set that is covered by cells, for a convex energy.

Cells are boxes without overlap, made from public facts, in unit coordinates: the weights fill a unit set (a box, a
Euclidean ball or an L1 ball), the intercept fills [-1, 1]. On each cell the tangent at its centre lies below the
energy, so exp(-tangent) lies above the density: a product of exponentials that is drawn from in closed form. A draw is
kept with probability exp(tangent - energy), and only if it lies in the set. Theorem and proof:
docs/guarantees/exponential.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray, IntArray
from discreet.privacy.random.generator import RandomGenerator
from discreet.problem.constraints import Box, SetAroundZero
from discreet.problem.losses import Loss

BALL_ROOM = 10  # a grid may have so many times more cells than are allowed, as most of them miss the ball


MOST_PIECES = 1e7  # along an axis: bounds the search for the best number
MOST_COLUMNS = 32  # far beyond what can be sampled, and within what NumPy's grids can hold


def box_excess(shape: SetAroundZero, columns: int) -> float:
    """How much larger the support of the unit box can be than that of the unit set."""
    return columns / float(shape.supports(np.ones(columns)))


@dataclass(frozen=True, eq=False)
class Cells:
    """Boxes given by their centres and half-widths, both of shape (cells, dimensions)."""

    centres: FloatArray
    halves: FloatArray

    @property
    def count(self) -> int:
        return self.centres.shape[0]


def covering(shape: SetAroundZero, columns: int, intercept: bool, pieces: int, slack: float, most: int) -> Cells | None:
    """Cells of side 2 / pieces or less that cover the unit set and lie within (1 + slack) times it.

    None if they are more than `most`. Cells that stick out of the set further than the slack are halved in every
    direction until they do not; those without a point of the set are dropped.
    """
    sides = pieces if intercept else 1
    if columns > MOST_COLUMNS:
        return None
    if pieces**columns * sides > (most if isinstance(shape, Box) else BALL_ROOM * most):
        return None
    cells: Cells | None = _grid(pieces, columns)
    if not isinstance(shape, Box):
        cells = _refined(shape, _grid(pieces, columns), slack, most // sides)
    if cells is None or cells.count * sides > most:
        return None
    return _product(cells, _grid(pieces, 1)) if intercept else cells


def _grid(pieces: int, dimensions: int) -> Cells:
    axis = (2.0 * np.arange(pieces) + 1.0) / pieces - 1.0
    centres = np.stack(np.meshgrid(*[axis] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
    return Cells(centres, np.full(centres.shape, 1.0 / pieces))


def _refined(shape: SetAroundZero, cells: Cells, slack: float, most: int) -> Cells | None:
    """Halve what straddles the surface, until it sticks out by no more than the slack."""
    kept: list[Cells] = []
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=cells.centres.shape[1])))
    while cells.count:
        size = np.abs(cells.centres)
        near, far = shape.gauge(np.maximum(size - cells.halves, 0.0)), shape.gauge(size + cells.halves)
        done = far <= 1.0 + slack
        split = ~done & (near < 1.0)
        kept.append(Cells(cells.centres[done & (near < 1.0)], cells.halves[done & (near < 1.0)]))
        if sum(part.count for part in kept) + int(split.sum()) > most:
            return None
        moved = cells.centres[split, None] + corners * cells.halves[split, None]
        halves = np.broadcast_to(0.5 * cells.halves[split, None], moved.shape)
        cells = Cells(moved.reshape(-1, size.shape[1]), halves.reshape(-1, size.shape[1]))
    return Cells(np.concatenate([part.centres for part in kept]), np.concatenate([part.halves for part in kept]))


def _product(cells: Cells, axis: Cells) -> Cells:
    """Every cell with every interval of one more axis, which comes last."""
    centres = np.column_stack([np.repeat(cells.centres, axis.count, axis=0), np.tile(axis.centres, (cells.count, 1))])
    halves = np.column_stack([np.repeat(cells.halves, axis.count, axis=0), np.tile(axis.halves, (cells.count, 1))])
    return Cells(centres, halves)


def log_tries(weight: float, ratio: float, slack: float, columns: int, pieces: int) -> float:
    """The logarithm of a bound on the expected number of tries, from the theorem.

    `weight` is the largest exponent that all rows can add up to, `ratio` the curvature of the loss over its range.
    """
    return 0.5 * weight * ratio / pieces**2 + slack * (weight + columns)


def best_pieces(weight: float, ratio: float, dimensions: int) -> int:
    """The number of pieces per axis that minimises cells + tries, both of which read all rows."""
    largest = math.ceil(min(max(2.0, math.sqrt(0.5 * weight * ratio) + 1.0), MOST_PIECES))  # more are refused
    pieces = np.arange(1, largest + 1, dtype=np.float64)
    with np.errstate(over="ignore"):
        work = pieces**dimensions + np.exp(0.5 * weight * ratio / pieces**2)
    return int(np.argmin(work)) + 1


BLOCK_ENTRIES = 1 << 19  # margins held at once
LARGEST_BATCH = 256  # tries made at once


@dataclass(frozen=True, eq=False)
class Energy:
    """rate * sum over rows of weight * loss(<x, u> + offset, y), at many points u at once."""

    X: FloatArray
    offset: FloatArray
    y: FloatArray
    weight: FloatArray | None
    loss: Loss
    rate: float

    def values(self, points: FloatArray) -> FloatArray:
        """The energy at each row of `points`."""
        return np.concatenate([self._total(self.loss.value(m, self.y)) for _, m in self._margins(points)])

    def tangents(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The energy and its gradient at each row of `points`."""
        values, gradients = np.empty(points.shape[0]), np.empty(points.shape)
        for block, margins in self._margins(points):
            values[block] = self._total(self.loss.value(margins, self.y))
            slopes = self.loss.slope(margins, self.y)
            gradients[block] = self.rate * ((slopes if self.weight is None else slopes * self.weight) @ self.X)
        return values, gradients

    def _margins(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of points, with the margins of all rows: an array (points, rows)."""
        length = max(1, BLOCK_ENTRIES // max(1, self.X.shape[0]))
        for start in range(0, points.shape[0], length):
            block = slice(start, start + length)
            yield block, points[block] @ self.X.T + self.offset

    def _total(self, losses: FloatArray) -> FloatArray:
        return self.rate * (losses.sum(axis=1) if self.weight is None else losses @ self.weight)


class CellSampler:
    """Draws points of the set with density proportional to exp(-energy), by rejection from its envelope.

    Guarantee: in real arithmetic the law is exact, whatever the cells; they only decide how long it takes.
    """

    def __init__(self, energy: Energy, cells: Cells, inside: Callable[[FloatArray], npt.NDArray[np.bool_]]) -> None:
        self.energy, self.cells, self.inside = energy, cells, inside
        self.values, self.gradients = energy.tangents(cells.centres)
        self.cumulative = np.cumsum(self._masses())

    def _masses(self) -> FloatArray:
        """The mass of the envelope over each cell, up to a common factor; the largest is 1."""
        drop = 2.0 * np.abs(self.gradients) * self.cells.halves
        # Integral of exp(-g s) over |s| <= h, as its largest value times a mean in (0, 1] times 2 h.
        means = np.where(drop > 0.0, -np.expm1(-drop) / np.where(drop > 0.0, drop, 1.0), 1.0)
        logs = -self.values + (0.5 * drop + np.log(means * self.cells.halves)).sum(axis=1)
        return np.asarray(np.exp(logs - logs.max()))

    def propose(self, rng: RandomGenerator, count: int) -> tuple[FloatArray, FloatArray]:
        """Points from the envelope, and the energy of the tangent there."""
        cell = self._choose(rng, count)
        gradient, half = self.gradients[cell], self.cells.halves[cell]
        move = exponential_on_interval(gradient, half, rng.uniform(gradient.shape))
        return self.cells.centres[cell] + move, self.values[cell] + (gradient * move).sum(axis=1)

    def _choose(self, rng: RandomGenerator, count: int) -> IntArray:
        levels = rng.uniform(count) * self.cumulative[-1]
        return np.minimum(np.searchsorted(self.cumulative, levels, side="right"), self.cells.count - 1)

    def draw(self, rng: RandomGenerator, count: int = 1) -> FloatArray:
        """Independent points, as the rows of an array; the tries have no limit: giving up would depend on the rows."""
        kept, missing, batch = [], count, min(4 * count, LARGEST_BATCH)
        while missing > 0:
            points, tangent = self.propose(rng, batch)
            gap = self.energy.values(points) - tangent
            accepted = (np.log(rng.uniform(batch)) <= -gap) & self.inside(points)
            kept.append(points[accepted][:missing])
            missing -= len(kept[-1])
            batch = min(2 * batch, LARGEST_BATCH)
        return np.concatenate(kept)


def exponential_on_interval(rate: FloatArray, half: FloatArray, uniform: FloatArray) -> FloatArray:
    """Draws s in [-half, half] with density proportional to exp(-rate * s), from uniform draws."""
    drop = 2.0 * np.abs(rate) * half
    flat = drop < 1e-12  # there the density differs from a constant by less than a rounding error of it
    share = np.where(flat, uniform, -np.log1p(uniform * np.expm1(-drop)) / np.where(flat, 1.0, drop))
    return np.asarray(np.where(rate >= 0.0, 1.0, -1.0) * half * (2.0 * share - 1.0))
