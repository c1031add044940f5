"""The state of follow-the-regularised-leader: noisy running sums of gradients, and the leader they define."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet._common.types import FloatArray
from discreet.privacy.mechanisms.aggregation import Draw, RunningNoise
from discreet.solvers._shared.averaging import GrowingTailAverage

Prox = Callable[[FloatArray, float], FloatArray]


class Leader:
    """The minimiser of (sum of gradients so far) . w + (their number) penalty(w) + ||w||^2 / (2 length).

    Gradients come in leaves of about equal size. Several trees (one per pass, or one per part of a stream) follow
    each other: `base` holds the noisy sums of those that are finished. `length` is the step a leaf makes.
    """

    def __init__(self, start: FloatArray, length: float) -> None:
        self.w, self.length = start, length
        self.base = np.zeros_like(start)
        self.total = np.zeros_like(start)  # exact, not released: the noise is added on the way out
        self.latest = np.zeros_like(start)
        self.average = GrowingTailAverage(start)
        self.noise: RunningNoise | None = None

    def begin(self, noise: RunningNoise) -> None:
        """A new tree, on top of what the old one has released."""
        self.base = self.base + self.latest
        self.total, self.latest = np.zeros_like(self.base), np.zeros_like(self.base)
        self.noise = noise

    def follow(self, gradient: FloatArray, leaf_rows: float, draw: Draw, prox: Prox) -> None:
        """Take one leaf's sum of clipped gradients and move to the next leader.

        Guarantee: `w` and `average` depend on the gradients only through their running sums with noise.
        """
        if self.noise is None:
            raise RuntimeError("begin a tree first: without its noise the sums would be released as they are.")
        self.total = self.total + gradient
        self.latest = (self.total + self.noise.next(draw)) / leaf_rows
        leaves = self.average.count + 1
        self.w = prox(-self.length * (self.base + self.latest), self.length * leaves)
        self.average.add(self.w)
