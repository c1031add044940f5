"""How far the result of gradient steps on a fixed sequence of batches can move between neighbouring tables.

A step never takes two runs farther apart, except the step on the batch that has the changed row. Theorem and proof:
docs/guarantees/bolt-on.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray, IndexArray
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.problem.losses import Loss


def batch_sum(relation: Relation) -> Sensitivity:
    """Sum over a batch of vectors of norm at most 1; if rows may be added, the weight of a batch is thinned to a limit.

    Guarantee: as `clipped_sum`; an added row may also displace as much weight of the others as it brings.
    """
    if relation is Relation.ADD_REMOVE:
        return mechanisms.clipped_sum(Relation.REPLACE)
    return mechanisms.clipped_sum(relation)


def path_end(
    relation: Relation, loss: Loss, radius: float, step: float, batch_rows: int, shrink: float, batches: int,
    passes: int, averaged: int = 0,
) -> Sensitivity:  # fmt: skip
    """The last iterate of so many passes over the batches, or the mean of the iterates of the last `averaged` passes.

    Rows have norm at most `radius`; a step divides the sum over its batch by `batch_rows`, and its proximal map brings
    points closer by the factor `shrink`.

    Guarantee: for steps of at most 2 / (smoothness radius^2), for any order of the batches that all passes share.
    """
    visits = shrink ** (1.0 + batches * np.arange(passes))
    # What is left of the moves of all visits to the changed row, after each pass that is averaged.
    remaining = float(np.cumsum(visits)[-max(averaged, 1) :].mean())
    l2 = batch_sum(relation).l2 * loss.lipschitz * radius * step / batch_rows * remaining
    return Sensitivity(l2, math.inf)


def rounding_of(farthest: float, steps: int, dimension: int) -> float:
    """How far roundings can move the end of gradient steps that stay within `farthest` of 0, between two tables.

    A step rounds each entry four times at most, by half a unit in the last place, on either table.
    """
    return 4.0 * steps * math.sqrt(dimension) * float(np.spacing(farthest))


def thinned(weight: FloatArray | None, rows: int, parts: Sequence[IndexArray], limit: float) -> FloatArray:
    """The weights of the rows, scaled down in every batch whose weight exceeds the limit."""
    result = np.ones(rows) if weight is None else weight.copy()
    for part in parts:
        result[part] *= min(1.0, limit / max(float(result[part].sum()), 1.0))
    return result
