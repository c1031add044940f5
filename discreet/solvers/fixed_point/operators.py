"""Operators u -> R(u) that know how far they bring two points together, and can be composed.

An operator is L-Lipschitz if |R(u) - R(v)| <= L |u - v| for all u and v: non-expansive with L = 1, contractive with
L < 1. It is a-averaged, with 0 < a <= 1, if R = (1 - a) I + a N with a non-expansive N; every non-expansive operator is
1-averaged. The iteration u <- R(u) converges to a fixed point, if there is one, wherever R is a-averaged with a < 1.
The steps that optimisation is made of (gradient, proximal, forward-backward, Douglas-Rachford) come last. Proofs of all
constants: docs/guarantees/fixed-point.md. Nothing here reads rows or adds noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from discreet._common.checks import number_in
from discreet._common.types import FloatArray

Map = Callable[[FloatArray], FloatArray]


class Operator(ABC):
    """A map of vectors with its constants.

    Attributes
    ----------
    lipschitz : float
        A Lipschitz constant; it may be above 1.
    averaged : float or None
        An a such that the operator is a-averaged; None if it is not known to be non-expansive.
    """

    @abstractmethod
    def __call__(self, u: FloatArray) -> FloatArray:
        """Return R(u); u is left as it is."""

    @property
    @abstractmethod
    def lipschitz(self) -> float: ...

    @property
    @abstractmethod
    def averaged(self) -> float | None: ...

    @property
    def reflected_lipschitz(self) -> float:
        """A Lipschitz constant of 2 R - I."""
        firm = self.averaged is not None and self.averaged <= 0.5
        return 1.0 if firm else 1.0 + 2.0 * self.lipschitz

    def __matmul__(self, inner: Operator) -> Operator:
        """Return u -> self(inner(u))."""
        return Composition(self, inner)

    def then(self, outer: Operator) -> Operator:
        """Return u -> outer(self(u))."""
        return Composition(outer, self)


@dataclass(frozen=True)
class NonExpansive(Operator):
    """Any map for which the caller states a Lipschitz constant of at most 1.

    Fixed points: those of the map.

    Parameters
    ----------
    map : callable
        The map itself.
    lipschitz_constant : float
        Its constant; below 1 for a contraction.
    """

    map: Map
    lipschitz_constant: float

    def __post_init__(self) -> None:
        number_in("lipschitz_constant", self.lipschitz_constant, 0.0, 1.0)

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.map(u)

    @property
    def lipschitz(self) -> float:
        return float(self.lipschitz_constant)

    @property
    def averaged(self) -> float:
        return averaged_by_contraction(self.lipschitz)


@dataclass(frozen=True)
class Reflection(Operator):
    """2 R - I: as far beyond R(u) as u was before it.

    Fixed points: those of R. Non-expansive if R is 1/2-averaged.

    Parameters
    ----------
    operator : Operator
        R.
    """

    operator: Operator

    def __call__(self, u: FloatArray) -> FloatArray:
        return 2.0 * self.operator(u) - u

    @property
    def lipschitz(self) -> float:
        return self.operator.reflected_lipschitz

    @property
    def averaged(self) -> float | None:
        inner = self.operator.averaged
        twice = math.inf if inner is None else 2.0 * inner
        return _least(twice, averaged_by_contraction(self.lipschitz))


@dataclass(frozen=True)
class Relaxation(Operator):
    """(1 - weight) I + weight R.

    Fixed points: those of R. A weight above 1 is allowed; the operator is non-expansive as long as R is averaged with
    at most 1 / weight.

    Parameters
    ----------
    operator : Operator
        R.
    weight : float
        How much of R.
    """

    operator: Operator
    weight: float

    def __post_init__(self) -> None:
        number_in("weight", self.weight, 0.0, above=True)

    def __call__(self, u: FloatArray) -> FloatArray:
        return u + self.weight * (self.operator(u) - u)

    @property
    def lipschitz(self) -> float:
        by_parts = abs(1.0 - self.weight) + self.weight * self.operator.lipschitz
        return min(by_parts, 1.0) if self._product() <= 1.0 else by_parts

    @property
    def averaged(self) -> float | None:
        return _least(self._product(), averaged_by_contraction(self.lipschitz))

    def _product(self) -> float:
        inner = self.operator.averaged
        return math.inf if inner is None else self.weight * inner


@dataclass(frozen=True)
class Composition(Operator):
    """u -> outer(inner(u)).

    Fixed points: the u with u = outer(inner(u)). If one of the two is averaged with a number below 1, and they have
    common fixed points, these are all.

    Parameters
    ----------
    outer, inner : Operator
        What is applied last, and what is applied first.
    """

    outer: Operator
    inner: Operator

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.outer(self.inner(u))

    @property
    def lipschitz(self) -> float:
        return self.outer.lipschitz * self.inner.lipschitz

    @property
    def averaged(self) -> float | None:
        first, second = self.inner.averaged, self.outer.averaged
        together = math.inf
        if first is not None and second is not None:
            both = first * second
            together = 1.0 if max(first, second) == 1.0 else (first + second - 2.0 * both) / (1.0 - both)
        return _least(together, averaged_by_contraction(self.lipschitz))


def averaged_by_contraction(lipschitz: float) -> float:
    """The a for which every operator of this Lipschitz constant is a-averaged; infinite above 1."""
    return 0.5 * (1.0 + lipschitz) if lipschitz <= 1.0 else math.inf


def _least(*found: float) -> float | None:
    """The best of several proved numbers; None if none of them proves that the operator is averaged."""
    best = min(found)
    return best if best <= 1.0 else None


Prox = Callable[[FloatArray, float], FloatArray]


@dataclass(frozen=True)
class GradientStep(Operator):
    """u - length * gradient(u), for a convex function f whose gradient is `smoothness`-Lipschitz.

    Fixed points: the minimisers of f. Averaged with length * smoothness / 2 if that is at most 1.

    Parameters
    ----------
    gradient : callable
        The gradient of f.
    length : float
        Step length; up to 2 / smoothness the step is non-expansive.
    smoothness : float
        Lipschitz constant of the gradient.
    strong_convexity : float
        An m such that f - m/2 |u|^2 is convex; 0 for any convex f.
    """

    gradient: Map
    length: float
    smoothness: float
    strong_convexity: float = 0.0

    def __post_init__(self) -> None:
        number_in("length", self.length, 0.0, above=True)
        number_in("smoothness", self.smoothness, 0.0, above=True)
        number_in("strong_convexity", self.strong_convexity, 0.0, self.smoothness)

    def __call__(self, u: FloatArray) -> FloatArray:
        return u - self.length * self.gradient(u)

    @property
    def lipschitz(self) -> float:
        return max(abs(1.0 - self.length * self.strong_convexity), abs(1.0 - self.length * self.smoothness))

    @property
    def averaged(self) -> float | None:
        half = 0.5 * self.length * self.smoothness
        return half if half <= 1.0 else None


@dataclass(frozen=True)
class ProximalStep(Operator):
    """The minimiser of f(w) + |w - u|^2 / (2 length), for a convex function f.

    Fixed points: the minimisers of f. Always 1/2-averaged.

    Parameters
    ----------
    prox : callable
        prox(u, length) returns the minimiser.
    length : float
        Step length.
    strong_convexity : float
        An m such that f - m/2 |u|^2 is convex; 0 for any convex f.
    smoothness : float
        Lipschitz constant of the gradient of f; infinite where f has none. Only reflections use it.
    """

    prox: Prox
    length: float
    strong_convexity: float = 0.0
    smoothness: float = math.inf

    def __post_init__(self) -> None:
        number_in("length", self.length, 0.0, above=True)
        number_in("strong_convexity", self.strong_convexity, 0.0)
        if not self.smoothness >= self.strong_convexity:
            raise ValueError(f"smoothness must be at least strong_convexity, got {self.smoothness!r}.")

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.prox(u, self.length)

    @property
    def lipschitz(self) -> float:
        return 1.0 / (1.0 + self.length * self.strong_convexity)

    @property
    def averaged(self) -> float:
        return 0.5

    @property
    def reflected_lipschitz(self) -> float:
        """Both ends of the spectrum of 2 / (1 + length * curvature) - 1."""
        return max(abs(2.0 / (1.0 + self.length * m) - 1.0) for m in (self.strong_convexity, self.smoothness))


@dataclass(frozen=True)
class Projection(Operator):
    """The nearest point of a closed convex set: the proximal step of the function that is 0 on it.

    Fixed points: the set. Always 1/2-averaged.

    Parameters
    ----------
    project : callable
        project(u) returns the nearest point.
    """

    project: Map

    def __call__(self, u: FloatArray) -> FloatArray:
        return self.project(u)

    @property
    def lipschitz(self) -> float:
        return 1.0

    @property
    def averaged(self) -> float:
        return 0.5


def forward_backward(gradient_step: GradientStep, proximal_step: ProximalStep | Projection) -> Operator:
    """Return the proximal gradient step: the proximal step of g after a gradient step of f, of one length.

    Fixed points: the minimisers of f + g.
    """
    if isinstance(proximal_step, ProximalStep):
        _same_length(gradient_step.length, proximal_step.length)
    return gradient_step.then(proximal_step)


def douglas_rachford(last: ProximalStep | Projection, first: ProximalStep | Projection) -> Operator:
    """Return u + last(2 first(u) - u) - first(u), half of the identity and half of the product of both reflections.

    Fixed points: the u for which first(u) minimises the sum of the two functions. Consensus ADMM iterates it,
    with the mean over all holders and the proximal step of the penalty first (docs/guarantees/fixed-point.md).
    """
    if isinstance(last, ProximalStep) and isinstance(first, ProximalStep):
        _same_length(last.length, first.length)
    return Relaxation(Reflection(last) @ Reflection(first), 0.5)


def _same_length(one: float, other: float) -> None:
    if one != other:
        raise ValueError(f"both steps must have the same length, got {one!r} and {other!r}.")
