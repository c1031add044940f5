"""The vertices that Frank-Wolfe chooses from, the sampler that draws one, and the state that moves towards it.

The mechanism that states the scale and draws the uniform numbers is `VertexSelections` in discreet/privacy/mechanisms.
The clipped gradient sums are counted in units of the grid's step, every term rounded to an integer, so that they are
exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.kernels.gradient import UNROUNDED
from discreet.problem.constraints import AxisPolytope
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers._shared.coordinates import CoordinateSums, Moves

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
        from discreet.kernels import greedy as kernel

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


SMALLEST_FACTOR = 1e-60  # of the weights, before it is multiplied out


class ScannedPath(ABC):
    """Every move is followed by a pass over the whole table."""

    def __init__(self, scaled: BlockwiseProblem, polytope: Polytope, clip: float, scale: float, unit: float) -> None:
        self.scaled, self.polytope, self.unit = scaled, polytope, unit
        self.clip, self.units = np.full(scaled.columns, clip), np.full(scaled.columns, unit)
        self.inner = scaled.scaling.columns
        self.w = np.zeros(scaled.columns)
        self.w[: self.inner] = start(polytope, self.inner)
        self._begin()
        self.sums = self._scan()
        self.choice = Choice(polytope.symmetric, scale / unit, levels_of(polytope, self.sums[: self.inner]))

    def move(self, chosen: tuple[int, float], share: float, intercept_move: float) -> None:
        """Move the given share of the way to the chosen vertex, and shift the intercept."""
        vertex = self.polytope.vertex(*chosen, self.inner)
        self.w[: self.inner] *= 1.0 - share
        self.w[: self.inner] += share * vertex
        self._move_margins(chosen[0], share, vertex)
        self.w[self.inner :] += intercept_move  # empty without an intercept
        self.sums = self._scan()
        self.choice.follow(levels_of(self.polytope, self.sums[: self.inner]))

    def intercept_sum(self) -> float:
        """The sum of the intercept's entries: a multiple of the grid's step."""
        return float(self.sums[self.inner :].sum() * self.unit)  # empty without an intercept

    @property
    def intercept(self) -> float:
        return float(self.w[self.inner :].sum())

    @abstractmethod
    def _begin(self) -> None:
        """Prepare the margins at the start."""

    @abstractmethod
    def _move_margins(self, j: int, share: float, vertex: FloatArray) -> None:
        """Let the margins follow a move of the weights to a vertex, which lies on axis j unless it is a general one."""

    @abstractmethod
    def _scan(self) -> FloatArray:
        """The clipped gradient sums, in units."""


class MemoryPath(ScannedPath):
    """The path on rows in memory: dense rows, an intercept, or general vertices. A margin is kept for each row."""

    scaled: ScaledProblem

    def _begin(self) -> None:
        self.margins = self.scaled.margins(self.w)  # without the intercept

    def _move_margins(self, j: int, share: float, vertex: FloatArray) -> None:
        X = self.scaled.X
        self.margins *= 1.0 - share
        if isinstance(self.polytope, Hull):
            self.margins += share * np.asarray(X[:, : self.inner] @ vertex)
        elif sp.issparse(X):
            part = slice(X.indptr[j], X.indptr[j + 1])
            self.margins[X.indices[part]] += share * vertex[j] * X.data[part]
        else:
            self.margins += share * vertex[j] * X[:, j]

    def _scan(self) -> FloatArray:
        from discreet.kernels import greedy

        scaled, X, sums = self.scaled, self.scaled.X, np.empty(self.scaled.columns)
        slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins + self.intercept, scaled.y))
        arguments = (slopes, scaled.kernel_weight, self.clip, self.units, sums)
        if sp.issparse(X):
            greedy.sums_sparse(X.indptr, X.indices, X.data, *arguments)
        else:
            greedy.sums_dense(X.T, *arguments)
        return sums


class StoredPath(ScannedPath):
    """The path on rows that are read block by block; nothing is kept of a row.

    For vertices on the axes the sums have the same bits as in memory. General vertices move all columns, and margins
    are then computed from the weights.
    """

    def _begin(self) -> None:
        self.moves = Moves(final=0.0)
        if not isinstance(self.polytope, Hull):
            for j in np.flatnonzero(self.w):
                self.moves.add(int(j), float(self.w[j]))

    def _move_margins(self, j: int, share: float, vertex: FloatArray) -> None:
        if not isinstance(self.polytope, Hull):
            self.moves.add(j, share * vertex[j], 1.0 - share)

    def _scan(self) -> FloatArray:
        self.moves.final = self.intercept
        w = self.w.copy() if isinstance(self.polytope, Hull) else None
        return self.scaled.sum(CoordinateSums(self.moves, self.clip, self.units, w))


class TouchedPath:
    """Sparse rows without an intercept: a move looks only at rows that some chosen column has ever touched.

    The weights are factor * direction. Shrinking all of them changes the factor alone; the margin of a row that
    no chosen column touches stays 0, so its slope, and what it adds to the sums, never changes.
    """

    def __init__(self, scaled: ScaledProblem, polytope: AxisPolytope, clip: float, scale: float, unit: float) -> None:
        from discreet.kernels import greedy

        self.kernel = greedy
        self.scaled, self.polytope, self.clip, self.unit = scaled, polytope, clip, unit
        self.weight = scaled.kernel_weight
        self.rows = sp.csr_array(scaled.X)
        n, p = self.rows.shape
        self.direction, self.factor = start(polytope, p), 1.0
        self.margins = scaled.margins(self.direction)
        self.seen = self.margins != 0.0
        self.touched = np.zeros(n, dtype=np.int64)
        self.count = int(self.seen.sum())
        self.touched[: self.count] = np.flatnonzero(self.seen)
        self.slopes = np.ascontiguousarray(scaled.problem.loss.slope(self.margins, scaled.y))
        self.sums = np.empty(p)
        self.dirty, self.changed = np.zeros(p, dtype=bool), np.empty(p, dtype=np.int64)
        self._first_sums()
        self.choice = Choice(polytope.symmetric, scale / unit, levels_of(polytope, self.sums))

    @property
    def w(self) -> FloatArray:
        return self.factor * self.direction

    def intercept_sum(self) -> float:
        return 0.0

    def move(self, chosen: tuple[int, float], share: float, intercept_move: float) -> None:
        """Move the given share of the way to the chosen vertex."""
        X, (j, sign) = self.scaled.X, chosen
        self._shrink(1.0 - share)
        push = sign * self.polytope.vertex_norm * share / self.factor
        self.direction[j] += push
        state = (self.margins, self.seen, self.touched, self.count)
        self.count = self.kernel.push_column(X.indptr[j], X.indptr[j + 1], X.indices, X.data, push, *state)
        self.choice.follow_some(self.changed[: self._refresh()])

    def _shrink(self, keep: float) -> None:
        self.factor *= keep
        if self.factor < SMALLEST_FACTOR:
            self.direction *= self.factor
            self.margins *= self.factor
            self.factor = 1.0

    def _refresh(self) -> int:
        loss, rows = self.scaled.problem.loss, self.rows
        return self.kernel.refresh_rows(
            rows.indptr, rows.indices, rows.data, self.touched[: self.count], self.factor, self.scaled.y, self.weight,
            loss.code, float(loss.parameter), self.clip, self.unit, self.margins, self.slopes,
            self.sums, self.dirty, self.changed,
        )  # fmt: skip

    def _first_sums(self) -> None:
        from discreet.kernels import greedy

        X, same = self.scaled.X, np.ones(self.sums.size)
        limits = (same * self.clip, same * self.unit)
        greedy.sums_sparse(X.indptr, X.indices, X.data, self.slopes, self.weight, *limits, self.sums)


Path = ScannedPath | TouchedPath


def start(polytope: Polytope, columns: int) -> FloatArray:
    """A data-free point of the set: 0 in an L1 ball, else the first vertex (sparser than the centre)."""
    return np.zeros(columns) if polytope.symmetric else polytope.vertex(0, 1.0, columns)


def begin(scaled: BlockwiseProblem, polytope: Polytope, clip: float, scale: float, step: float) -> Path:
    """The state before the first selection; with scale 0 the best vertex is taken, with step 0 nothing is rounded."""
    unit = step or UNROUNDED
    if not isinstance(scaled, ScaledProblem):
        return StoredPath(scaled, polytope, clip, scale, unit)
    sparse = sp.issparse(scaled.X) and not scaled.problem.fit_intercept
    if sparse and not isinstance(polytope, Hull):
        return TouchedPath(scaled, polytope, clip, scale, unit)
    return MemoryPath(scaled, polytope, clip, scale, unit)
