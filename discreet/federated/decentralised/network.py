"""A network of nodes: who can send to whom, with which weights a node averages its neighbours' values; graphs to try.

The graphs are made by NetworkX, which is an optional dependency (`pip install discreet[graphs]`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    def _adjacency(self) -> FloatArray:
        """1 for each two nodes with an edge between them, 0 for others."""
        found = np.zeros((self.size, self.size))
        for node, others in enumerate(self.neighbours):
            found[node, list(others)] = 1.0
        return found

    @cached_property
    def distances(self) -> IntArray:
        """For each two nodes the number of edges between them; -1: no way."""
        from scipy.sparse.csgraph import shortest_path

        steps = shortest_path(self._adjacency, unweighted=True)
        return np.where(np.isfinite(steps), steps, -1.0).astype(np.int64)

    @cached_property
    def weights(self) -> FloatArray:
        """Metropolis weights: 1 / (1 + the larger degree) for an edge, what is left for the node itself.

        The matrix is symmetric and its rows sum to 1, so that repeated averaging leads to the mean of all nodes.
        """
        degrees = self._adjacency.sum(axis=1)
        weights: FloatArray = self._adjacency / (1.0 + np.maximum.outer(degrees, degrees))
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


DEGREE = 6  # of an expander, and on average of an Erdos-Renyi graph where that is connected
TRIES = 100  # random graphs that are drawn until one is connected


def network_named(name: str, nodes: int = 32, seed: int = 0) -> Network:
    """Return one of the graphs of `GRAPHS`.

    Parameters
    ----------
    name : str
        "ring", "grid", "expander" (random regular), "erdos-renyi", "complete", "star", or a social graph that NetworkX
        ships: "karate" (34 members of a club), "les-miserables" (77 characters of a novel).
    nodes : int
        How many nodes; a social graph has its own number.
    seed : int
        For the random graphs. The graph is public, so that this is no secret.

    Examples
    --------
    >>> from discreet.federated.decentralised.network import network_named
    >>> network_named("grid", 16).distances.max()
    np.int64(6)
    """
    if name not in GRAPHS:
        raise ValueError(f"graph must be one of {', '.join(GRAPHS)}; got {name!r}.")
    if nodes < 3:
        raise ValueError(f"a graph needs at least 3 nodes, got {nodes}.")
    return Network.from_networkx(GRAPHS[name](_networkx(), nodes, seed), name)


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise RuntimeError("graphs need NetworkX: pip install discreet[graphs].") from None
    return networkx


def _grid(nx: Any, nodes: int, seed: int) -> Any:
    """As nearly square as the number allows."""
    height = next(h for h in range(math.isqrt(nodes), 0, -1) if nodes % h == 0)
    return nx.grid_2d_graph(height, nodes // height)


def _expander(nx: Any, nodes: int, seed: int) -> Any:
    degree = min(DEGREE, nodes - 1)
    degree -= degree * nodes % 2  # there is no regular graph with both odd
    return _connected(nx, lambda s: nx.random_regular_graph(degree, nodes, seed=s), seed)


def _erdos_renyi(nx: Any, nodes: int, seed: int) -> Any:
    """Edges with probability 1.5 log(n) / n, above which such graphs are mostly connected."""
    rate = min(1.0, max(DEGREE, 1.5 * math.log(nodes)) / nodes)
    return _connected(nx, lambda s: nx.erdos_renyi_graph(nodes, rate, seed=s), seed)


def _connected(nx: Any, draw: Callable[[int], Any], seed: int) -> Any:
    graphs = (draw(seed + TRIES * attempt) for attempt in range(TRIES))
    found = next((graph for graph in graphs if nx.is_connected(graph)), None)
    if found is None:
        raise ValueError(f"no connected graph in {TRIES} draws; take more nodes.")
    return found


GRAPHS: dict[str, Callable[[Any, int, int], Any]] = {
    "ring": lambda nx, nodes, seed: nx.cycle_graph(nodes),
    "grid": _grid,
    "expander": _expander,
    "erdos-renyi": _erdos_renyi,
    "complete": lambda nx, nodes, seed: nx.complete_graph(nodes),
    "star": lambda nx, nodes, seed: nx.star_graph(nodes - 1),
    "karate": lambda nx, nodes, seed: nx.karate_club_graph(),
    "les-miserables": lambda nx, nodes, seed: nx.les_miserables_graph(),
}
