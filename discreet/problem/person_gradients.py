"""The gradients of persons with several rows: the mean of a person's rows, clipped as a whole.

Nothing here adds noise. Sensitivity and proof: docs/guarantees/people.md, Theorem 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray, IntArray
from discreet.data.people import person_bounds
from discreet.kernels.gradient import clipped_gradient_sum

if TYPE_CHECKING:
    from discreet.problem.scaled_problem import ScaledBlock

NormsOf = Callable[[Any], FloatArray]  # of the rows of a matrix
LARGEST_ROW = 1e150  # above it the square of a row's gradient could overflow, and the row counts as 0


def person_gradients(block: ScaledBlock, w: FloatArray) -> list[Any]:
    """For each output, the weighted sums of the rows' gradients, person by person: (persons, columns), sparse if X is.

    A row whose gradient is not finite, or beyond all use, adds nothing.
    """
    if block.persons is None or block.weight is None:
        raise ValueError("this block has no persons with several rows.")
    slopes = np.atleast_2d(block.slopes(w).T)
    ends = person_bounds(block.persons)
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(slopes).all(axis=0) & (np.abs(slopes).max(axis=0) * block.norms < LARGEST_ROW)
    factors = np.where(usable, np.nan_to_num(slopes), 0.0) * block.weight
    return [_sums(each, ends) @ block.X for each in factors]


def person_gradient_norms(gradients: list[Any], norms: NormsOf) -> FloatArray:
    """The norm of each person's gradient, over all outputs."""
    if len(gradients) == 1:
        return norms(gradients[0])
    return np.asarray(np.sqrt(sum(norms(each) ** 2 for each in gradients)))


def person_gradient_sum(block: ScaledBlock, w: FloatArray, norms: NormsOf, clip: float, step: float) -> FloatArray:
    """The sum over persons of their gradients, each clipped to `clip` and then rounded to multiples of the step.

    Guarantee: every person, with however many rows, contributes a vector of norm at most clip, before it is rounded
    once.
    """
    gradients = person_gradients(block, w)
    size = person_gradient_norms(gradients, norms)
    factor = np.where(np.isfinite(size), 1.0, 0.0)
    if np.isfinite(clip):
        factor *= clip / np.fmax(size, clip) if clip > 0.0 else 0.0
    # The persons' gradients are rows of slope 1 that are clipped already.
    sums = [clipped_gradient_sum(each, factor, np.ones(factor.size), np.inf, None, step) for each in gradients]
    return sums[0] if w.ndim == 1 else np.stack(sums)


def summed_weights(block: ScaledBlock) -> FloatArray | None:
    """The weight of each person: that of all rows together, at most 1."""
    if block.persons is None or block.weight is None:
        return block.weight
    return np.add.reduceat(block.weight, person_bounds(block.persons)[:-1])


def of_each_row(values: Any, block: ScaledBlock) -> Any:
    """Values of persons, one after the other, for each of their rows."""
    if block.persons is None:
        return values
    return np.repeat(values, np.diff(person_bounds(block.persons)))


def _sums(factors: FloatArray, ends: IntArray) -> Any:
    """The matrix that adds up the rows of each person, each times its factor."""
    shape = (ends.size - 1, factors.size)
    return sp.csr_array((factors, np.arange(factors.size), ends), shape=shape)
