"""Separable penalties: sums over the coefficients (never the intercept) of convex functions of one number.

Every penalty here is l1 |w| + l2 / 2 w^2 on an interval [low, high], coordinate by coordinate, so these
four numbers per coordinate (`PenaltyTerms`) are all that a penalty defines; everything else follows. Penalties that tie
coefficients together are in `coupled_penalties.py`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from discreet._common.checks import number_in
from discreet.problem import constraints
from discreet.problem.arrays import Array, Values, extended_sum, floats


class PenaltyTerms(NamedTuple):
    """The penalty of each coordinate: l1 |w| + l2 / 2 w^2 if low <= w <= high, else infinity."""

    l1: Array
    l2: Array
    low: Array
    high: Array

    @property
    def free(self) -> bool:
        """Whether no coordinate has bounds."""
        return bool(np.isneginf(self.low).all() and np.isposinf(self.high).all())


def prox(v: Values, step: Values, penalty_terms: PenaltyTerms) -> Array:
    """Minimise (w - v)^2 / (2 step) + penalty(w) in each coordinate: shrink, scale, then clip.

    Parameters
    ----------
    v : array
        Points, one per coordinate.
    step : float or array
        Non-negative step, or one per coordinate.
    penalty_terms : PenaltyTerms
        The penalty of each coordinate.
    """
    with np.errstate(over="ignore"):
        shrunk = _shrink(floats(v), floats(step) * penalty_terms.l1)
        scaled = shrunk / (1.0 + floats(step) * penalty_terms.l2)
    return np.clip(scaled, penalty_terms.low, penalty_terms.high)


def signed_subgradient_distance(w: Values, gradient: Values, penalty_terms: PenaltyTerms) -> Array:
    """Signed distance of -gradient to the subdifferential at w in each coordinate, negative inside.

    It is 1-Lipschitz in the gradient; infinite where w breaks its bounds, minus infinity where low == high.
    """
    point, slope = floats(w), floats(gradient)
    l1, l2, low, high = penalty_terms
    with np.errstate(over="ignore"):
        smallest = np.where(point <= low, -np.inf, l2 * point + np.where(point > 0.0, l1, -l1))
        largest = np.where(point >= high, np.inf, l2 * point + np.where(point < 0.0, -l1, l1))
        distance = np.maximum(smallest + slope, -slope - largest)
    return np.where((low <= point) & (point <= high), distance, np.inf)


def prox_decrease_root(w: Values, gradient: Values, smoothness: Values, penalty_terms: PenaltyTerms) -> Array:
    """Root of twice the decrease that a proximal step of length 1/M promises, in each coordinate.

    With M the smoothness and psi the penalty it is sqrt(2 Q), Q = -min_a (g a + M a^2 / 2 + psi(w + a) - psi(w)), and
    1/sqrt(M)-Lipschitz in the gradient g. Q is not computed as that difference, whose terms may nearly cancel: the way
    from w to the minimum is cut at zero, and each piece adds a decrease that is a product of non-negative numbers.
    docs/guarantees/greedy-cd.md bounds the rounding.
    """
    point, slope, bound = floats(w), floats(gradient), floats(smoothness)
    l1, l2, low, high = penalty_terms
    with np.errstate(over="ignore"):
        curvature = bound + l2
        side = np.where(point != 0.0, np.sign(point), -np.sign(slope))
        whole = slope + l2 * point + side * l1  # the gradient at w, towards `side`
        inwards = (point != 0.0) & (whole * side > 0.0)
        # Towards zero: at most as far as zero, then beyond it, where |w| rises again.
        steep = np.where(inwards, np.abs(whole), 0.0)
        room = np.where(side > 0.0, point - low, high - point)
        first = _root_of_piece(steep, np.minimum(np.abs(point), room), curvature)
        beyond = np.maximum(steep - curvature * np.abs(point) - 2.0 * l1, 0.0)
        second = _root_of_piece(beyond, np.where(side > 0.0, -low, high), curvature)
        # Away from zero, or from zero itself: one piece.
        rising = np.where(inwards, 0.0, np.maximum(-whole * side, 0.0))
        away = _root_of_piece(rising, np.where(side > 0.0, high - point, point - low), curvature)
        return np.hypot(first, second) + away


def _root_of_piece(slope: Array, length: Array, curvature: Array) -> Array:
    """Root of twice the largest decrease of slope t - curvature t^2 / 2 over 0 <= t <= length."""
    t = np.minimum(slope / curvature, np.maximum(length, 0.0))
    return np.sqrt(t) * np.sqrt(2.0 * slope - curvature * t)


class Penalty(ABC):
    """A convex penalty of each coefficient alone; arrays of any shape are treated as one long vector.

    Solvers and compiled loops know such a penalty by its four numbers per coordinate. One that ties coefficients
    together, such as a group norm, is a `CoupledPenalty`.

    Attributes
    ----------
    name : str
        Short name, for tables and messages.
    separable : bool
        Whether it acts on each coefficient alone, as coordinate methods need.
    """

    __slots__ = ()
    name: ClassVar[str]
    separable: ClassVar[bool] = True

    @abstractmethod
    def penalty_terms(self, size: int) -> PenaltyTerms:
        """Return the penalty of each of that many coordinates, as compiled kernels need it."""

    @property
    def strong_convexity(self) -> float:
        """Largest m such that the penalty minus m / 2 ||w||^2 is convex."""
        return 0.0

    def check_columns(self, columns: int) -> None:  # noqa: B027 - most penalties fit any number of columns
        """Refuse a number of columns for which the penalty is not defined."""

    def value(self, w: Values) -> float:
        """Penalty of the coefficients, infinite where they break their bounds."""
        point = floats(w)
        l1, l2, low, high = self._terms_like(point)
        if not ((low <= point) & (point <= high)).all():
            return math.inf
        with np.errstate(over="ignore"):
            return float((l1 * np.abs(point) + 0.5 * l2 * point * point).sum())

    def prox(self, v: Values, step: Values) -> Array:
        """Minimise ||w - v||^2 / (2 step) + value(w)."""
        point = floats(v)
        return prox(point, step, self._terms_like(point))

    def subgradient_distance(self, w: Values, gradient: Values) -> Array:
        """Distance of -gradient to the subdifferential at w in each coordinate: all zero at an optimum."""
        point = floats(w)
        signed = signed_subgradient_distance(point, gradient, self._terms_like(point))
        return np.maximum(signed, 0.0)

    def conjugate(self, u: Values) -> float:
        """Supremum over w of <u, w> - value(w), possibly infinite."""
        slope = floats(u)
        l1, l2, low, high = self._terms_like(slope)
        shrunk = _shrink(slope, l1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            free = np.where(shrunk == 0.0, 0.0, shrunk / l2)
            best = np.clip(free, low, high)
            # Factored: u w and l2 w^2 may both overflow where their difference does not.
            terms = best * (slope - np.sign(best) * l1 - 0.5 * l2 * best)
        return extended_sum(np.where(np.isinf(best), np.inf, terms))

    def _terms_like(self, point: Array) -> PenaltyTerms:
        return PenaltyTerms(*(column.reshape(point.shape) for column in self.penalty_terms(point.size)))


@dataclass(frozen=True, slots=True)
class Zero(Penalty):
    """No penalty."""

    name = "zero"

    def penalty_terms(self, size: int) -> PenaltyTerms:
        return _unbounded(size, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class L1(Penalty):
    """The sum of absolute values, alpha ||w||_1, which sets small coefficients to zero.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.

    Examples
    --------
    >>> from discreet.problem import L1
    >>> L1(1.0).prox([3.0, 0.5], step=1.0)
    array([2., 0.])
    """

    alpha: float

    name = "l1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", self.alpha, 0.0))

    def penalty_terms(self, size: int) -> PenaltyTerms:
        return _unbounded(size, self.alpha, 0.0)


@dataclass(frozen=True, slots=True)
class L2(Penalty):
    """Half the sum of squares, alpha / 2 ||w||_2^2.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.

    Examples
    --------
    >>> from discreet.problem import L2
    >>> L2(1.0).prox([3.0, 0.5], step=1.0)
    array([1.5 , 0.25])
    """

    alpha: float

    name = "l2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", self.alpha, 0.0))

    @property
    def strong_convexity(self) -> float:
        return self.alpha

    def penalty_terms(self, size: int) -> PenaltyTerms:
        return _unbounded(size, 0.0, self.alpha)


@dataclass(frozen=True, slots=True)
class ElasticNet(Penalty):
    """A mixture, alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||_2^2), written as scikit-learn writes it.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.
    l1_ratio : float
        Share of the L1 norm, between 0 and 1.

    Examples
    --------
    >>> from discreet.problem import ElasticNet
    >>> ElasticNet(1.0, l1_ratio=0.5).value([2.0])
    2.0
    """

    alpha: float
    l1_ratio: float

    name = "elastic-net"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_in("alpha", self.alpha, 0.0))
        object.__setattr__(self, "l1_ratio", number_in("l1_ratio", self.l1_ratio, 0.0, 1.0))

    @property
    def strong_convexity(self) -> float:
        return self.alpha * (1.0 - self.l1_ratio)

    def penalty_terms(self, size: int) -> PenaltyTerms:
        return _unbounded(size, self.alpha * self.l1_ratio, self.strong_convexity)


@dataclass(frozen=True, slots=True, init=False)
class Box(Penalty):
    """The constraint low <= w <= high as a penalty: zero inside, infinite outside.

    Parameters
    ----------
    low, high : float or array
        Bounds of each coordinate; one number serves all, and they may be infinite.
    """

    limits: constraints.Box

    name = "box"
    digest_name = "discreet.problem.penalties.Box"  # the constraint has the same name

    def __init__(self, low: Values, high: Values) -> None:
        object.__setattr__(self, "limits", constraints.Box(low, high))

    def penalty_terms(self, size: int) -> PenaltyTerms:
        low, high = self.limits.bounds(size)
        return PenaltyTerms(np.zeros(size), np.zeros(size), low.copy(), high.copy())


def _shrink(v: Array, amount: Array) -> Array:
    return v - np.clip(v, -amount, amount)


def _unbounded(size: int, l1: float, l2: float) -> PenaltyTerms:
    return PenaltyTerms(*(np.full(size, constant) for constant in (l1, l2, -np.inf, np.inf)))
