"""The mean of the later iterates, which averages their noise: the one copy that all solvers use."""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray


class TailAverage:
    """The mean of the second half of a known number of iterates, weighted if asked.

    Parameters
    ----------
    steps : int
        How many iterates there will be; of an odd number the one in the middle counts.
    shape : tuple of int
        The shape of an iterate.
    """

    def __init__(self, steps: int, shape: tuple[int, ...]) -> None:
        self.first = steps // 2
        self.total, self.weight = np.zeros(shape), 0.0
        self.count = 0

    def add(self, w: FloatArray, weight: float = 1.0) -> None:
        """Take the next iterate."""
        if self.count >= self.first:
            self.total += weight * w
            self.weight += weight
        self.count += 1

    def mean(self) -> FloatArray:
        return self.total / self.weight
