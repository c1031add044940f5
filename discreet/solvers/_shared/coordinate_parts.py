"""Clipped sums of all coordinates over stored rows: functions of a block and of released moves of the weights.

In memory a margin is kept for each row and follows the moves. Where rows are read anew in every pass, the same
additions are made again, in the same order: margins, and with them the sums, have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import on_term_grid
from discreet.problem.scaled_block import ScaledBlock


@dataclass
class Moves:
    """What has happened to the margins: each was multiplied by `keep` and moved by `push` times column j.

    `final` is added at the end and not kept: an intercept.
    """

    final: float
    columns: list[int] = field(default_factory=list)
    keep: list[float] = field(default_factory=list)
    push: list[float] = field(default_factory=list)

    def add(self, column: int, push: float, keep: float = 1.0) -> None:
        self.columns.append(column)
        self.keep.append(keep)
        self.push.append(push)

    def margins(self, columns: FloatArray) -> FloatArray:
        """The margins of rows whose columns are the rows of an array."""
        margins = np.zeros(columns.shape[1])
        for j, keep, push in zip(self.columns, self.keep, self.push, strict=True):
            if keep != 1.0:
                margins *= keep
            margins += push * columns[j]
        return margins + self.final if self.final else margins


@dataclass(frozen=True, eq=False)
class CoordinateSums:
    """The clipped gradient sums of all coordinates, in units: whole numbers, whose sums are exact.

    The margins follow from the moves, or are those of the weights `w`, if they are given.
    """

    moves: Moves
    clip: FloatArray
    unit: FloatArray
    w: FloatArray | None = None

    def __call__(self, block: ScaledBlock) -> FloatArray:
        from discreet.kernels.greedy import sums_dense

        X = block.X
        columns = np.ascontiguousarray(X.T)
        margins = self.moves.margins(columns) if self.w is None else X @ self.w
        slopes = np.ascontiguousarray(block.loss.slope(margins, block.y))
        sums, weight = np.empty(self.clip.size), np.empty(0) if block.weight is None else block.weight
        sums_dense(columns, slopes, weight, self.clip, self.unit, sums)
        return sums


def sums_of_squares(block: ScaledBlock, largest: FloatArray) -> FloatArray:
    """The weighted sums of the squared entries of all columns over the largest ones; rounded, so exact in any order."""
    squares = np.minimum(block.X**2 / largest, 1.0)
    return on_term_grid(squares if block.weight is None else block.weight[:, None] * squares).sum(axis=0)
