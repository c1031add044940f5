"""What newton asks of a block of rows: functions of the block and of numbers that are public or have been released.

They may be computed on another machine, so none of them knows the run, its generator or its ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import takes_tensors
from discreet.problem.blockwise import ScaledBlock
from discreet.problem.person_gradients import (
    of_each_row,
    person_gradient_norms,
    person_gradient_sum,
    person_gradients,
    summed_weights,
)
from discreet.scaling import second_moment
from discreet.scaling.norm_bound import norm_counts
from discreet.scaling.second_moment import Metric

if TYPE_CHECKING:
    from discreet.problem.losses import Loss

# The Hessian of the softmax loss is a graph's Laplacian, the curvatures being its degrees: it is at most twice the
# diagonal matrix of them. One-against-the-rest losses have no other entries, and a margin of 2 for directions that
# have more curvature than the mean of all.
COUPLING = 2.0
NormsOf = Callable[[ScaledBlock], FloatArray]  # one norm per row of a block, or per person


def plain_norms(block: ScaledBlock) -> FloatArray:
    """The Euclidean norms of the rows."""
    return block.norms


def gradient_norms(block: ScaledBlock, w: FloatArray, metric: Metric) -> FloatArray:
    """The norms, in the metric, of the gradients that are clipped: of the rows, or of persons."""
    if block.persons is not None:
        return person_gradient_norms(person_gradients(block, w), metric.norms)
    return slope_norms(block.slopes(w)) * metric.norms_of(block)


@takes_tensors
def gradient_sum(block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, step: float) -> FloatArray:
    """The sum of the gradients, clipped in the metric and rounded to multiples of the step."""
    if block.persons is not None:
        return person_gradient_sum(block, w, metric.norms, clip, step)
    return block.gradient_sum(w, metric.norms_of(block), clip, step)


@takes_tensors
def counts_of_norms(block: ScaledBlock, norms: NormsOf, unit: float) -> FloatArray:
    """The weighted number of rows, or of persons, by their norm."""
    found = norms(block)
    weight = block.weight if found.size == block.y.size else summed_weights(block)
    return norm_counts(found, weight, unit)


@takes_tensors
def largest_norm(block: ScaledBlock, norms: NormsOf) -> FloatArray:
    """The largest norm. Not private."""
    return np.array([norms(block).max()])


@takes_tensors
def moment(block: ScaledBlock, radius: float, table_rows: int | None) -> FloatArray:
    """The sum of the outer products of the rows, shortened to the radius."""
    return second_moment.clipped_second_moment(block, block.norms, radius, block.weight, table_rows)


@takes_tensors
def metric_moment(block: ScaledBlock, metric: Metric, radius: float, table_rows: int | None) -> FloatArray:
    """The same of the rows in the metric."""
    norms = block.mapped_norms(metric.whitening)
    rows = (np.ones(norms.size), norms, radius, block.weight, table_rows)
    return second_moment.whitened_second_moment(block, metric, *rows)


@takes_tensors
def hessian(
    block: ScaledBlock, w: FloatArray, metric: Metric, clip: float, radius: float, table_rows: int | None
) -> FloatArray:
    """The same of the rows in the metric, times the roots of their curvatures."""
    factor, norms = root_curvatures(block, w, metric, clip), metric.norms_of(block)
    return second_moment.whitened_second_moment(block, metric, factor, norms, radius, block.weight, table_rows)


def curved_norms(block: ScaledBlock, w: FloatArray, metric: Metric, clip: float) -> FloatArray:
    """The norms of the rows in the metric, times the roots of their curvatures."""
    return root_curvatures(block, w, metric, clip) * metric.norms_of(block)


def root_curvatures(block: ScaledBlock, w: FloatArray, metric: Metric, clip: float) -> FloatArray:
    """The roots of the rows' curvatures, in units of their bound.

    A gradient that is clipped no longer changes with the weights, so that its row has no curvature; where persons
    have several rows, the person's gradient is the one that is clipped.
    """
    margins = block.margins(w)
    if block.persons is None:
        clipped = np.abs(block.slopes_at(margins)) * metric.norms_of(block) > clip
    else:
        clipped = of_each_row(gradient_norms(block, w, metric) > clip, block)
    curvature = np.clip(np.nan_to_num(block.curvatures_at(margins)) / block.loss.smoothness, 0.0, 1.0)
    return np.sqrt(np.where(clipped, 0.0, curvature))


def slope_norms(slopes: FloatArray) -> FloatArray:
    """The absolute value of each row's slope; with several outputs the Euclidean norm of its slopes."""
    return np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)


def row_curvature_bound(loss: Loss) -> float:
    """The norm to which the curvatures of a row, one per output, are shortened; no row of these losses exceeds it.

    Each curvature is at most the smoothness. Those of the softmax loss are p (1 - p) <= 1/4 and sum to less than 1, so
    that their squares sum to less than 1/4.
    """
    return 0.5 if loss.name == "multinomial" else loss.smoothness * math.sqrt(loss.outputs)


@takes_tensors
def curvature_sum(block: ScaledBlock, w: FloatArray, table_rows: int | None) -> FloatArray:
    """The weighted sum over rows of their curvatures, each row shortened to the bound on its norm.

    With `table_rows`, the public number of rows, entries are cut towards 0 to multiples of a power of two: sums of up
    to 8 times as many rows are then exact.
    """
    bound = row_curvature_bound(block.loss)
    rows = np.clip(np.nan_to_num(block.loss.curvature(block.margins(w), block.y)), 0.0, bound)
    rows *= (bound / np.maximum(np.linalg.norm(rows, axis=1), bound))[:, None]
    if block.weight is not None:
        rows *= block.weight[:, None]
    if table_rows is not None:
        unit = math.ldexp(1.0, math.ceil(math.log2(max(table_rows, 1))) + math.ceil(math.log2(bound)) - 49)
        rows = np.trunc(rows / unit) * unit
    return np.asarray(rows.sum(axis=0))
