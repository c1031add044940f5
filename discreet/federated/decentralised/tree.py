"""Averaging along a spanning tree: partial sums go up to the root, the total comes down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.decentralised.network import Network

if TYPE_CHECKING:
    from discreet.privacy.mechanisms.additive import NoisyGrid
    from discreet.privacy.random.generator import RandomGenerator


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Exact averaging: each node sends its parent one sum, and every node hears the total.

    Parameters
    ----------
    network : Network
    root : int
    """

    network: Network
    root: int

    name = "tree"

    def __post_init__(self) -> None:
        if not 0 <= self.root < self.network.size:
            raise ValueError(f"the root must be a node, 0 to {self.network.size - 1}; got {self.root!r}.")

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """For each node the neighbour that it sends to, nearest to the root; the root's is itself."""
        distance = self.network.distances[self.root]
        nearer = (
            next((w for w in found if distance[w] < distance[node]), node)
            for node, found in enumerate(self.network.neighbours)
        )
        return tuple(nearer)

    @property
    def messages(self) -> int:
        """How many messages one average takes: one up and one down each edge of the tree."""
        return 2 * (self.network.size - 1)

    @property
    def local(self) -> FloatArray:
        """What someone sees of each node who reads all messages: at worst its value, with no noise but its own."""
        return np.ones(self.network.size)

    @property
    def row(self) -> FloatArray:
        """The weights of the nodes in what is sent to all."""
        return np.full(self.network.size, 1.0 / self.network.size)

    @property
    def variance(self) -> float:
        """Variance of the noise in the average, over that of one node's noise."""
        return 1.0 / self.network.size

    def seen_by(self, observers: Sequence[int]) -> FloatArray:
        """How much of each node's value observers who pool what they know can see: 1 all of it, 0 nothing.

        Guarantee: without the observers the tree falls into parts, and they see the sum of each part and nothing else:
        a node in a part of m nodes is seen with m times the variance of its own noise (Theorem 2).
        """
        part = np.arange(self.network.size)
        inside = set(observers)
        for node in np.argsort(self.network.distances[self.root], kind="stable"):
            parent = self.parents[node]
            if node not in inside and parent not in inside:
                part[node] = part[parent]
        sizes = np.bincount(part, minlength=self.network.size)
        return 1.0 / np.sqrt(sizes[part])

    def average(self, values: FloatArray, grid: NoisyGrid, rng: RandomGenerator) -> FloatArray:
        """Add up the nodes' noisy values along the tree, and return their mean; no further noise is drawn.

        The values are multiples of one step, a power of two, so that the sums are exact in every order.
        """
        sums = values.copy()
        for node in np.argsort(-self.network.distances[self.root], kind="stable"):
            if node != self.root:
                sums[self.parents[node]] += sums[node]
        return sums[self.root] / self.network.size

    def rounding(self, columns: int, rounds: int) -> float:
        """How much rounding can add to a loss, in all rounds.

        Guarantee: Theorem 3 of docs/guarantees/decentralised.md; 2^-29 bounds a grid's step over its noise.
        """
        return self.network.size * math.sqrt(columns * rounds) * 2.0**-29
