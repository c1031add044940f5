"""The loop of the descents: steps are made, reported, and the later iterates averaged, which averages their noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from discreet._common.types import FloatArray
from discreet.problem.scaled_problem import BlockwiseProblem
from discreet.solvers.base import Run


class Made(NamedTuple):
    """Steps that have just been made: where they ended, the weighted sum of their iterates, and the sum of weights."""

    w: FloatArray
    total: FloatArray
    weight: float = 1.0
    steps: int = 1


def descend(
    scaled: BlockwiseProblem, run: Run, steps: int, made: Iterable[Made], average: bool
) -> tuple[FloatArray, int]:
    """The mean of the second half of the iterates, or the last one, and their number; `made` makes all `steps`."""
    tail, w = TailAverage(steps, scaled.shape), scaled.start()
    for w, total, weight, count in made:
        tail.add(total, weight, count)
        run.report(tail.count, steps, scaled, w)
    return (tail.mean() if average else w), steps


def tail_length(steps: int) -> int:
    """How many of so many iterates are averaged: the second half; of an odd number the one in the middle counts."""
    return steps - steps // 2


def blocks(steps: int, size: int) -> Iterator[int]:
    """Numbers of steps that are made at once, at most `size`; those before the averaged ones apart from these."""
    for part in (steps - tail_length(steps), tail_length(steps)):
        yield from [size] * (part // size)
        if part % size:
            yield part % size


class TailAverage:
    """The weighted mean of the second half of a known number of iterates.

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

    def add(self, total: FloatArray, weight: float = 1.0, count: int = 1) -> None:
        """Take the weighted sum of the next `count` iterates: all of them belong to the tail, or none."""
        before, self.count = self.count, self.count + count
        if before < self.first < self.count or self.count > self.steps:
            raise ValueError(f"{count} iterates after {before} were summed up, which do not belong together.")
        if before >= self.first:
            self.total += total
            self.weight += weight

    def mean(self) -> FloatArray:
        """The mean of the iterates of the tail."""
        return self.total / self.weight


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
