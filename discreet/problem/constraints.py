"""Convex sets that the coefficients (never the intercept) may be confined to; an array is one long vector."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from discreet._common.checks import number_in
from discreet.problem.arrays import Array, Values, direction_and_norm, extended_sum, floats

__all__ = ["AxisPolytope", "Box", "Constraint", "L1Ball", "L2Ball", "SetAroundZero", "Simplex"]


class Constraint(ABC):
    """A closed convex set; finite input of any size gives finite, NaN-free projections and oracle answers.

    Attributes
    ----------
    name : str
        Short name, for tables and messages.
    separable : bool
        Whether the set is a product of intervals, as coordinate methods need.
    """

    __slots__ = ()
    name: ClassVar[str]
    separable: ClassVar[bool] = False

    @abstractmethod
    def project(self, v: Values) -> Array:
        """Nearest point of the set."""

    @abstractmethod
    def linear_oracle(self, gradient: Values) -> Array:
        """Point s of the set with the least <gradient, s>; the first such vertex on a tie."""

    @abstractmethod
    def contains(self, w: Values, tolerance: float = 1e-9) -> bool:
        """Whether w is in the set, up to tolerance times its size (for a box, each coordinate's bounds)."""

    @abstractmethod
    def diameter(self, size: int) -> float:
        """Largest Euclidean distance between two points of the set in that many dimensions."""

    @abstractmethod
    def support(self, u: Values) -> float:
        """Largest <u, s> over the set."""

    def start(self, size: int) -> Array:
        """Return a feasible point that depends on no data."""
        return self.project(np.zeros(size))


class SetAroundZero(Constraint):
    """A set that contains 0: it is where its gauge is at most 1."""

    __slots__ = ()

    @abstractmethod
    def gauge(self, points: Array) -> Array:
        """Return, for each row, the factor by which the set must be scaled to reach it."""

    @abstractmethod
    def supports(self, rows: Array) -> Array:
        """Return the largest <x, s> over the set, for each row x: the dual norm if the gauge is a norm."""


class AxisPolytope(Constraint):
    """A set whose vertices lie on the axes, all at the same distance from 0.

    Attributes
    ----------
    symmetric : bool
        Whether the opposite of every vertex is a vertex too.
    """

    __slots__ = ()
    symmetric: ClassVar[bool]

    @property
    @abstractmethod
    def vertex_norm(self) -> float:
        """The distance of the vertices from 0."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the set with all its points multiplied by a positive factor."""

    def vertex(self, index: int, sign: float, size: int) -> Array:
        """Return the vertex on one axis, in that many dimensions; a negative sign needs a symmetric set."""
        point = np.zeros(size)
        point[index] = sign * self.vertex_norm
        return point

    def vertices(self, size: int) -> Array:
        """Return all vertices as rows: the positive ones first, then the negative ones."""
        corners = self.vertex_norm * np.eye(size)
        return np.concatenate([corners, -corners]) if self.symmetric else corners


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


_MOST_DIMENSIONS = 16  # in which all vertices are listed


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Box(SetAroundZero):
    """Vectors with low <= w <= high in each coordinate; one number serves all, and bounds may be infinite.

    Parameters
    ----------
    low, high : float or array
        Bounds of each coordinate.

    Examples
    --------
    >>> from discreet.problem import Box
    >>> Box(0.0, 1.0).project([3.0, -1.0])
    array([1., 0.])
    """

    low: Array
    high: Array

    name = "box"
    separable = True

    def __init__(self, low: Values, high: Values) -> None:
        lower, upper = _bound("low", low), _bound("high", high)
        if lower.ndim and upper.ndim and lower.size != upper.size:
            raise ValueError(f"low and high must have equal lengths, got {lower.size} and {upper.size}.")
        if not ((lower <= upper) & (lower < np.inf) & (upper > -np.inf)).all():
            raise ValueError("low must be at most high in every coordinate, and neither may be NaN.")
        for name, values in zip(("low", "high"), np.broadcast_arrays(lower, upper), strict=True):
            own = np.array(values + 0.0)  # -0.0 becomes 0.0, so that equal boxes have equal bytes
            own.setflags(write=False)
            object.__setattr__(self, name, own)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def bounds(self, size: int) -> tuple[Array, Array]:
        """Return low and high as (read-only) arrays of that length."""
        if self.low.ndim and self.low.size != size:
            raise ValueError(f"low and high have {self.low.size} entries, but there are {size} coefficients.")
        return np.broadcast_to(self.low, size), np.broadcast_to(self.high, size)

    def project(self, v: Values) -> Array:
        point = floats(v)
        return np.clip(point, *self._bounds_like(point))

    def linear_oracle(self, gradient: Values) -> Array:
        slope = floats(gradient)
        low, high = self._bounds_like(slope)
        answer = np.where(slope > 0.0, low, np.where(slope < 0.0, high, np.clip(0.0, low, high)))
        if not np.isfinite(answer).all():
            raise ValueError("low and high must be finite: the linear function is unbounded below on this box.")
        return answer

    def contains(self, w: Values, tolerance: float = 1e-9) -> bool:
        point = floats(w)
        low, high = self._bounds_like(point)
        sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (low, high)]
        slack = tolerance * np.maximum(*sizes)
        with np.errstate(over="ignore"):
            return bool(((low - slack <= point) & (point <= high + slack)).all())

    def vertices(self, size: int) -> Array:
        """All 2 ** size corners as rows, at most 16 dimensions."""
        if size > _MOST_DIMENSIONS:
            raise ValueError(f"size must be at most {_MOST_DIMENSIONS}: a box has 2 ** size vertices.")
        low, high = self.bounds(size)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError("low and high must be finite for a box to have all its vertices.")
        return np.array(list(itertools.product(*zip(low, high, strict=True))))

    def diameter(self, size: int) -> float:
        low, high = self.bounds(size)
        with np.errstate(over="ignore"):
            return direction_and_norm(high - low)[1]

    def support(self, u: Values) -> float:
        slope = floats(u)
        low, high = self._bounds_like(slope)
        corner = np.where(slope > 0.0, high, np.where(slope < 0.0, low, 0.0))
        with np.errstate(over="ignore"):
            return extended_sum(slope * corner)

    def gauge(self, points: Array) -> Array:
        low, high = self.bounds(points.shape[-1])
        if (low > 0.0).any() or (high < 0.0).any():
            raise ValueError("only a box that contains 0 has a gauge.")
        bound = np.where(points > 0.0, high, 0.0 - low)  # -low might be -0.0
        with np.errstate(divide="ignore"):
            shares = np.divide(np.abs(points), bound, out=np.zeros(points.shape), where=points != 0.0)
        return np.asarray(shares.max(axis=-1, initial=0.0))

    def supports(self, rows: Array) -> Array:
        low, high = self.bounds(rows.shape[-1])
        corner = np.where(rows > 0.0, high, np.where(rows < 0.0, low, 0.0))
        return np.asarray((rows * corner).sum(axis=-1))

    def _bounds_like(self, point: Array) -> tuple[Array, Array]:
        low, high = self.bounds(point.size)
        return low.reshape(point.shape), high.reshape(point.shape)

    def _key(self) -> tuple[object, ...]:
        return self.low.shape, self.low.tobytes(), self.high.tobytes()


def _bound(name: str, value: Values) -> Array:
    bound = floats(value)
    if bound.ndim > 1:
        raise ValueError(f"{name} must be a number or a one-dimensional array, got shape {bound.shape}.")
    return bound


CONSTRAINTS: dict[str, type[Constraint]] = {kind.name: kind for kind in (L1Ball, L2Ball, Box, Simplex)}
