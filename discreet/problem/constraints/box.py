"""Bounds on each coordinate."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from discreet.problem.arrays import Array, Values, direction_and_norm, extended_sum, floats
from discreet.problem.constraints.base import SetAroundZero

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
