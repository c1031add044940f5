"""Confidence limits for ratios of counts that were released with noise: Fieller's method with exact quantiles.

Theorem 2 of docs/guarantees/private-evaluation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.metrics.released_sums import last_rejected

if TYPE_CHECKING:
    from discreet.privacy.mechanisms.additive import NoisyGrid

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts of disjoint bins with independent noise.

    Attributes
    ----------
    counts : array of shape (bins,)
        What was released.
    scale : float
        Standard deviation of normal noise, or scale of Laplace noise; 0: there is none.
    step : float
        Step of the grid that counts and noise were rounded to.
    law : {"normal", "laplace"}
        The law of the noise.
    """

    counts: FloatArray
    scale: float
    step: float
    law: Literal["normal", "laplace"]

    @classmethod
    def of(cls, counts: FloatArray, grid: NoisyGrid) -> NoisyCounts:
        """Counts that were released by a grid."""
        return cls(counts, grid.scale, grid.step, "laplace" if grid.law == "laplace" else "normal")

    def estimate(self, event: Mask, base: Mask) -> float:
        """The ratio of two noisy sums, moved into [0, 1]; NaN where the denominator is not positive."""
        whole = float(self.counts[base].sum())
        return float(np.clip(self.counts[event].sum() / whole, 0.0, 1.0)) if whole > 0.0 else math.nan

    def lower(self, event: Mask, base: Mask, failure: float) -> float:
        """What the ratio of the true sums over `event` and `base` is below with probability at most `failure`.

        `event` must be a part of `base`.
        """
        part, whole, noise = self._line(event, base, failure)
        return last_rejected(lambda u: part - u * whole > noise(u))

    def upper(self, event: Mask, base: Mask, failure: float) -> float:
        """What the ratio of the true sums over `event` and `base` exceeds with probability at most `failure`."""
        part, whole, noise = self._line(event, base, failure)
        return 1.0 - last_rejected(lambda u: part - (1.0 - u) * whole < -noise(1.0 - u))

    def _line(self, event: Mask, base: Mask, failure: float) -> tuple[float, float, Callable[[float], float]]:
        """Both noisy sums A and N, and the level that the noise of A - u N exceeds with probability `failure`."""
        inside, outside = int(event.sum()), int((base & ~event).sum())
        bins = max(inside + outside, 1)
        part, whole = float(self.counts[event].sum()), float(self.counts[base].sum())
        if self.law == "laplace":
            each = self.scale * math.log(max(bins / (2.0 * failure), 1.0)) + self.step
            return part, whole, lambda u: each * (inside * (1.0 - u) + outside * u)
        from scipy.special import ndtri

        unit = -float(ndtri(min(failure, 0.5))) * self.scale + self.step * math.sqrt(bins)
        return part, whole, lambda u: unit * math.sqrt(inside * (1.0 - u) ** 2 + outside * u**2)
