"""The points of an interval that a quantile may be, and their ranks among private values.

The interval has equally spaced points, fixed in advance, and `QuantileSelection` selects one of them by its rank.
Points between two neighbouring values share one rank, so they are kept as runs. What is released is a function of an
integer: its last digits hold no trace of the values around it. Theorem and proof: docs/guarantees/preprocessing.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.data.rows import exact_weights

# More points resolve wide ranges better, and make it harder for a value that many rows share to be found.
STEPS = 2**40
POINTS = STEPS + 1  # both ends are points


def place_of(values: FloatArray, low: float, high: float) -> IntArray:
    """The number of the point nearest to each value, clipped to [low, high]; low must be below high."""
    fraction = (np.clip(values, low, high) - low) / (high - low)
    return np.rint(fraction * STEPS).astype(np.int64)


def value_of(places: IntArray, low: float, high: float) -> FloatArray:
    """The values at the points with these numbers; whole numbers are met exactly in ranges of powers of two."""
    return np.clip(low + places / STEPS * (high - low), low, high)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of neighbouring points with the same ranks: the empty stretches, and each point that has values.

    `below` is the weight at points before a point of the run, `upto` that weight with the point's own included.
    """

    first: IntArray
    points: IntArray
    below: FloatArray
    upto: FloatArray
    total: float

    @classmethod
    def around(cls, places: IntArray, weight: FloatArray | None) -> Runs:
        """The runs that rows at these points leave."""
        occupied, where = np.unique(places, return_inverse=True)
        mass = np.bincount(where, weights=exact_weights(weight), minlength=occupied.size)
        reached = np.concatenate([[0.0], np.cumsum(mass)])
        starts, ends = np.append(0, occupied + 1), np.append(occupied, POINTS)
        return cls(
            first=np.concatenate([starts, occupied]),
            points=np.concatenate([ends - starts, np.ones_like(occupied)]),
            below=np.concatenate([reached, reached[:-1]]),
            upto=np.concatenate([reached, reached[1:]]),
            total=float(reached[-1]),
        )

    def rank_error(self, quantile: float) -> FloatArray:
        """How far quantile * total lies outside [below, upto], for the points of each run."""
        wanted = quantile * self.total
        return np.maximum(0.0, np.maximum(self.below - wanted, wanted - self.upto))
