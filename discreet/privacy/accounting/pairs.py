"""Dominating pairs: for each kind of release, the two laws that are hardest to tell apart.

A pair (P, Q) dominates a mechanism when no neighbouring tables have a larger hockey-stick divergence at any
epsilon. All that composition needs is the law of the privacy loss l = log(dP/dQ) under P and under Q, given
here by its tails: `above(x)` for x >= 0 and `below(x)` for x < 0, so that small masses keep their digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Array = NDArray[np.float64]
Tails = tuple[Array, Array]


class Pair(ABC):
    """The law of the privacy loss of a dominating pair."""

    @property
    def atom(self) -> float:
        """The largest loss with a probability of its own, worth a place on the grid; 0 if there is none."""
        return 0.0

    @abstractmethod
    def above(self, x: Array) -> Tails:
        """Return P(l > x) and Q(l > x) for x >= 0."""

    @abstractmethod
    def below(self, x: Array) -> Tails:
        """Return P(l <= x) and Q(l <= x) for x < 0."""


class _Symmetric(Pair):
    """A pair that swapping P and Q leaves unchanged."""

    def below(self, x: Array) -> Tails:
        p, q = self.above(-x)
        return q, p


@dataclass(frozen=True)
class SampledGaussianPair(Pair):
    """(1 - rate) N(0, 1) + rate N(shift, 1) against N(0, 1); rate = 1 is the plain Gaussian."""

    rate: float
    shift: float

    def above(self, x: Array) -> Tails:
        y = self._output_at(x)
        return (1 - self.rate) * ndtr(-y) + self.rate * ndtr(self.shift - y), ndtr(-y)

    def below(self, x: Array) -> Tails:
        y = self._output_at(x)
        return (1 - self.rate) * ndtr(y) + self.rate * ndtr(y - self.shift), ndtr(y)

    def _output_at(self, x: Array) -> Array:
        """Return the output whose loss is x; minus infinity when every loss is larger."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            small = np.log1p(np.expm1(np.minimum(x, 30.0)) / self.rate)
            large = x + np.log1p(-(1 - self.rate) * np.exp(-np.maximum(x, 30.0))) - math.log(self.rate)
        unsampled_loss = np.where(x > 30.0, large, small)
        reached = np.nan_to_num(unsampled_loss, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
        return reached / self.shift + 0.5 * self.shift


@dataclass(frozen=True)
class ReversedPair(Pair):
    """The pair (Q, P) of a pair (P, Q) whose loss has no atoms."""

    pair: Pair

    def above(self, x: Array) -> Tails:
        p, q = self.pair.below(-x)
        return q, p

    def below(self, x: Array) -> Tails:
        p, q = self.pair.above(-x)
        return q, p


@dataclass(frozen=True)
class FixedSizeGaussianPair(_Symmetric, SampledGaussianPair):
    """The piecewise pair of a batch of fixed size: `SampledGaussianPair` for l > 0, its mirror image for l < 0.

    The mass that neither half claims sits at l = 0 exactly.
    """


@dataclass(frozen=True)
class PoissonReplacePair(_Symmetric):
    """(1 - rate) N(0, 1) + rate N(shift, 1) against (1 - rate) N(0, 1) + rate N(-shift, 1)."""

    rate: float
    shift: float

    def above(self, x: Array) -> Tails:
        y = self._output_at(x)
        outside = (1 - self.rate) * ndtr(-y)
        return outside + self.rate * ndtr(self.shift - y), outside + self.rate * ndtr(-self.shift - y)

    def _output_at(self, x: Array) -> Array:
        """Solve l(y) = x: shift * y = x / 2 + asinh(sinh(x / 2) e^(shift^2 / 2) (1 - rate) / rate)."""
        log_ratio = math.log1p(-self.rate) - math.log(self.rate) + 0.5 * self.shift**2
        with np.errstate(divide="ignore"):
            log_argument = log_ratio + 0.5 * x + np.log(-np.expm1(-x)) - math.log(2.0)
        # asinh(a) = log(a + sqrt(a^2 + 1)), in a form that survives a = e^400.
        arc = np.where(
            log_argument < 20.0,
            np.arcsinh(np.exp(np.minimum(log_argument, 20.0))),
            log_argument + math.log(2.0),
        )
        return (0.5 * x + arc) / self.shift


@dataclass(frozen=True)
class LaplacePair(Pair):
    """Laplace noise of scale 1 / epsilon against its shift by one: atoms at l = -epsilon and l = epsilon."""

    epsilon: float

    @property
    def atom(self) -> float:
        return self.epsilon

    def above(self, x: Array) -> Tails:
        inside = x < self.epsilon
        p = 1.0 - 0.5 * np.exp(-0.5 * np.maximum(self.epsilon - x, 0.0))
        return np.where(inside, p, 0.0), np.where(inside, 0.5 * np.exp(-0.5 * (self.epsilon + x)), 0.0)

    def below(self, x: Array) -> Tails:
        inside = x >= -self.epsilon
        q = 1.0 - 0.5 * np.exp(-0.5 * np.maximum(self.epsilon + x, 0.0))
        return np.where(inside, 0.5 * np.exp(-0.5 * (self.epsilon - x)), 0.0), np.where(inside, q, 0.0)


@dataclass(frozen=True)
class BoundedRangePair(_Symmetric):
    """The pair with profile (1 - e^((x - epsilon) / 2))^2 / (1 - e^-epsilon), the worst of its range."""

    epsilon: float

    def above(self, x: Array) -> Tails:
        p = np.expm1(0.5 * (np.minimum(x, self.epsilon) - self.epsilon)) / math.expm1(-self.epsilon)
        return p, p * np.exp(-0.5 * (x + self.epsilon))


@dataclass(frozen=True)
class Atoms(Pair):
    """A loss with finitely many values, in increasing order, and perhaps some mass at infinity."""

    losses: Array
    masses: Array
    infinity: float = 0.0
    atom: float = 0.0

    def above(self, x: Array) -> Tails:
        first = np.searchsorted(self.losses, x, side="right")
        p = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0) + self.infinity
        q = np.append(np.cumsum(self._lower_masses()[::-1])[::-1], 0.0)
        return p[first], q[first]

    def below(self, x: Array) -> Tails:
        count = np.searchsorted(self.losses, x, side="right")
        p = np.append(0.0, np.cumsum(self.masses))
        q = np.append(0.0, np.cumsum(self._lower_masses()))
        return p[count], q[count]

    def _lower_masses(self) -> Array:
        # Beyond e^700 `pure` rounds the smaller mass up to e^-700; together they must not exceed one.
        return self.masses * np.exp(np.minimum(-self.losses, 700.0))


