"""Batches of rows, chosen without looking at any row, and proximal gradient steps on them, with noise or without.

What a block of stored rows adds to a sum over a batch are functions of the block and of numbers of the run. They may be
computed on another machine. What they hold beside public and released numbers is the key of the sample, from which
every block finds its own members of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IndexArray
from discreet.kernels.gradient import UNROUNDED, clipped_gradient_sum, clipped_slopes, margins_by_row, row_norms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import PoissonSample, RandomGenerator
from discreet.privacy.relation import Relation
from discreet.problem.scaled_block import MatrixBlock, ScaledBlock
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem, UnscaledProblem

NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class GradientSum:
    """The sum of the clipped gradients of the rows of a batch; without a sample, of all rows.

    Guarantee: as for `clipped_gradient_sum`, each row adds a vector of norm at most `clip`, before it is rounded.
    """

    w: FloatArray
    clip: float
    grid_step: float
    compiled: bool  # whether it is summed as by the kernels of the solver, or with matrix products
    sample: PoissonSample | None
    step: int  # which of the sample's batches

    def __call__(self, block: ScaledBlock) -> FloatArray:
        rows = MatrixBlock(block.X, block.y, block.weight, block.loss)
        if self.sample is not None:
            rows = members(block, self.sample, self.step)
        if self.compiled:
            return compiled_sum(rows, row_norms(rows.X), self.w, self.clip, self.grid_step, NONE)
        slopes = rows.loss.slope(margins_by_row(rows.X, self.w), rows.y)
        return clipped_gradient_sum(rows.X, slopes, row_norms(rows.X), self.clip, rows.weight, self.grid_step)


@dataclass(frozen=True, eq=False)
class DifferenceSum:
    """The sum of the clipped differences of the rows' gradients at w and at the anchor, over the norm `limit`.

    Guarantee: each row adds a vector of norm at most 1 before it is rounded to multiples of the grid's step; without
    noise, when that is 0, at most `limit`.
    """

    w: FloatArray
    anchor: FloatArray
    clip: float
    limit: float
    grid_step: float
    compiled: bool
    sample: PoissonSample
    step: int

    def __call__(self, block: ScaledBlock) -> FloatArray:
        rows = members(block, self.sample, self.step)
        norms = row_norms(rows.X)
        if self.compiled:
            from discreet.kernels.lanes import arrays_of
            from discreet.kernels.stochastic import add_differences

            change, weight = np.zeros(self.w.size), NONE if rows.weight is None else rows.weight
            loss = (rows.loss.code, float(rows.loss.parameter))
            limits = (self.grid_step, self.anchor, self.clip, self.limit)
            add_differences(arrays_of(rows.X), norms, rows.y, weight, *loss, *limits, self.w, change)
            return change * (self.grid_step or UNROUNDED)
        held = clipped_slopes(rows.loss.slope(margins_by_row(rows.X, self.anchor), rows.y), norms, self.clip, None)
        slopes = rows.loss.slope(margins_by_row(rows.X, self.w), rows.y)
        return difference_sum(rows, slopes, held, norms, self.clip, self.limit, self.grid_step)


def difference_sum(
    rows: MatrixBlock, slopes: FloatArray, held: FloatArray, norms: FloatArray, clip: float, limit: float, step: float
) -> FloatArray:
    """The sum of the rows' differences with matrix products, over their limit if it is rounded.

    `held` are the clipped slopes at the anchor.
    """
    moved = clipped_slopes(slopes, norms, clip, None) - held
    if step == 0.0:
        return clipped_gradient_sum(rows.X, moved, norms, limit, rows.weight)
    return clipped_gradient_sum(rows.X, moved / limit, norms, 1.0, rows.weight, step)


def members(block: ScaledBlock, sample: PoissonSample, step: int) -> MatrixBlock:
    """The rows of a block that are in the batch of a step."""
    chosen = sample.members(step, block.start, block.start + block.y.size)
    return block.some(chosen - block.start)


def compiled_sum(
    rows: MatrixBlock, norms: FloatArray, w: FloatArray, clip: float, grid_step: float, held: FloatArray
) -> FloatArray:
    """The sum of the rows' clipped gradients by the arithmetic of the compiled steps; `held` is filled if not empty."""
    from discreet.kernels.lanes import arrays_of
    from discreet.kernels.stochastic import add_gradients

    gradient, unit = np.zeros(w.size), grid_step or UNROUNDED
    loss, weight = (rows.loss.code, float(rows.loss.parameter)), NONE if rows.weight is None else rows.weight
    add_gradients(arrays_of(rows.X), norms, rows.y, weight, *loss, unit, clip, w, gradient, held)
    return gradient * unit


BATCHES_OF_A_FILE = (
    "every step reads the whole table, which is stored, and uses {rate:.2g} of its rows; gd uses all rows of a pass"
)


def sampling_lowers_cost(budget: Budget) -> bool:
    """Whether a random sample of the rows costs less than all of them, in the definition of the budget.

    In mu-GDP and rho-zCDP it does not: docs/guarantees/sgd.md, Theorem 4.
    """
    return budget.kind not in ("gdp", "zcdp") or budget.is_infinite


def batch_rows(asked: int | None, default: float, rows: int, budget: Budget) -> int:
    """The expected size of a Poisson batch: as asked, or the default, or all rows where a sample costs as much."""
    if asked is None and not sampling_lowers_cost(budget):
        return rows
    return min(rows, int(asked if asked is not None else default))


