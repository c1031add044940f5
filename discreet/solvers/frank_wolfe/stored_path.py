"""The state of Frank-Wolfe on rows that are read block by block, a pass for each move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers._shared.coordinate_parts import CoordinateSums, Moves
from discreet.solvers.frank_wolfe.vertex_selection import Choice, Hull, Polytope, levels_of

if TYPE_CHECKING:
    from discreet._common.types import FloatArray


class StoredPath:
    """Weights and clipped sums as in `ScannedPath`; nothing is kept of a row.

    For vertices on the axes the sums have the same bits as in memory. General vertices move all columns, and margins
    are then computed from the weights.
    """

    def __init__(
        self, scaled: BlockwiseProblem, polytope: Polytope, start: FloatArray, clip: float, scale: float, unit: float
    ) -> None:
        self.scaled, self.polytope, self.unit = scaled, polytope, unit
        self.clip, self.units = np.full(scaled.columns, clip), np.full(scaled.columns, unit)
        self.inner = scaled.scaling.columns
        self.w = np.zeros(scaled.columns)
        self.w[: self.inner] = start
        self.moves = Moves(final=0.0)
        if not isinstance(polytope, Hull):
            for j in np.flatnonzero(start):
                self.moves.add(int(j), float(start[j]))
        self.sums = self._scan()
        self.choice = Choice(polytope.symmetric, scale / unit, levels_of(polytope, self.sums[: self.inner]))

    def move(self, chosen: tuple[int, float], share: float, intercept_move: float) -> None:
        """Move the given share of the way to the chosen vertex, and shift the intercept."""
        vertex, j = self.polytope.vertex(*chosen, self.inner), chosen[0]
        self.w[: self.inner] *= 1.0 - share
        self.w[: self.inner] += share * vertex
        if not isinstance(self.polytope, Hull):
            self.moves.add(j, share * vertex[j], 1.0 - share)
        if self.scaled.problem.fit_intercept:
            self.w[self.inner] += intercept_move
            self.moves.final = float(self.w[self.inner])
        self.sums = self._scan()
        self.choice.follow(levels_of(self.polytope, self.sums[: self.inner]))

    def intercept_sum(self) -> float:
        """The sum of the intercept's entries: a multiple of the grid's step."""
        return float(self.sums[self.inner :].sum() * self.unit)  # empty without an intercept

    def _scan(self) -> FloatArray:
        w = self.w.copy() if isinstance(self.polytope, Hull) else None
        return self.scaled.sum(CoordinateSums(self.moves, self.clip, self.units, w))
