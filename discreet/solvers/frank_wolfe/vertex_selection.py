"""The vertices that Frank-Wolfe chooses from, and the sampler that draws one of them.

The mechanism that states the scale and draws the uniform numbers is `VertexSelections` in discreet/privacy/mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.problem.constraints import AxisPolytope

# Weights are relative to a reference; outside these limits of their total another one is chosen. The smallest
# weight that is told from 0 is e^-700 = 1e-304, far below any share of a total that could matter.
SMALLEST_TOTAL, LARGEST_TOTAL = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class Hull:
    """Vertices given as the rows of a matrix."""

    points: FloatArray
    symmetric = False

    @cached_property
    def directions(self) -> FloatArray:
        """The vertices, moved and shrunk so that their L1 norms are at most 1.

        Moving all of them adds one number to all scores, which changes no choice; the middle of the box around them
        is taken where it lowers the largest norm.
        """
        middle = 0.5 * (self.points.min(axis=0) + self.points.max(axis=0))
        forms = [self.points, self.points - middle]
        norms = [float(np.abs(form).sum(axis=1).max()) for form in forms]
        best = int(np.argmin(norms))
        return forms[best] / (norms[best] or 1.0)

    def vertex(self, index: int, sign: float, size: int) -> FloatArray:
        """Return the vertex with this number."""
        return sign * self.points[index]


Polytope = AxisPolytope | Hull


def levels_of(polytope: Polytope, sums: FloatArray) -> FloatArray:
    """The inner products of the vertices with the gradient sum, in units that keep the vertices' L1 norms below 1.

    For vertices on the axes it is a view, so that it follows the sums.
    """
    return polytope.directions @ sums if isinstance(polytope, Hull) else sums


class Choice:
    """Draws vertices with probabilities proportional to exp(-level / scale), for a pair exp(-+level / scale).

    This is the law of the exponential mechanism itself, without Gumbel noise on every score: the weights are kept
    in a tree of sums, and a draw follows one path. With scale 0 it takes the best vertex.
    """

    def __init__(self, paired: bool, scale: float, levels: FloatArray) -> None:
        from discreet.kernels import frank_wolfe as kernel

        self.kernel = kernel
        self.paired = paired
        self.rate = 1.0 / scale if scale > 0.0 else None
        self.floors = _floors(levels.size, kernel.FAN)
        self.tree = np.zeros(self.floors[-1])
        self.follow(levels)

    @property
    def uniforms(self) -> int:
        """How many uniform numbers a draw takes: one a floor above the weights, and one for the sign."""
        return self.floors.size - 1

    def follow(self, levels: FloatArray) -> None:
        """Take over new levels."""
        self.levels = levels
        if self.rate is not None:
            self.reference = self.kernel.weigh_all(levels, self.rate, self.paired, self.tree, self.floors)

    def follow_some(self, changed: npt.NDArray[np.int64]) -> None:
        """Some of the levels, which are shared with the caller, have changed; the list of them is used up."""
        if self.rate is None:
            return
        state = (self.rate, self.paired, self.reference, self.tree, self.floors)
        self.kernel.weigh_some(changed, self.levels, *state)
        if not SMALLEST_TOTAL < self.tree[-1] < LARGEST_TOTAL:
            self.follow(self.levels)

    def draw(self, uniforms: FloatArray) -> tuple[int, float]:
        """Index and sign of the chosen vertex; uniform numbers on (0, 1) decide."""
        if self.rate is not None:
            chosen = self.kernel.draw(self.levels, self.rate, self.paired, self.tree, self.floors, uniforms)
            return int(chosen[0]), float(chosen[1])
        if not self.paired:
            return int(np.argmin(self.levels)), 1.0
        best = int(np.argmax(np.abs(self.levels)))
        return best, -math.copysign(1.0, self.levels[best])


def _floors(leaves: int, fan: int) -> npt.NDArray[np.int64]:
    """Where each floor of the tree of sums begins, and where the last one ends."""
    sizes = [leaves]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // fan))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