def assign_rows(
    relation: Relation, rows: int, parts: int, part_rows: int, rng: RandomGenerator, shuffle: bool = True
) -> list[IndexArray]:
    """The rows of each part: at most `part_rows`, or any number where the number of rows is private."""
    if relation is Relation.ADD_REMOVE:
        # Each row draws its own part: one row more or less leaves the others where they are.
        part = rng.integers(parts, rows)
        ends = np.cumsum(np.bincount(part, minlength=parts))
        return np.split(np.argsort(part, kind="stable"), ends[:-1])
    order = rng.permutation(rows) if shuffle else np.arange(rows, dtype=np.int64)
    return [order[start : start + part_rows] for start in range(0, rows, part_rows)]


class BatchSteps:
    """Weights, the sum of the latest iterates and everything the kernels need, for one run.

    Gradients of rows are clipped to norm `clip`; their sum is divided by `batch`, whatever the size of a batch is.
    With noise each row's gradient is rounded to multiples of `grid_step` (0: no noise).
    """

    def __init__(self, scaled: ScaledProblem, clip: float, length: float, batch: float, grid_step: float = 0.0) -> None:
        self.grid_step = grid_step
        self.scaled, self.clip, self.length, self.batch = scaled, clip, length, float(batch)
        self.norms = scaled.norms()
        self.weight = scaled.kernel_weight
        self.w = np.array(scaled.start())
        self.total = np.zeros(scaled.shape)

    def run(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        """One step per batch, whose iterates are summed up in `total`.

        Batches and noise, in multiples of the grid's step, were drawn before.
        """
        self.total[:] = 0.0
        if self.scaled.outputs > 1 or not self.scaled.problem.separable:
            self._with_matrix_products(indptr, indices, noise)
        else:
            rows = (self.norms, self.scaled.y, self.weight)
            move_compiled(self, self.scaled.X, rows, (indptr, indices), noise)

    def _with_matrix_products(self, indptr: IndexArray, indices: IndexArray, noise: FloatArray) -> None:
        scaled, loss = self.scaled, self.scaled.problem.loss
        for t in range(indptr.size - 1):
            chosen = indices[indptr[t] : indptr[t + 1]]
            X, y = scaled.X[chosen], scaled.y[chosen]
            slopes = loss.slope(margins_by_row(X, self.w), y)
            weight = None if scaled.weight is None else scaled.weight[chosen]
            total = clipped_gradient_sum(X, slopes, self.norms[chosen], self.clip, weight, self.grid_step) + noise[t]
            self.w = scaled.prox(self.w - self.length / self.batch * total, self.length)
            self.total += self.w


class StoredBatchSteps:
    """The steps of `BatchSteps` on rows that are read block by block, a pass for each batch; with the same bits.

    Sums of rounded gradients are exact, and w moves by the same kernel, which is given no row and their sum as noise.
    """

    def __init__(self, scaled: UnscaledProblem, clip: float, length: float, batch: float, grid_step: float) -> None:
        self.scaled, self.clip, self.length, self.batch = scaled, clip, length, float(batch)
        self.grid_step, self.compiled = grid_step, scaled.outputs == 1 and scaled.problem.separable
        self.w = np.array(scaled.start())
        self.total = np.zeros(scaled.shape)

    def run(self, sample: PoissonSample, noise: FloatArray) -> None:
        """One step for each line of the noise, in the order of the samples."""
        self.total[:] = 0.0
        for t in range(noise.shape[0]):
            part = GradientSum(self.w.copy(), self.clip, self.grid_step, self.compiled, sample, t)
            self._move(self.scaled.sum(part) + noise[t])

    def _move(self, gradient: FloatArray) -> None:
        if self.compiled:
            nobody = (np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64))
            move_compiled(self, np.empty((0, self.w.size)), (NONE, NONE, NONE), nobody, gradient[None])
            return
        self.w = self.scaled.prox(self.w - self.length / self.batch * gradient, self.length)
        self.total += self.w


def move_compiled(
    steps: BatchSteps | StoredBatchSteps,
    X: Any,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    batches: tuple[IndexArray, IndexArray],
    noise: FloatArray,
) -> None:
    """Let the kernels make one step per batch of these rows, which have norms, targets and weights."""
    from discreet.kernels import stochastic
    from discreet.kernels.lanes import arrays_of

    c, loss, unit = steps.scaled.penalty_terms, steps.scaled.problem.loss, steps.grid_step or UNROUNDED
    arguments = (*rows, loss.code, float(loss.parameter), *batches, noise / unit)
    settings = (unit, steps.clip, steps.length, steps.batch, c.l1, c.l2, c.low, c.high)
    plain = not sp.issparse(X) and not c.l1.any() and c.free
    stochastic.steps(arrays_of(X), *arguments, *settings, plain, steps.w, steps.total)


def full_table_steps(scaled: BlockwiseProblem, length: float) -> Iterator[FloatArray]:
    """The weights after each step without end, all rows being the batch: without noise no other batch is better."""
    if not isinstance(scaled, ScaledProblem):
        yield from _stored_steps(scaled, length)
        return
    steps = BatchSteps(scaled, np.inf, length, scaled.rows)
    everything = np.arange(scaled.X.shape[0], dtype=np.int64)
    zero_noise = np.zeros((1, *scaled.shape))
    while True:
        steps.run(np.array([0, everything.size], dtype=np.int64), everything, zero_noise)
        yield steps.w


def _stored_steps(scaled: BlockwiseProblem, length: float) -> Iterator[FloatArray]:
    w = scaled.start()
    while True:
        w = scaled.prox(w - length * scaled.gradient(w), length)
        yield w
