"""The matrices behind noisy running sums, written down plainly: what several tests compare the mechanisms with."""

from __future__ import annotations

import numpy as np

from discreet.privacy.mechanisms.aggregation import square_root_column


def nodes_of_tree(leaves):
    """The completed nodes in the order of their release: (first leaf, last leaf), counted from 1."""
    for last in range(1, leaves + 1):
        size = 1
        while last % size == 0:
            yield last - size + 1, last
            size *= 2


def matrix(kind, leaves):
    """What is released before post-processing: one row per node, or the square root."""
    if kind == "tree":
        t = np.arange(1, leaves + 1)
        return np.array([(first <= t) & (t <= last) for first, last in nodes_of_tree(leaves)], dtype=float)
    k = np.arange(leaves)
    lag = k[:, None] - k
    return np.where(lag >= 0, square_root_column(leaves)[np.maximum(lag, 0)], 0.0)


class UnitDraws:
    """A grid whose k-th release adds the k-th unit vector."""

    def __init__(self, total):
        self.total, self.drawn = total, 0

    def release(self, rng, value):
        unit = np.zeros(self.total)
        unit[self.drawn] = 1.0
        self.drawn += 1
        return value + unit


def weights_on_draws(sums):
    """The matrix that turns independent draws into the noise of the running sums, read off one draw at a time."""
    grid = UnitDraws(2 * sums.leaves)
    rows = [sums.next(np.zeros(grid.total), grid, None).copy() for _ in range(sums.leaves)]
    return np.array(rows)[:, : grid.drawn]
