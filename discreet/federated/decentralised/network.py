"""A network of nodes: who can send to whom, and the weights with which a node averages its neighbours' values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet._common.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Network:
    """A connected graph without direction, known to everybody.

    Parameters
    ----------
    names : tuple of str
        The nodes; node i of every matrix is names[i].
    neighbours : tuple of tuples of int
        For each node those that it exchanges messages with, in increasing order.
    label : str
        What kind of graph it is, for people.

    Examples
    --------
    >>> from discreet.federated.decentralised.network import Network
    >>> path = Network(("a", "b", "c"), ((1,), (0, 2), (1,)))
    >>> path.weights[1].round(3).tolist()
    [0.333, 0.333, 0.333]
    >>> path.distances[0].tolist()
    [0, 1, 2]
    """

    names: tuple[str, ...]
    neighbours: tuple[tuple[int, ...], ...]
    label: str = "graph"

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise ValueError(f"a network needs at least two nodes, got {len(self.names)}.")
        if len(set(self.names)) != len(self.names) or len(self.neighbours) != len(self.names):
            raise ValueError("every node needs a name of its own and a list of neighbours.")
        for node, found in enumerate(self.neighbours):
            known = all(0 <= other < self.size and other != node for other in found)
            if not known or any(node not in self.neighbours[other] for other in found) or len(set(found)) < len(found):
                raise ValueError(f"the neighbours of node {self.names[node]!r} are not those of a graph without loops.")
        if (self.distances < 0).any():
            raise ValueError("the graph is not connected: some nodes could never hear of each other.")

    @classmethod
    def from_networkx(cls, graph: Any, label: str = "graph") -> Network:
        """Return the network of a NetworkX graph; directions, weights of edges and loops are left out."""
        places = {node: i for i, node in enumerate(graph.nodes)}
        edges = {(places[a], places[b]) for a, b, *_ in graph.edges if a != b}
        edges |= {(b, a) for a, b in edges}
        neighbours = tuple(tuple(sorted(b for a, b in edges if a == i)) for i in range(len(places)))
        return cls(tuple(str(node) for node in graph.nodes), neighbours, label)

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.names)

    @cached_property
    def distances(self) -> IntArray:
        """For each two nodes the number of edges between them; -1: no way."""
        found = np.full((self.size, self.size), -1, dtype=np.int64)
        for start in range(self.size):
            found[start, start] = 0
            queue = [start]
            for node in queue:
                fresh = [other for other in self.neighbours[node] if found[start, other] < 0]
                found[start, fresh] = found[start, node] + 1
                queue += fresh
        return found

    @cached_property
    def weights(self) -> FloatArray:
        """Metropolis weights: 1 / (1 + the larger degree) for an edge, what is left for the node itself.

        The matrix is symmetric and its rows sum to 1, so that repeated averaging leads to the mean of all nodes.
        """
        degrees = [len(found) for found in self.neighbours]
        weights = np.zeros((self.size, self.size))
        for node, found in enumerate(self.neighbours):
            for other in found:
                weights[node, other] = 1.0 / (1 + max(degrees[node], degrees[other]))
        weights[np.diag_indices(self.size)] = 1.0 - weights.sum(axis=1)
        return weights

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the weights in increasing order, and their eigenvectors as columns."""
        values, vectors = np.linalg.eigh(self.weights)
        return values, vectors

    @cached_property
    def second_eigenvalue(self) -> float:
        """The largest absolute eigenvalue but that of the mean: how much disagreement one averaging may leave."""
        values = self.spectrum[0]
        return float(max(abs(values[0]), abs(values[-2])))

    @cached_property
    def centre(self) -> int:
        """The node from which the farthest one is nearest; the first of them."""
        return int(np.argmin(self.distances.max(axis=1)))
