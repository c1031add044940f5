"""What a loss with several outputs needs beside the metric: the size of a row's slopes, and a curvature per output.

The metric belongs to the columns, so that all outputs share it: the gradient of a row is an outer product, whose
Frobenius norm in the metric is the norm of the slopes times that of the row. Proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import takes_tensors
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation
    from discreet.problem.blockwise import BlockwiseProblem, ScaledBlock
    from discreet.problem.losses import Loss

# The Hessian of the softmax loss is a graph's Laplacian, the curvatures being its degrees: it is at most twice the
# diagonal matrix of them. One-against-the-rest losses have no other entries, and a margin of 2 for directions that
# have more curvature than the mean of all.
COUPLING = 2.0


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


def learn_curvatures(
    scaled: BlockwiseProblem, w: FloatArray, part: Gaussian, relation: Relation, rng: RandomGenerator
) -> FloatArray:
    """A curvature for each output, so large that steps do not overshoot; at most the bound of the loss.

    The mean of the rows' curvatures at w is released, lifted by about as much as the lowest of as many normal
    numbers lies below 0, and multiplied by `COUPLING`.

    Guarantee: costs one event of the mechanism under the relation.
    """
    loss, noisy = scaled.problem.loss, part.multiplier > 0.0
    sensitivity = mechanisms.clipped_sum(relation, loss.outputs) * row_curvature_bound(loss)
    total = scaled.sum(partial(curvature_sum, w=w, table_rows=scaled.rows if noisy else None))
    mean = part.release(rng, total, sensitivity) / scaled.rows
    lift = math.sqrt(2.0 * math.log(loss.outputs)) * part.deviation(sensitivity) / scaled.rows
    return np.clip(COUPLING * (mean + lift), 0.0, loss.smoothness)


def quiet_curvatures(share: float, budget: Budget, rows: int, relation: Relation, loss: Loss) -> bool:
    """Whether the curvatures of balanced outputs would be told from the bound of the loss."""
    if share == 0.0 or budget.is_infinite:
        return False
    sensitivity = mechanisms.clipped_sum(relation) * row_curvature_bound(loss)
    lift = math.sqrt(2.0 * math.log(loss.outputs)) * mechanisms.additive(budget, share).deviation(sensitivity) / rows
    return COUPLING * lift < loss.smoothness
