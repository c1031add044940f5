"""The laws of a distance that a gradient proves: read from the rows, or from a release with noise.

Theorem 5 of docs/guarantees/private-evaluation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet._common.checks import number_in
from discreet.theory.distance import DistanceLaw, KnownDistance, norm_quantile

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

LARGEST_RATIO = 1e3  # of the gradient to its noise: beyond, the plain bound is nearly as good, and safe to compute


@dataclass(frozen=True, eq=False)
class PlainGradientDistance(KnownDistance):
    """A distance that was computed from the rows without noise. Not private: for the owner of the rows only."""


@dataclass(frozen=True, eq=False)
class GradientDistance(DistanceLaw):
    """A distance bounded by a gradient that was released with noise.

    Guarantee: private as `guarantee` states.

    Attributes
    ----------
    residual : float
        Norm of the least subgradient, computed with the noisy gradient.
    scale : float
        Standard deviation of an entry of Gaussian noise, or scale of spherical Laplace noise.
    rounding : float
        How far rounding can have moved the gradient.
    spherical : bool
        Whether the noise is spherical Laplace noise.
    exact : bool
        Whether the subgradient is the true one plus the noise, as with l2 penalties alone.
    guarantee : Guarantee
        What is promised about this number.
    """

    residual: float
    scale: float
    rounding: float
    spherical: bool
    exact: bool
    guarantee: Guarantee

    def radius(self, failure: float) -> float:
        failure = number_in("failure", failure, 0.0, 1.0, above=True)
        seen = self.residual + self.rounding
        if self.scale == 0.0:
            return seen
        if self.exact and not self.spherical and seen <= LARGEST_RATIO * self.scale:
            return self.scale * max(_largest_norm(seen / self.scale, self.size, failure), 1.0)
        return seen + self.scale * norm_quantile("spherical" if self.spherical else "gaussian", self.size, failure)


def is_leaking(law: DistanceLaw | None) -> bool:
    """Whether a distance was read from rows without noise, so that nothing computed from it may be shown."""
    unpaid = isinstance(law, GradientDistance) and not law.guarantee.is_private
    return isinstance(law, PlainGradientDistance) or unpaid


def _largest_norm(seen: float, size: int, failure: float) -> float:
    """The largest |r| with which a standard normal vector around r is this short with probability at least `failure`.

    Bisection from above keeps to the side that is rejected: rounding cannot shorten the answer.
    """
    from scipy.special import chndtr

    low, high = 0.0, seen + norm_quantile("gaussian", size, failure)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if chndtr(seen**2, size, middle**2) >= failure:
            low = middle
        else:
            high = middle
    return high
