"""Penalties that tie coefficients together: known by their value and proximal map, not coordinate by coordinate.

Coordinate methods cannot take them; solvers whose only use of a penalty is its proximal map can (`admm`, `gd`, `sgd`,
`svrg`). All columns then have one common scale, since the penalty compares coefficients with each other, unless the
penalty says how it changes with the scales of the columns (`DirectionalL2`).

That one is a ridge which is stronger along given directions. With c_k the difference of the mean rows of two groups,
c_k . w is the difference of their mean scores, whatever the intercept: docs/fair_models.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import ClassVar

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, number_in
from discreet._common.types import IndexArray
from discreet.problem.arrays import Array, Values, floats
from discreet.problem.penalties import Penalty, PenaltyTerms


class CoupledPenalty(Penalty):
    """A convex penalty that ties coefficients together.

    A subclass is a frozen dataclass with `name`, `value` and `prox`, and `strong_convexity` if it has any.
    `discreet.testing.check_penalty` tells whether they fit together.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from discreet.problem import CoupledPenalty
    >>> @dataclass(frozen=True)
    ... class Norm(CoupledPenalty):
    ...     name = "norm"
    ...     def value(self, w):
    ...         return float(np.linalg.norm(w))
    ...     def prox(self, v, step):
    ...         return np.asarray(v) * max(0.0, 1.0 - step / max(self.value(v), 1e-300))
    >>> Norm().prox([3.0, 4.0], 1.0)
    array([2.4, 3.2])
    """

    __slots__ = ()
    separable: ClassVar[bool] = False

    @abstractmethod
    def value(self, w: Values) -> float:
        """Penalty of the coefficients."""

    @abstractmethod
    def prox(self, v: Values, step: float) -> Array:  # type: ignore[override]
        """Minimise ||w - v||^2 / (2 step) + value(w); one step for all coordinates."""

    def penalty_terms(self, size: int) -> PenaltyTerms:
        raise TypeError(f"the {self.name} penalty ties coefficients together: it has no terms of single coordinates.")


class RescaledPenalty(CoupledPenalty):
    """A coupled penalty whose proximal map is known in scaled columns too, so that columns keep scales of their own."""

    __slots__ = ()

    @abstractmethod
    def scaled_prox(self, v: Values, step: float, gain: Array) -> Array:
        """Minimise ||u - v||^2 / (2 step) + value(gain * u): a column of scale s has the gain 1 / s, a frozen one 0."""


@dataclass(frozen=True, slots=True, init=False)
class GroupL2(CoupledPenalty):
    """The group lasso, alpha times the sum over groups of sqrt(size of the group) ||w_group||_2.

    It sets the coefficients of a whole group to zero together, for example all indicators of one category.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.
    groups : sequence
        The group of each column: one label per column, numbers or texts. Every column is in exactly one group.

    Examples
    --------
    >>> from discreet.problem import GroupL2
    >>> GroupL2(1.0, [0, 0, 1]).value([3.0, 4.0, 2.0])
    9.071067811865476
    >>> GroupL2(1.0, ["a", "a", "b"]).prox([3.0, 4.0, 0.5], step=1.0).round(3)
    array([2.151, 2.869, 0.   ])
    """

    alpha: float
    groups: tuple[Hashable, ...]

    name = "group-l2"

    def __init__(self, alpha: float, groups: Sequence[Hashable]) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", alpha, 0.0))
        object.__setattr__(self, "groups", _labels(groups))

    def check_columns(self, columns: int) -> None:
        if columns != len(self.groups):
            raise ValueError(f"groups names the groups of {len(self.groups)} columns, but there are {columns}.")

    def value(self, w: Values) -> float:
        norms, sizes = self._norms(floats(w))
        with np.errstate(over="ignore"):
            return float((self.alpha * sizes * norms).sum()) if self.alpha > 0.0 else 0.0

    def prox(self, v: Values, step: float) -> Array:  # type: ignore[override]
        point = floats(v)
        norms, sizes = self._norms(point)
        with np.errstate(over="ignore"):
            threshold = step * self.alpha * sizes
        left = np.where(norms > threshold, 1.0 - threshold / np.where(norms > threshold, norms, 1.0), 0.0)
        return point * left[_numbers(self.groups)]

    def _norms(self, point: Array) -> tuple[Array, Array]:
        """The norm of each group and sqrt(sizes); squares are of parts of its largest entry, which stay in range."""
        self.check_columns(point.size)
        numbers = _numbers(self.groups)
        sizes = np.bincount(numbers)
        largest = np.zeros(sizes.size)
        np.maximum.at(largest, numbers, np.abs(point))
        largest[largest == 0.0] = 1.0
        with np.errstate(over="ignore"):
            return largest * np.sqrt(np.bincount(numbers, (point / largest[numbers]) ** 2)), np.sqrt(sizes)


def _labels(groups: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """One label per column; in an array, labels of two types would become texts and the number 1 the text "1"."""
    labels = groups.tolist() if hasattr(groups, "tolist") else groups
    listed = isinstance(labels, Sequence) and not isinstance(labels, str | bytes)
    if not listed or not all(
        isinstance(label, str) or (isinstance(label, Real) and label < math.inf) for label in labels
    ):
        raise ValueError(f"groups must be a sequence with one label per column, a number or a text; got {groups!r}.")
    return tuple(labels)


@lru_cache(maxsize=64)
def _numbers(groups: tuple[Hashable, ...]) -> IndexArray:
    """The groups numbered in the order in which they appear."""
    known = {label: number for number, label in enumerate(dict.fromkeys(groups))}
    return np.array([known[label] for label in groups], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TotalVariation(CoupledPenalty):
    """The total variation of the coefficients in the order of the columns, alpha sum_j |w_{j+1} - w_j|.

    For columns with an order, such as lags or bins of one quantity: the coefficients become piecewise constant.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.

    Examples
    --------
    >>> from discreet.problem import TotalVariation
    >>> TotalVariation(1.0).prox([0.0, 0.0, 6.0, 7.0], step=1.0)
    array([0.5, 0.5, 6. , 6. ])
    """

    alpha: float

    name = "total-variation"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", self.alpha, 0.0))

    def value(self, w: Values) -> float:
        with np.errstate(over="ignore"):
            return float(self.alpha * np.abs(np.diff(floats(w))).sum()) if self.alpha > 0.0 else 0.0

    def prox(self, v: Values, step: float) -> Array:  # type: ignore[override]
        from discreet.kernels.total_variation import total_variation_prox

        point = floats(v)
        largest = float(np.abs(point).max(initial=0.0))
        with np.errstate(over="ignore"):  # more strength than twice the length changes nothing
            strength = min(self.alpha * step / largest, 2.0 * point.size) if largest > 0.0 else 0.0
        if point.size < 2 or strength == 0.0:
            return point.copy()
        return largest * total_variation_prox(point / largest, strength)


LARGEST_RATIO = 1e300  # of a penalty to a proximal step's own curvature: beyond, nothing is left along the direction
# Lengths below this, times the longest and the number of rows or columns, are rounding errors of a decomposition.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

Directions = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, init=False)
class DirectionalL2(RescaledPenalty):
    """Half the sum of squares, and more along given directions: alpha / 2 ||w||^2 + beta / 2 sum_k (c_k . w)^2.

    If c_k is the difference of the mean rows of two groups of people, c_k . w is the difference of their mean scores,
    and the penalty makes it small (Zafar et al. 2017, Lohaus et al. 2020). The directions are public numbers, as all
    of a penalty is: declare them, or take them from `discreet.fairness`.

    Columns keep scales of their own with this penalty, as they do with L2.

    Parameters
    ----------
    alpha : float
        Strength along every direction, at least 0.
    beta : float
        Additional strength along the given directions, at least 0.
    directions : array of shape (n_directions, n_features)
        The directions c_k, one per row, of any lengths; one direction may be given as a flat array. They may depend on
        each other; one that is shorter than a rounding error of the longest, in the scales of the columns, is none.

    Attributes
    ----------
    strong_convexity : float
        alpha; no more, as there may be coefficients that no direction sees.
    smoothness : float
        How fast the gradient changes at most: alpha + beta times the largest eigenvalue of sum_k c_k c_k'.

    Examples
    --------
    >>> from discreet.problem import DirectionalL2
    >>> penalty = DirectionalL2(1.0, 2.0, [[1.0, -1.0]])
    >>> penalty.value([3.0, 1.0]), round(penalty.smoothness, 6)
    (9.0, 5.0)
    >>> penalty.prox([3.0, 1.0], step=1.0).round(3)
    array([1.167, 0.833])
    """

    alpha: float
    beta: float
    directions: Directions

    name = "directional-l2"

    def __init__(self, alpha: float, beta: float, directions: Values) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", alpha, 0.0))
        object.__setattr__(self, "beta", number_in("beta", beta, 0.0))
        object.__setattr__(self, "directions", tuple(map(tuple, checked_directions(directions).tolist())))

    @property
    def strong_convexity(self) -> float:
        return self.alpha

    @property
    def smoothness(self) -> float:
        largest = float(np.linalg.svd(_matrix(self.directions), compute_uv=False)[0])
        return self.alpha + self.beta * largest**2

    def check_columns(self, columns: int) -> None:
        if columns != len(self.directions[0]):
            raise ValueError(f"directions has {len(self.directions[0])} columns, but there are {columns}.")

    def value(self, w: Values) -> float:
        unit, largest = self._unit(w)
        along = _matrix(self.directions) @ unit
        with np.errstate(over="ignore"):
            half = 0.5 * float(self.alpha * (unit @ unit) + self.beta * (along @ along))
            return float(np.float64(half) * largest * largest) if half > 0.0 else 0.0

    def gradient(self, w: Values) -> Array:
        """The gradient, alpha w + beta sum_k (c_k . w) c_k."""
        point, directions = floats(w), _matrix(self.directions)
        self.check_columns(point.size)
        return self.alpha * point + self.beta * (directions.T @ (directions @ point))

    def prox(self, v: Values, step: float) -> Array:  # type: ignore[override]
        return self.scaled_prox(v, step, np.ones(len(self.directions[0])))

    def scaled_prox(self, v: Values, step: float, gain: Array) -> Array:
        """In closed form: a diagonal matrix, and one whose rank is at most the number of directions."""
        unit, largest = self._unit(v)
        with np.errstate(over="ignore", under="ignore"):
            root = 1.0 / np.sqrt(1.0 + step * self.alpha * gain**2)  # the diagonal part alone divides by its square
            lengths, axes = _axes(_matrix(self.directions) * (gain * root))
            ratio = np.minimum(step * self.beta * lengths**2, LARGEST_RATIO)
            shrunk = root * unit
            shrunk -= axes.T @ (ratio / (1.0 + ratio) * (axes @ shrunk))
            return largest * (root * shrunk)

    def _unit(self, w: Values) -> tuple[Array, float]:
        """The coefficients divided by the largest of them, so that no square overflows."""
        point = floats(w)
        self.check_columns(point.size)
        largest = float(np.abs(point).max(initial=0.0)) or 1.0
        return point / largest, largest


def checked_directions(directions: Values) -> Array:
    """The directions as the rows of a matrix of finite numbers; one direction may be flat."""
    try:
        matrix = np.atleast_2d(floats(directions))
    except (TypeError, ValueError):
        raise ValueError("directions must be a table of numbers, one direction per row.") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"directions must have one row per direction and one column per feature; got {matrix.shape}.")
    if not (np.abs(matrix) <= LARGEST_THRESHOLD).all():
        raise ValueError(f"directions must be finite, and at most {LARGEST_THRESHOLD:g} in absolute value.")
    return matrix


def _axes(directions: Array) -> tuple[Array, Array]:
    """Lengths and orthonormal rows of what the directions span.

    Directions that depend on each other span less than their number. What the decomposition adds then has lengths that
    are rounding errors and points anywhere: an enormous strength would remove a part that no direction sees.
    """
    _, lengths, axes = np.linalg.svd(directions, full_matrices=False)
    clear = lengths > ROUNDING * max(directions.shape) * lengths[0]
    return lengths[clear], axes[clear]


@lru_cache(maxsize=64)
def _matrix(directions: Directions) -> Array:
    return np.array(directions)
