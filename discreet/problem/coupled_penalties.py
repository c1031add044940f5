"""Penalties that tie coefficients together: known by their value and proximal map, not coordinate by coordinate.

Coordinate methods cannot take them; solvers whose only use of a penalty is its proximal map can (`admm`, `gd`, `sgd`,
`svrg`). All columns then have one common scale, since the penalty compares coefficients with each other, unless the
penalty says how it changes with the scales of the columns (`DirectionalL2`).
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

from discreet._common.checks import number_in
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
