"""What a set has to offer, and two kinds of sets that offer more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from discreet.problem.arrays import Array, Values


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
