"""What a block of stored rows adds to a sum over a random batch: functions of the block and of numbers of the run.

They may be computed on another machine. What they hold beside public and released numbers is the key of the sample,
from which every block finds its own members of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray
from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes, margins_by_row, row_norms
from discreet.kernels.units import UNROUNDED
from discreet.privacy.random.generator import PoissonSample
from discreet.problem.scaled_block import MatrixBlock, ScaledBlock

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
            from discreet.kernels.table_rows import arrays_of
            from discreet.kernels.variance_reduced import add_differences

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
    from discreet.kernels.stochastic import add_gradients
    from discreet.kernels.table_rows import arrays_of

    gradient, unit = np.zeros(w.size), grid_step or UNROUNDED
    loss, weight = (rows.loss.code, float(rows.loss.parameter)), NONE if rows.weight is None else rows.weight
    add_gradients(arrays_of(rows.X), norms, rows.y, weight, *loss, unit, clip, w, gradient, held)
    return gradient * unit