def randomised_response(noise: float, buckets: int) -> Atoms:
    """Return the pair of randomised response: truth with probability 1 - noise, else a uniform bucket."""
    other = noise / buckets
    truth = 1.0 - noise + other
    loss = math.log(truth / other)
    middle = other * (buckets - 2)
    return Atoms(np.array([-loss, 0.0, loss]), np.array([other, middle, truth]), atom=loss)


def pure(epsilon: float) -> Atoms:
    """Return the pair of randomised response with two buckets, the worst that is epsilon-DP."""
    lie = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    return Atoms(np.array([-epsilon, epsilon]), np.array([lie, 1.0 - lie]), atom=epsilon)


@dataclass(frozen=True)
class ShiftedTailsPair(Pair):
    """A loss with P(l > x) = min(1, tails * P(G > x - shift)) for x >= shift, G the loss of (N(mu), N(0)).

    With one tail this is shift + max(G, 0), with an atom at the shift. Q has the rest of its mass where P has none.
    """

    shift: float
    mu: float
    tails: int

    @property
    def atom(self) -> float:
        """The least loss; with one tail it has a probability of its own."""
        return self.shift + self.mu * (self._start + 0.5 * self.mu)

    @property
    def _start(self) -> float:
        """The least standard score of G that counts: at it the tails reach one, or the loss its shift."""
        return -0.5 * self.mu if self.tails == 1 else float(ndtri(1.0 - 1.0 / self.tails))

    @property
    def _upper_total(self) -> float:
        """The mass that Q gives to finite losses, E e^-l."""
        atom = float(ndtr(self._start)) if self.tails == 1 else 0.0
        return math.exp(-self.shift) * (atom + self.tails * float(ndtr(-self._start - self.mu)))

    def above(self, x: Array) -> Tails:
        score = (x - self.shift) / self.mu - 0.5 * self.mu
        counts = score >= self._start
        p = np.where(counts, np.minimum(self.tails * ndtr(-score), 1.0), 1.0)
        q = np.where(counts, math.exp(-self.shift) * self.tails * ndtr(-score - self.mu), self._upper_total)
        return p, q

    def below(self, x: Array) -> Tails:
        return np.zeros(x.shape), np.full(x.shape, 1.0 - self._upper_total)


@dataclass(frozen=True)
class GaussianMixturePair(Pair):
    """sum_i weights_i N(shifts_i, 1) against N(0, 1), with shifts >= 0 and at least one of them positive."""

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    def above(self, x: Array) -> Tails:
        y = self._output_at(x)
        return self._mix([ndtr(shift - y) for shift in self.shifts]), ndtr(-y)

    def below(self, x: Array) -> Tails:
        y = self._output_at(x)
        return self._mix([ndtr(y - shift) for shift in self.shifts]), ndtr(y)

    def _mix(self, parts: list[Array]) -> Array:
        return np.asarray(sum(w * part for w, part in zip(self.weights, parts, strict=True)))

    def _loss_and_slope(self, y: Array) -> Tails:
        exponents = np.array([s * y - 0.5 * s * s + math.log(w) for s, w in self._components()])
        top = exponents.max(axis=0)
        terms = np.exp(exponents - top)
        total = terms.sum(axis=0)
        return top + np.log(total), np.sum(np.array(self.shifts)[:, None] * terms, axis=0) / total

    def _components(self) -> list[tuple[float, float]]:
        return list(zip(self.shifts, self.weights, strict=True))

    def _output_at(self, x: Array) -> Array:
        """Find the output whose loss is x: Newton from above, where the convex loss makes it monotone."""
        floor = math.log(sum(w for s, w in self._components() if s == 0.0) or 5e-324)
        target = np.maximum(x, floor)
        bounds = [(target - math.log(w)) / s + 0.5 * s for s, w in self._components() if s > 0.0]
        y = np.min(bounds, axis=0)
        for _ in range(60):
            loss, slope = self._loss_and_slope(y)
            move = (loss - target) / np.maximum(slope, 1e-300)
            y = y - np.where(loss > target, move, 0.0)
            if np.all((loss - target <= 1e-15 * (1.0 + np.abs(target))) | (x <= floor)):
                break
        return np.where(x <= floor, -math.inf, y)
