"""Boxes that cover a set without overlap, from public facts: where the exponential mechanism looks its point up.

Everything is in unit coordinates: the weights fill a unit set (a box, a Euclidean ball or an L1 ball), the intercept
fills [-1, 1]. Theorem and proof: docs/guarantees/exponential.md. Nothing here reads rows.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.constraints import Box, SetAroundZero

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
