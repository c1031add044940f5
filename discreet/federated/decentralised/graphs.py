"""Graphs to try: made by NetworkX, which is an optional dependency (`pip install discreet[graphs]`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from discreet.federated.decentralised.network import Network

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
    >>> from discreet.federated.decentralised.graphs import network_named
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
