"""Balls around 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet._common.checks import number_in
from discreet.problem.arrays import Array, Values, direction_and_norm, extended_sum, floats
from discreet.problem.constraints.base import AxisPolytope, SetAroundZero
from discreet.problem.constraints.simplex import project_on_simplex


@dataclass(frozen=True, slots=True)
class L1Ball(AxisPolytope, SetAroundZero):
    """Vectors with sum of absolute values at most radius.

    Parameters
    ----------
    radius : float
        Positive.

    Examples
    --------
    >>> from discreet.problem import L1Ball
    >>> L1Ball(1.0).project([3.0, 1.0])
    array([1., 0.])
    """

    radius: float

    name = "l1-ball"
    symmetric = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", number_in("radius", self.radius, 0.0, above=True))

    def project(self, v: Values) -> Array:
        point = floats(v)
        magnitude = np.abs(point)
        if extended_sum(magnitude) <= self.radius:
            return point.copy()
        return np.sign(point) * project_on_simplex(magnitude, self.radius) + 0.0  # no -0.0

    def linear_oracle(self, gradient: Values) -> Array:
        slope = floats(gradient)
        answer = np.zeros_like(slope)
        best = np.abs(slope).argmax()
        answer.flat[best] = -math.copysign(self.radius, slope.flat[best])
        return answer

    def contains(self, w: Values, tolerance: float = 1e-9) -> bool:
        return extended_sum(np.abs(floats(w))) <= self.radius * (1.0 + tolerance)

    def diameter(self, size: int) -> float:
        return 2.0 * self.radius

    def support(self, u: Values) -> float:
        return self.radius * float(np.abs(floats(u)).max())

    def gauge(self, points: Array) -> Array:
        return np.asarray(np.linalg.norm(points, ord=1, axis=-1)) / self.radius

    def supports(self, rows: Array) -> Array:
        return self.radius * np.asarray(np.linalg.norm(rows, ord=np.inf, axis=-1))

    @property
    def vertex_norm(self) -> float:
        return self.radius

    def scaled(self, factor: float) -> L1Ball:
        return L1Ball(factor * self.radius)


@dataclass(frozen=True, slots=True)
class L2Ball(SetAroundZero):
    """Vectors of Euclidean norm at most radius.

    Parameters
    ----------
    radius : float
        Positive.

    Examples
    --------
    >>> from discreet.problem import L2Ball
    >>> L2Ball(1.0).project([3.0, 4.0])
    array([0.6, 0.8])
    """

    radius: float

    name = "l2-ball"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", number_in("radius", self.radius, 0.0, above=True))

    def project(self, v: Values) -> Array:
        point = floats(v)
        direction, norm = direction_and_norm(point)
        return point.copy() if norm <= self.radius else self.radius * direction

    def linear_oracle(self, gradient: Values) -> Array:
        return -self.radius * direction_and_norm(floats(gradient))[0]

    def contains(self, w: Values, tolerance: float = 1e-9) -> bool:
        return direction_and_norm(floats(w))[1] <= self.radius * (1.0 + tolerance)

    def diameter(self, size: int) -> float:
        return 2.0 * self.radius

    def support(self, u: Values) -> float:
        return self.radius * direction_and_norm(floats(u))[1]

    def gauge(self, points: Array) -> Array:
        return np.asarray(np.linalg.norm(points, axis=-1)) / self.radius

    def supports(self, rows: Array) -> Array:
        return self.radius * np.asarray(np.linalg.norm(rows, axis=-1))
