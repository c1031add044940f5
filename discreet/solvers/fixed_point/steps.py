"""The steps that optimisation is made of, as operators: gradient, proximal, forward-backward, Douglas-Rachford.

Proofs of all constants: docs/guarantees/fixed-point.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet._common.checks import number_in
from discreet._common.types import FloatArray
from discreet.solvers.fixed_point.operators import Map, Operator, Reflection, Relaxation

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
