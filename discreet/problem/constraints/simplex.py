"""The simplex, and the projection onto it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in
from discreet.problem.arrays import Array, Values, extended_sum, floats
from discreet.problem.constraints.base import AxisPolytope


@dataclass(frozen=True, slots=True)
class Simplex(AxisPolytope):
    """Vectors of non-negative numbers that sum to total.

    Parameters
    ----------
    total : float, default=1.0
        Positive.

    Examples
    --------
    >>> from discreet.problem import Simplex
    >>> Simplex().project([2.0, 0.0])
    array([1., 0.])
    """

    total: float = 1.0

    name = "simplex"
    symmetric = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", number_in("total", self.total, 0.0, above=True))

    def project(self, v: Values) -> Array:
        return project_on_simplex(floats(v), self.total)

    def linear_oracle(self, gradient: Values) -> Array:
        slope = floats(gradient)
        answer = np.zeros_like(slope)
        answer.flat[slope.argmin()] = self.total
        return answer

    def contains(self, w: Values, tolerance: float = 1e-9) -> bool:
        point, slack = floats(w), self.total * tolerance
        return bool((point >= -slack).all()) and abs(extended_sum(point) - self.total) <= slack

    def diameter(self, size: int) -> float:
        return math.sqrt(2.0) * self.total if size > 1 else 0.0

    def support(self, u: Values) -> float:
        return self.total * float(floats(u).max())

    @property
    def vertex_norm(self) -> float:
        return self.total

    def scaled(self, factor: float) -> Simplex:
        return Simplex(factor * self.total)


def project_on_simplex(v: Array, total: float) -> Array:
    """Euclidean projection by sorting, after moving the largest entry to 0 and the total to 1.

    The projection ignores shifts, and an entry more than total below the largest ends at 0 whatever its
    value; so all arithmetic happens in [-1, 0], where 1e300 loses no more digits than 1.
    """
    with np.errstate(over="ignore"):
        shifted = np.maximum((v - v.max()) / total, -1.0)
    descending = np.sort(shifted, axis=None)[::-1]
    levels = (np.cumsum(descending) - 1.0) / np.arange(1, v.size + 1)
    threshold = levels[np.flatnonzero(descending > levels)[-1]]
    return total * np.maximum(shifted - threshold, 0.0)
