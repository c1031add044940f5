"""Batches of rows, chosen without looking at any row, and proximal gradient steps on them, with noise or without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IndexArray
from discreet.kernels.gradient import clipped_gradient_sum, margins_by_row
from discreet.kernels.units import UNROUNDED
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import PoissonSample, RandomGenerator
from discreet.privacy.relation import Relation
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem, UnscaledProblem
from discreet.solvers._shared.batch_parts import NONE, GradientSum

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
    from discreet.kernels.table_rows import arrays_of

    c, loss, unit = steps.scaled.penalty_terms, steps.scaled.problem.loss, steps.grid_step or UNROUNDED
    arguments = (*rows, loss.code, float(loss.parameter), *batches, noise / unit)
    settings = (unit, steps.clip, steps.length, steps.batch, c.l1, c.l2, c.low, c.high)
    plain = not sp.issparse(X) and not c.l1.any() and bool(np.isinf(c.low).all() and np.isinf(c.high).all())
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
