"""The smoothness of chosen columns, measured where bounds alone are known."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import TERM_STEP, on_term_grid
from discreet.privacy import mechanisms
from discreet.problem.scaled_problem import BlockwiseProblem, ScaledProblem
from discreet.solvers._shared.coordinate_parts import sums_of_squares

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.solvers.greedy_coordinate_descent.solver import GreedyPlan


class MeasuredSmoothness:
    """The smoothness of the columns that were measured so far; what is measured several times is averaged.

    Parameters
    ----------
    bound : array
        Bounds on the smoothness of all coordinates, by the bounds of their columns.
    """

    def __init__(self, bound: FloatArray, scaled: BlockwiseProblem, plan: GreedyPlan) -> None:
        if not isinstance(plan.mechanism, mechanisms.GumbelGreedy):
            raise TypeError("only Gumbel selections are followed by a measurement.")
        self.bound, self.scaled = bound, scaled
        self.mechanism = plan.mechanism.of_measurement
        self.sensitivity = mechanisms.bounded_fractions(1).rounded(TERM_STEP, 1)
        self.total, self.times = np.zeros(bound.size), np.zeros(bound.size)
        self.largest = _largest_squares(scaled)
        self.squares: FloatArray | None = None

    def measure(self, j: int, rng: RandomGenerator) -> float:
        """The smoothness of coordinate j, after one more release of its mean square.

        Below twice the noise an estimate says only "small": that floor keeps steps within twice the right length.

        Guarantee: costs one measurement of the plan's mechanism.
        """
        value = np.array([self._sum_of_squares(j)])
        self.total[j] += float(self.mechanism.release(rng, value, self.sensitivity)[0])
        self.times[j] += 1
        if j >= self.scaled.scaling.columns:  # the intercept, whose column is public
            return float(self.bound[j])
        noise = self.mechanism.deviation(self.sensitivity) / math.sqrt(self.times[j])
        mean = max(self.total[j] / self.times[j], 2.0 * noise) / self.scaled.rows * self.largest[j]
        return float(self.bound[j]) * min(1.0, mean)

    def _sum_of_squares(self, j: int) -> float:
        """Of stored rows one pass finds those of all columns, which do not change; they stay here until released."""
        if isinstance(self.scaled, ScaledProblem):
            return _sum_of_squares(self.scaled, j, self.largest[j])
        if self.squares is None:
            self.squares = self.scaled.sum(partial(sums_of_squares, largest=self.largest))
        return float(self.squares[j])


def _largest_squares(scaled: BlockwiseProblem) -> FloatArray:
    """The unit of the squares of each column, from public and released numbers: about the largest one of its bulk.

    Entries are clipped up to sqrt(2) beyond the bulk, where few are: they count as at its end.
    """
    scaling = scaled.scaling
    reach = np.maximum(scaling.high - scaling.shift, scaling.shift - scaling.low) / scaling.scale
    squares = np.where(np.isfinite(reach), 0.5 * reach**2, 1.0)
    return np.append(np.maximum(squares, 1.0), np.ones(int(scaled.problem.fit_intercept)))


def _sum_of_squares(scaled: ScaledProblem, j: int, largest: float) -> float:
    """The weighted sum of the squared entries of column j over the largest one, rounded: exact in any order."""
    X, weight = scaled.X, scaled.weight
    if sp.issparse(X):
        stored = slice(X.indptr[j], X.indptr[j + 1])
        values, rows = X.data[stored], X.indices[stored]
        weight = None if weight is None else weight[rows]
    else:
        values = X[:, j]
    squares = np.minimum(np.asarray(values, dtype=np.float64) ** 2 / largest, 1.0)
    return float(on_term_grid(squares if weight is None else weight * squares).sum())
