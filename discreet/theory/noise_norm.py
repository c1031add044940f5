"""The Euclidean norm of the two kinds of noise that are added to whole vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from discreet._common.checks import number_in, one_of, whole

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
    >>> from discreet.theory.noise_norm import NoiseNorm
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
