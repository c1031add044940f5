"""What newton asks of a block of rows: functions of the block and of numbers that are public or have been released.

They may be computed on another machine, so none of them knows the run, its generator or its ledger.
"""

from __future__ import annotations

from collections.abc import Callable

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
from discreet.solvers.newton.several_outputs import slope_norms

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
