"""The state of follow-the-regularised-leader: noisy running sums of gradients, and the leader they define."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.privacy.mechanisms.aggregation import RunningSums
from discreet.solvers._shared.averaging import GrowingTailAverage

if TYPE_CHECKING:
    from discreet.privacy.random.generator import RandomGenerator

Prox = Callable[[FloatArray, float], FloatArray]


class Leader:
    """The minimiser of (sum of gradients so far) . w + (their number) penalty(w) + ||w - origin||^2 / (2 length).

    `origin` is the public start, or 0. Gradients come in leaves of about equal size. Several trees (one per pass, or
    one per part of a stream) follow each other: `base` holds the noisy sums of those that are finished. `length` is the
    step a leaf makes.
    """

    def __init__(self, start: FloatArray, length: float, origin: FloatArray | None = None) -> None:
        self.w, self.length = start, length
        self.origin = np.zeros_like(start) if origin is None else origin
        self.base = np.zeros_like(start)
        self.latest = np.zeros_like(start)
        self.average = GrowingTailAverage(start)
        self.sums: RunningSums | None = None

    def begin(self, sums: RunningSums) -> None:
        """A new tree, on top of what the old one has released."""
        self.base = self.base + self.latest
        self.latest = np.zeros_like(self.base)
        self.sums = sums

    def follow(self, gradient: FloatArray, leaf_rows: float, grid: NoisyGrid, rng: RandomGenerator, prox: Prox) -> None:
        """Take one leaf's sum of clipped gradients and move to the next leader.

        Guarantee: `w` and `average` depend on the gradients only through their running sums with noise.
        """
        if self.sums is None:
            raise RuntimeError("begin a tree first: without its noise the sums would be released as they are.")
        self.latest = self.sums.next(gradient, grid, rng) / leaf_rows
        leaves = self.average.count + 1
        self.w = prox(self.origin - self.length * (self.base + self.latest), self.length * leaves)
        self.average.add(self.w)
