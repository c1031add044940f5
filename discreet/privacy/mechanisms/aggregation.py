"""Correlated noise for running sums: the sum of the first t vectors, for every t, costs little more than one sum.

Two ways to write the matrix of running sums as a product: a binary tree of partial sums, which needs a few
vectors of memory and may be saved and resumed, and the square root of the matrix, which needs less noise but all
of it in advance. `RunningSumGaussian` states the cost and the size of the independent draws; the two factorisations
turn these draws into the noise on a running sum, which the caller adds to the exact sum. Proofs:
docs/guarantees/ftrl.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.mechanisms.sensitivity import Sensitivity

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator

Shape = tuple[int, ...]
Draw = Callable[[Shape], FloatArray]  # independent noise of this shape, from a mechanism
Kind = Literal["tree", "square-root"]

BLOCK_ENTRIES = 1 << 20  # how many numbers a Fourier transform handles at once


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

    def begin(self, shape: Shape) -> RunningNoise:
        """The noise of a new pass over vectors of this shape, before its first draw."""
        return running_noise(self.kind, self.leaves, shape)

    def source(self, rng: RandomGenerator, sensitivity: Sensitivity) -> Draw:
        """The independent draws that the noise of a pass is made of."""
        mechanism, of_a_pass = self._passes, sensitivity * row_norm(self.kind, self.leaves)
        return lambda shape: mechanism.noise(rng, of_a_pass, shape)


class RunningNoise(Protocol):
    """The noise on the running sums of `leaves` vectors, one after the other."""

    leaves: int

    def next(self, draw: Draw) -> FloatArray:
        """The noise on the sum of one vector more than the last time."""
        ...


def running_noise(kind: Kind, leaves: int, shape: Shape) -> RunningNoise:
    """Fresh noise for the running sums of at most `leaves` vectors of this shape."""
    return TreeNoise(leaves, shape) if kind == "tree" else SquareRootNoise(leaves, shape)


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


class TreeNoise:
    """Noise of a binary tree over the vectors: every node gets its own draw when its last leaf has come.

    A running sum is the sum of the completed subtrees that tile it, one for every 1 in the binary digits of its
    length. A node is known twice, from its own release and from those below; `reduced` takes the mean of the two
    with the least variance, which is half the plain variance for tall trees. Of the past only one vector per
    level is kept.
    """

    def __init__(self, leaves: int, shape: Shape, reduced: bool = True) -> None:
        self.leaves, self.reduced = leaves, reduced
        self.done = 0
        self.open = np.zeros((nodes_above(leaves), *shape))  # noise of the subtrees that tile the running sum

    def next(self, draw: Draw) -> FloatArray:
        _check_left(self.done, self.leaves)
        height = _trailing_ones(self.done)  # so many subtrees are completed together with this leaf
        draws = draw((height + 1, *self.open.shape[1:]))
        noise, variance = draws[0], 1.0
        for level in range(height):
            below = noise + self.open[level]
            self.open[level] = 0.0
            noise, variance = self._joined(draws[level + 1], below, 2.0 * variance)
        self.open[height] = noise
        self.done += 1
        return np.asarray(self.open.sum(axis=0))

    def _joined(self, own: FloatArray, below: FloatArray, variance_below: float) -> tuple[FloatArray, float]:
        """A node's noise from its own draw (variance 1) and from its two children."""
        if not self.reduced:
            return own, 1.0
        share = variance_below / (1.0 + variance_below)
        return share * own + (1.0 - share) * below, share


class SquareRootNoise:
    """Noise B z with independent z, B the square root of the matrix of running sums, drawn at the first call."""

    def __init__(self, leaves: int, shape: Shape) -> None:
        self.leaves, self.shape = leaves, shape
        self.done = 0
        self._noise: FloatArray | None = None

    def next(self, draw: Draw) -> FloatArray:
        _check_left(self.done, self.leaves)
        if self._noise is None:
            self._noise = times_square_root(draw((self.leaves, *self.shape)))
        self.done += 1
        return self._noise[self.done - 1]


def times_square_root(z: FloatArray) -> FloatArray:
    """B z by Fourier transforms, a block of columns at a time; z has one row per vector."""
    from scipy import fft

    leaves = z.shape[0]
    size = fft.next_fast_len(2 * leaves - 1, real=True)
    column = fft.rfft(square_root_column(leaves), size)
    flat = z.reshape(leaves, -1)
    product = np.empty_like(flat)
    block = max(1, BLOCK_ENTRIES // size)
    for start in range(0, flat.shape[1], block):
        part = fft.rfft(flat[:, start : start + block], size, axis=0) * column[:, None]
        product[:, start : start + block] = fft.irfft(part, size, axis=0)[:leaves]
    return product.reshape(z.shape)


def _check_left(done: int, leaves: int) -> None:
    """The noise is calibrated for a number of leaves; one more would be under-noised."""
    if done >= leaves:
        raise ValueError(f"the noise was made for {leaves} running sums, and all of them are used.")


def _trailing_ones(number: int) -> int:
    """How often a binary counter carries when it goes on from `number`."""
    return (~number & (number + 1)).bit_length() - 1
