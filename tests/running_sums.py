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


def weights_on_draws(noise):
    """The matrix that turns independent draws into the noise of the running sums, read off one draw at a time."""
    rows, drawn = [], 0
    total = 2 * noise.leaves

    def draw(shape):
        nonlocal drawn
        unit = np.zeros((shape[0], total))
        unit[np.arange(shape[0]), drawn + np.arange(shape[0])] = 1.0
        drawn += shape[0]
        return unit

    for _ in range(noise.leaves):
        rows.append(noise.next(draw).copy())
    return np.array(rows)[:, :drawn]
