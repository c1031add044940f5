"""How often rows change, as a function of the size of their margin; theorems 2 and 3 of docs/guarantees/harm.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet._common.types import FloatArray

BENDS = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)  # in deviations: where to cut an integral
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)  # of the rule between two cuts


class FlipCurve(Protocol):
    """A function of |margin| that lies between 0 and 1 and never increases."""

    def __call__(self, margins: FloatArray) -> FloatArray: ...

    @property
    def bends(self) -> list[float]:
        """Where the function bends, so that integrals are cut there; it is 0 beyond the last, up to rounding."""
        ...


@dataclass(frozen=True)
class NoiseCurve:
    """Gaussian noise: the probability that a row changes or, with `failure`, min(1, probability / failure).

    `noise` and `error` are in units of the score. The noise must be positive.
    """

    noise: float
    error: float = 0.0
    failure: float | None = None

    def __call__(self, margins: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        chance = ndtr((self.error - margins) / self.noise)
        return np.asarray(chance if self.failure is None else np.minimum(1.0, chance / self.failure))

    @property
    def bends(self) -> list[float]:
        from scipy.special import ndtri

        kink = 0.0 if self.failure is None else -float(ndtri(self.failure))
        # Beyond a far kink the curve falls faster than the noise: within 1 / kink deviations.
        beyond = [kink + part / max(1.0, kink) for part in (0.0, 1.0, 3.0, 10.0, 30.0)]
        return [self.error + self.noise * place for place in (*BENDS, *beyond)]


@dataclass(frozen=True)
class BallCurve:
    """A bound on how far scores move: rows with |margin| <= `reach` may change, no others do."""

    reach: float

    def __call__(self, margins: FloatArray) -> FloatArray:
        return (margins <= self.reach).astype(np.float64)

    @property
    def bends(self) -> list[float]:
        return [self.reach]


def integration_rule(cuts: Sequence[float], end: float) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre points and weights on [0, end], with a rule of its own between every two cuts."""
    inside = sorted({0.0, end, *(cut for cut in cuts if 0.0 < cut < end)})
    edges = np.array(inside)
    half = 0.5 * np.diff(edges)[:, None]
    points = edges[:-1, None] + half * (NODES + 1.0)
    return points.ravel(), (half * NODE_WEIGHTS).ravel()
