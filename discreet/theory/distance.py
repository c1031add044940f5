"""How far a private parameter vector can be from the one it would be without noise.

A law is about the norm |v|_Q = sqrt(sum_j q_j v_j^2) of the difference of two vectors, with public weights q. The score
of a row x then moves by at most |x|_(1/Q) times the distance: |x . v| <= sqrt(sum_j x_j^2 / q_j) |v|_Q. Theorems and
proofs: docs/guarantees/fairness.md. The norm of noise alone is what perturbations are about.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from discreet._common.checks import at_least_zero, number_in, one_of, whole
from discreet._common.types import FloatArray

NoiseKind = Literal["gaussian", "spherical"]
MANY_ENTRIES = 10**6  # from here on the difference of the logarithms of Gamma functions loses too many digits


@dataclass(frozen=True)
class NoiseNorm:
    """The norm of a random vector of `entries` numbers.

    Parameters
    ----------
    kind : {"gaussian", "spherical"}
        Independent normal entries of standard deviation `scale`, or the density proportional to exp(-norm / scale),
        which is the noise of pure differential privacy.
    scale : float
    entries : int

    Examples
    --------
    >>> from discreet.theory.distance import NoiseNorm
    >>> noise = NoiseNorm("gaussian", scale=2.0, entries=3)
    >>> noise.mean_square, round(noise.mean, 3)
    (12.0, 3.192)
    """

    kind: NoiseKind
    scale: float
    entries: int

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("gaussian", "spherical"))
        number_in("scale", self.scale, 0.0)
        whole("entries", self.entries, least=1)

    @property
    def mean(self) -> float:
        """The expected norm; of a million normal entries or more the slightly larger root of its mean square."""
        p = self.entries
        if self.kind == "spherical":
            return self.scale * p
        if p >= MANY_ENTRIES:
            return self.scale * math.sqrt(p)
        return self.scale * math.sqrt(2.0) * math.exp(math.lgamma(0.5 * (p + 1)) - math.lgamma(0.5 * p))

    @property
    def mean_square(self) -> float:
        """The expected squared norm."""
        p = self.entries
        return self.scale * self.scale * (p * (p + 1) if self.kind == "spherical" else p)

    def quantile(self, failure: float) -> float:
        """Return what the norm exceeds with probability `failure`."""
        return self.scale * norm_quantile(self.kind, self.entries, failure)


def norm_quantile(kind: NoiseKind, entries: int, failure: float) -> float:
    """What the norm of noise of scale 1 exceeds with probability `failure`."""
    from scipy.stats import chi, gamma

    failure = number_in("failure", failure, 0.0, 1.0, above=True)
    return float((gamma if kind == "spherical" else chi).isf(failure, entries))


# In units of the noise: beyond it SciPy's noncentral quantiles fail, and the triangle inequality costs next to nothing.
LARGEST_OFFSET = 1e4
LARGEST_CENTRE = 1e6  # the same for expected shortfalls: a squared offset
SMALLEST_NORM = 1e-150  # of a row that is not zero: smaller squares vanish, and a norm may never be understated


@dataclass(frozen=True, eq=False)
class DistanceLaw(ABC):
    """What is known of the distance between a private vector and its reference.

    Attributes
    ----------
    weights : array of shape (parameters,)
        The q_j of the norm, one per parameter of one output.
    outputs : int
        Number of outputs (classes) with such a vector each; the squared norms are added.
    reference : str
        Which vector the distance is to, in plain words.
    """

    weights: FloatArray
    outputs: int
    reference: str

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or weights.size == 0 or not ((weights > 0.0) & (weights < math.inf)).all():
            raise ValueError("weights must be a vector of positive, finite numbers.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "outputs", whole("outputs", self.outputs, least=1))
        for field in fields(self):
            if field.type in (float, "float"):  # lengths, squares of lengths, and factors
                object.__setattr__(self, field.name, at_least_zero(field.name, getattr(self, field.name)))

    @property
    def size(self) -> int:
        """Number of parameters of all outputs."""
        return self.outputs * self.weights.size

    @abstractmethod
    def radius(self, failure: float) -> float:
        """Return what the distance exceeds with probability at most `failure`."""

    def row_norms(self, rows: FloatArray) -> FloatArray:
        """|x|_(1/Q) of each row: how far its score can move per unit of distance."""
        norms = np.sqrt(np.square(rows / np.sqrt(self.weights)).sum(axis=1))
        return np.where(np.any(rows, axis=1), np.maximum(norms, SMALLEST_NORM), 0.0)


@dataclass(frozen=True, eq=False)
class KnownDistance(DistanceLaw):
    """A distance that is known, or bounded for certain."""

    distance: float

    def radius(self, failure: float) -> float:
        return self.distance


@dataclass(frozen=True, eq=False)
class GaussianDistance(DistanceLaw):
    """Independent Gaussian noise: sqrt(q_j) v_j has standard deviation `deviation`, up to an error of norm `error`.

    The norm of the noise has a chi distribution, whose quantiles are exact.
    """

    deviation: float
    error: float = 0.0

    def radius(self, failure: float) -> float:
        return self.error + self.deviation * norm_quantile("gaussian", self.size, failure)


@dataclass(frozen=True, eq=False)
class SphericalDistance(DistanceLaw):
    """Noise with density proportional to exp(-|v|_Q / scale): its norm has a Gamma distribution."""

    scale: float
    error: float = 0.0

    def radius(self, failure: float) -> float:
        return self.error + self.scale * norm_quantile("spherical", self.size, failure)


@dataclass(frozen=True, eq=False)
class ContractionDistance(DistanceLaw):
    """The last iterate of u <- R(u) + noise, for a contraction R of factor `contraction` in the norm of Q.

    The noise of a step has deviation `deviation` in each sqrt(q_j) v_j. The distance is never larger, in distribution,
    than that of the linear iteration with the same factor, whose square is a multiple of a noncentral chi-squared
    variable; the linear iteration attains it.
    """

    contraction: float
    deviation: float
    steps: int
    start: float
    error: float = 0.0

    def __post_init__(self) -> None:
        number_in("contraction", self.contraction, 0.0, 1.0)
        whole("steps", self.steps, least=1)
        super().__post_init__()

    def radius(self, failure: float) -> float:
        from scipy.stats import ncx2

        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        squared = self.contraction**2
        collected = float(self.steps) if squared == 1.0 else (1.0 - squared**self.steps) / (1.0 - squared)
        spread = self.deviation * math.sqrt(collected)
        left = self.contraction**self.steps * self.start
        if spread == 0.0:
            return self.error + left
        if left > LARGEST_OFFSET * spread:
            return self.error + left + spread * norm_quantile("gaussian", self.size, failure)
        return self.error + spread * math.sqrt(float(ncx2.isf(failure, self.size, (left / spread) ** 2)))


@dataclass(frozen=True, eq=False)
class AveragedContractionDistance(ContractionDistance):
    """The mean of the last `averaged` iterates of u <- R(u) + noise, for a contraction R.

    The quantile of a mean is at most the mean of the expected shortfalls (the mean beyond the quantile); that of a
    single iterate is at most the one of the noncentral chi law that dominates it: docs/guarantees/utility.md, section
    "Averages of iterates".
    """

    averaged: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole("averaged", self.averaged, least=1) > self.steps:
            raise ValueError(f"averaged must be at most steps={self.steps}; got {self.averaged}.")

    def radius(self, failure: float) -> float:
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        times = np.arange(self.steps - self.averaged + 1, self.steps + 1, dtype=np.float64)
        squared = self.contraction**2
        collected = times if squared == 1.0 else (1.0 - squared**times) / (1.0 - squared)
        spread, left = self.deviation * np.sqrt(collected), self.contraction**times * self.start
        return self.error + float(_shortfalls(self.size, spread, left, failure).mean())


@dataclass(frozen=True, eq=False)
class MomentDistance(DistanceLaw):
    """Only a bound on the expected squared distance is known: Markov's inequality."""

    expected_square: float

    def radius(self, failure: float) -> float:
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        return math.sqrt(self.expected_square / failure)


def _shortfalls(size: int, spread: FloatArray, left: FloatArray, failure: float) -> FloatArray:
    """Bounds on the expected shortfalls of |m + noise| with |m| = left and `size` entries of deviation `spread`.

    That of the norm is at most the root of that of its square, E[Y; Y > q] / failure, which for a noncentral
    chi-squared Y with k degrees of freedom and centre c is (k P(Y_{k+2} > q) + c P(Y_{k+4} > q)) / failure.
    """
    from scipy.stats import chi2, ncx2

    away = left + spread * math.sqrt(size * float(chi2.sf(chi2.isf(failure, size), size + 2)) / failure)
    near = (spread > 0.0) & (left <= math.sqrt(LARGEST_CENTRE) * spread)
    if near.any():
        s, centre = spread[near], (left[near] / spread[near]) ** 2
        q = ncx2.isf(failure, size, centre)
        beyond = size * ncx2.sf(q, size + 2, centre) + centre * ncx2.sf(q, size + 4, centre)
        exact = s * np.sqrt(beyond / failure)
        away[near] = np.where(np.isfinite(exact), np.minimum(exact, away[near]), away[near])
    return np.asarray(away)
