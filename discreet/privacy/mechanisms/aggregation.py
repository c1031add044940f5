"""Correlated noise for running sums: the sum of the first t vectors, for every t, costs little more than one sum.

Two ways to write the matrix of running sums as a product: a binary tree of partial sums, which needs a few
vectors of memory and may be saved and resumed, and the square root of the matrix, which needs less noise but keeps
all vectors. `RunningSumGaussian` states the cost and the grid of the releases; the two factorisations decide what is
released of the vectors, and compute the running sums from the releases alone. Proofs: docs/guarantees/ftrl.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.additive import Gaussian, NoisyGrid
from discreet.privacy.mechanisms.sensitivity import Sensitivity
from discreet.privacy.random.generator import RandomGenerator

Shape = tuple[int, ...]
Kind = Literal["tree", "square-root"]


@dataclass(frozen=True)
class RunningSumGaussian:
    """Gaussian noise on all running sums of `leaves` vectors, in `count` passes with fresh noise each.

    A sensitivity is that of one vector; a pass as a whole can move by `row_norm` times that.

    Guarantee: a pass costs one Gaussian release of this multiplier, for adaptively chosen vectors.
    """

    multiplier: float
    kind: Kind
    leaves: int
    count: int = 1

    @property
    def _passes(self) -> Gaussian:
        return Gaussian(self.multiplier, self.count)

    @property
    def event(self) -> Any:
        return self._passes.event

    def deviation(self, sensitivity: Sensitivity) -> float:
        """Standard deviation of the independent draws that the noise of a pass is made of."""
        return self._passes.deviation(sensitivity * row_norm(self.kind, self.leaves))

    def begin(self, shape: Shape) -> RunningSums:
        """A new pass over vectors of this shape, before the first of them."""
        return running_sums(self.kind, self.leaves, shape)

    def grid(self, sensitivity: Sensitivity, entries: int, rows: float) -> NoisyGrid:
        """The grid of the vectors and of what a pass releases of them, and its noise.

        A vector of `entries` numbers, a sum of rounded terms, moves by a step per entry more than the sensitivity. The
        tree releases sums of vectors; the square root releases weighted sums, which are rounded once more and whose own
        arithmetic is off by at most two steps on both tables together (docs/guarantees/ftrl.md).
        """
        length = row_norm(self.kind, self.leaves)
        if self.kind == "tree":
            return self._passes.grid(sensitivity * length, nodes_above(self.leaves) * entries, rows)
        terms = 2.0 * math.sqrt(self.leaves)  # the sum of the weights, which is what errors of arithmetic grow with
        return self._passes.grid(sensitivity * length, self.leaves * entries, rows * terms, loose=4.0)


class RunningSums(Protocol):
    """The running sums of `leaves` vectors, one after the other, from releases with noise alone."""

    leaves: int

    def next(self, vector: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        """Take one vector more, on the grid, and return the sum of all so far with noise.

        Guarantee: costs a part of the pass; what is returned depends on the vectors only through releases of the grid.
        """
        ...


def running_sums(kind: Kind, leaves: int, shape: Shape) -> RunningSums:
    """A pass over at most `leaves` vectors of this shape."""
    return TreeSums(leaves, shape) if kind == "tree" else SquareRootSums(leaves, shape)


def row_norm(kind: Kind, leaves: int) -> float:
    """How much further than one vector alone, in Euclidean norm, everything released can move with that vector.

    Guarantee: for the tree the square root of the largest number of nodes above a leaf; for the square root the
    largest norm of a column.
    """
    if kind == "tree":
        return math.sqrt(nodes_above(leaves))
    return float(np.linalg.norm(square_root_column(leaves)))


def nodes_above(leaves: int) -> int:
    """The most completed nodes that hold one leaf, itself included: floor(lg leaves) + 1."""
    return leaves.bit_length()


def square_root_column(leaves: int) -> FloatArray:
    """First column of the lower triangular Toeplitz matrix B with B B = the matrix of running sums."""
    k = np.arange(1, leaves)
    return np.concatenate([[1.0], np.cumprod((2.0 * k - 1.0) / (2.0 * k))])


class TreeSums:
    """A binary tree over the vectors: every node is released, with its own noise, when its last leaf has come.

    A running sum is the sum of the completed subtrees that tile it, one for every 1 in the binary digits of its
    length. A node is known twice, from its own release and from those below; `reduced` takes the mean of the two
    with the least variance, which is half the plain variance for tall trees. Of the past only two vectors per
    level are kept: the exact sum of the open subtree, which is not released, and what is known of it.
    """

    def __init__(self, leaves: int, shape: Shape, reduced: bool = True) -> None:
        self.leaves, self.reduced = leaves, reduced
        self.done = 0
        self.exact = np.zeros((nodes_above(leaves), *shape))  # sums of the subtrees that tile the running sum
        self.open = np.zeros_like(self.exact)  # the same sums, as estimated from releases

    def next(self, vector: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        _check_left(self.done, self.leaves)
        height = _trailing_ones(self.done)  # so many subtrees are completed together with this leaf
        exact = vector
        known, variance = grid.release(rng, exact), 1.0
        for level in range(height):
            exact = exact + self.exact[level]
            below = known + self.open[level]
            self.exact[level], self.open[level] = 0.0, 0.0
            known, variance = self._joined(grid.release(rng, exact), below, 2.0 * variance)
        self.exact[height], self.open[height] = exact, known
        self.done += 1
        return np.asarray(self.open.sum(axis=0))

    def _joined(self, own: FloatArray, below: FloatArray, variance_below: float) -> tuple[FloatArray, float]:
        """A node's sum from its own release (variance 1) and from its two children."""
        if not self.reduced:
            return own, 1.0
        share = variance_below / (1.0 + variance_below)
        return share * own + (1.0 - share) * below, share


class SquareRootSums:
    """Releases B x with noise, B the square root of the matrix of running sums; B times that are running sums.

    All vectors of the pass are kept, and a step costs as many products as there are vectors so far.
    """

    def __init__(self, leaves: int, shape: Shape) -> None:
        self.leaves = leaves
        self.done = 0
        self.column = square_root_column(leaves)
        self.vectors = np.zeros((leaves, *shape))  # exact, not released
        self.released = np.zeros((leaves, *shape))

    def next(self, vector: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        _check_left(self.done, self.leaves)
        self.vectors[self.done] = vector
        self.released[self.done] = grid.release(rng, self._latest(self.vectors))
        self.done += 1
        return self._latest(self.released, self.done - 1)

    def _latest(self, rows: FloatArray, last: int | None = None) -> FloatArray:
        """Row number `last` (that of the vector just taken) of B times the rows."""
        last = self.done if last is None else last
        return np.tensordot(self.column[last::-1], rows[: last + 1], axes=1)


def _check_left(done: int, leaves: int) -> None:
    """The noise is calibrated for a number of leaves; one more would be under-noised."""
    if done >= leaves:
        raise ValueError(f"the noise was made for {leaves} running sums, and all of them are used.")


def _trailing_ones(number: int) -> int:
    """How often a binary counter carries when it goes on from `number`."""
    return (~number & (number + 1)).bit_length() - 1
