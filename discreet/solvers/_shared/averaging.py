"""The mean of the later iterates, which averages their noise: the one copy that all solvers use."""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray


def tail_length(steps: int) -> int:
    """How many of so many iterates are averaged: the second half; of an odd number the one in the middle counts."""
    return steps - steps // 2


class TailAverage:
    """The mean of the second half of a known number of iterates, weighted if asked.

    Parameters
    ----------
    steps : int
        How many iterates there will be.
    shape : tuple of int
        The shape of an iterate.
    """

    def __init__(self, steps: int, shape: tuple[int, ...]) -> None:
        self.steps, self.first = steps, steps - tail_length(steps)
        self.total, self.weight = np.zeros(shape), 0.0
        self.count = 0

    @property
    def left(self) -> int:
        """How many iterates may be summed up at once: those before the tail, then those in it."""
        return (self.first if self.count < self.first else self.steps) - self.count

    def add(self, w: FloatArray, weight: float = 1.0) -> None:
        """Take the next iterate."""
        self._take(weight * w, weight, 1)

    def add_sum(self, total: FloatArray, count: int) -> None:
        """Take the sum of the next `count` iterates, at most `left`, as compiled loops return it."""
        if count > self.left:
            raise ValueError(f"{count} iterates were summed up, but only {self.left} belong together.")
        self._take(total, float(count), count)

    def mean(self) -> FloatArray:
        """The mean of the iterates of the tail."""
        return self.total / self.weight

    def _take(self, total: FloatArray, weight: float, count: int) -> None:
        if self.count >= self.first:
            self.total += total
            self.weight += weight
        self.count += count


class GrowingTailAverage:
    """The mean of the latest iterates, between a half and three quarters of all, in the memory of two of them.

    For an unknown number of iterates, as those of a stream.

    Parameters
    ----------
    start : array
        The mean as long as there is no iterate.
    """

    def __init__(self, start: FloatArray) -> None:
        self.count = 0
        self.older, self.newer = np.zeros_like(start), np.zeros_like(start)
        self.start = start

    def add(self, w: FloatArray) -> None:
        """Take the next iterate."""
        self.count += 1
        if self.count & (self.count - 1) == 0:  # at powers of two the windows move on
            self.older, self.newer = self.newer, np.zeros_like(self.newer)
        self.newer = self.newer + w

    def mean(self) -> FloatArray:
        """The mean of the iterates in the two windows."""
        if self.count == 0:
            return self.start
        first = max(1, 1 << (self.count.bit_length() - 2)) if self.count > 1 else 1
        return (self.older + self.newer) / (self.count - first + 1)
