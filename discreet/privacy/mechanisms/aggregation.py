"""Gaussian noise on running sums, and on sums over random samples of the rows.

Correlated noise for running sums: the sum of the first t vectors, for every t, costs little more than one sum. Two ways
to write the matrix of running sums as a product: a binary tree of partial sums, which needs a few vectors of memory and
may be saved and resumed, and the square root of the matrix, which needs less noise but keeps all vectors.
`RunningSumGaussian` states the cost and the grid of the releases; the two factorisations decide what is released of the
vectors, and compute the running sums from the releases alone. Proofs: docs/guarantees/ftrl.md.

For sums over samples the mechanism draws the sample as well as the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy import accounting
from discreet.privacy.mechanisms.additive import Gaussian, NoisyGrid, PricedByMultiplier, noise_scale, noisy_grid
from discreet.privacy.random.generator import PoissonSample, RandomGenerator
from discreet.privacy.relation import Relation, Sensitivity, clipped_sum

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
        """Take one vector more, on the grid, and return the sum of all so far with noise.

        Guarantee: costs a part of the pass; what is returned depends on the vectors only through releases of the grid.
        """
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
        """As `TreeSums.next`."""
        _check_left(self.done, self.leaves)
        self.vectors[self.done] = vector
        self.released[self.done] = grid.release(rng, self._latest(self.vectors))
        self.done += 1
        return self._latest(self.released, self.done - 1)

    def _latest(self, rows: FloatArray, last: int | None = None) -> FloatArray:
        """Row number `last` (that of the vector just taken) of B times the rows."""
        last = self.done if last is None else last
        return np.tensordot(self.column[last::-1], rows[: last + 1], axes=1)


# The running sums of `leaves` vectors, one after the other, from releases with noise alone.
RunningSums = TreeSums | SquareRootSums


def _check_left(done: int, leaves: int) -> None:
    """The noise is calibrated for a number of leaves; one more would be under-noised."""
    if done >= leaves:
        raise ValueError(f"the noise was made for {leaves} running sums, and all of them are used.")


def _trailing_ones(number: int) -> int:
    """How often a binary counter carries when it goes on from `number`."""
    return (~number & (number + 1)).bit_length() - 1


@dataclass(frozen=True)
class PoissonGaussian(PricedByMultiplier):
    """Gaussian noise on the clipped sum over a Poisson sample of the rows, `count` times.

    The multiplier is the standard deviation over the clipping norm C, not over the distance: the
    accountant's pair for the replace relation already shifts by +C on one side and -C on the other.

    Guarantee: the dominating pairs of docs/guarantees/sgd.md, composed as privacy-loss distributions.
    """

    multiplier: float
    rate: float
    count: int

    def _cost(self) -> Any:
        return accounting.poisson_event(self.rate, self.multiplier, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on a sum."""
        return noise_scale(self.multiplier, clip)

    def batches(self, rng: RandomGenerator, rows: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """Every row joins the batch of every step independently, with probability `rate`: (indptr, indices)."""
        return rng.poisson_batches(rows, self.rate, steps)

    def sample(self, rng: RandomGenerator, rows: int) -> PoissonSample:
        """The same batches as a sample that is known by its key, for rows that are not at hand all at once."""
        return rng.poisson_sample(rows, self.rate)

    def grid(self, clip: float, entries: int, rows: float = 1) -> NoisyGrid:
        """The grid and the noise of one sum; rounding makes the longest contribution sqrt(entries) / 2 steps longer."""
        return noisy_grid("normal", self.multiplier, clip, 0.5 * math.sqrt(entries), rows)


@dataclass(frozen=True)
class FixedSizeGaussian(PricedByMultiplier):
    """Gaussian noise on the clipped sum over a batch of fixed size drawn without replacement, `count` times.

    Whatever the relation, the row that leaves the batch is replaced by another one, so the pair shifts by
    2C: the multiplier is the standard deviation over 2C. Refused for add/remove, where n is private.

    Guarantee: the dominating pair of docs/guarantees/sgd.md, composed as a privacy-loss distribution.
    """

    multiplier: float
    rows: int
    batch: int
    count: int

    def _cost(self) -> Any:
        return accounting.fixed_size_event(self.rows, self.batch, self.multiplier, self.count)

    def scale(self, clip: float) -> float:
        """Standard deviation of the noise on a sum."""
        return noise_scale(self.multiplier, 2.0 * clip)

    def batches(self, rng: RandomGenerator, rows: int, steps: int) -> tuple[IndexArray, IndexArray]:
        """A uniformly random set of `batch` rows for every step: (indptr, indices)."""
        if rows != self.rows:
            raise ValueError(f"the mechanism is priced for {self.rows} rows, but the table has {rows}.")
        indptr = np.arange(steps + 1, dtype=np.int64) * self.batch
        if self.batch == 1:
            return indptr, rng.integers(rows, steps)
        indices = np.empty((steps, self.batch), dtype=np.int64)
        for chosen in indices:
            chosen[:] = rng.permutation(rows)[: self.batch]
        return indptr, indices.ravel()

    def grid(self, clip: float, entries: int, rows: float = 1) -> NoisyGrid:
        """The grid and the noise of one sum, in which one rounded contribution may take the place of another."""
        return noisy_grid("normal", self.multiplier, 2.0 * clip, math.sqrt(entries), rows)


# Adds noise to sums over random batches of the rows, each row clipped to norm `clip`.
SampledMechanism = PoissonGaussian | FixedSizeGaussian


@dataclass(frozen=True)
class AnchoredGaussian:
    """Gaussian noise on `anchors` sums over all rows and, after each of them, on `steps` sums over Poisson samples.

    One multiplier for both: it is that of the full sums (`full`), and `ratio` times it is that of the sampled
    sums (`sampled`), so that a calibration moves the two together.

    Guarantee: the product of the pairs of the two parts (docs/guarantees/svrg.md).
    """

    multiplier: float
    ratio: float
    rate: float
    anchors: int
    steps: int

    @property
    def full(self) -> Gaussian:
        """The mechanism of the sums over all rows."""
        return Gaussian(self.multiplier, self.anchors)

    @property
    def sampled(self) -> PoissonGaussian:
        """The mechanism of the sums over Poisson samples."""
        return PoissonGaussian(self.ratio * self.multiplier, self.rate, self.anchors * self.steps)

    @property
    def event(self) -> Any:
        return accounting.compose([self.full.event, self.sampled.event])


def anchored_ratio(relation: Relation, rate: float, steps: int, share: float) -> float:
    """The ratio at which the full sums take about this share of the squared Gaussian cost.

    A sampled sum of sensitivity D costs about (rate * D / multiplier)^2 when the noise is large. It is a rule of thumb
    for dividing the budget: the accountant prices the whole, whatever the ratio.
    """
    return clipped_sum(relation).l2 * rate * math.sqrt(steps * share / (1.0 - share))
