"""Pictures of pairwise losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.plotting import picture
from discreet._common.types import FloatArray, IntArray
from discreet.federated.decentralised.network import Network
from discreet.federated.decentralised.plan import READERS, NetworkSchedule


def plot_losses(plan: NetworkSchedule, path: str | Path) -> None:
    """Draw the loss of each node towards each other one as a matrix, and against their distance in the graph.

    Parameters
    ----------
    plan : NetworkSchedule
    path : str or Path
        Where to write the picture.
    """
    network, losses = plan.network, plan.losses
    epsilons = losses.epsilon(plan.delta)
    if not np.isfinite(epsilons).all():
        raise ValueError("there is nothing to draw: without noise every loss is infinite.")
    order = neighbours_first(network)
    shown = epsilons[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    layout: dict[str, Any] = {"figsize": (11.0, 4.8), "layout": "constrained", "width_ratios": (1.15, 1.0)}
    with picture(path, 1, 2, **layout) as (figure, (left, right)):
        image = left.imshow(shown, cmap="viridis", vmin=0.0, interpolation="nearest")
        image.set_cmap(image.get_cmap().with_extremes(bad="white"))
        figure.colorbar(image, ax=left, label=f"epsilon at delta = {plan.delta:.1e}", shrink=0.9)
        left.set(xlabel="node that sees (v)", ylabel="node whose rows are protected (u)")
        left.set_title("Loss of u as seen by v", fontsize=11)
        _label_nodes(left, [network.names[i] for i in order])
        _against_distance(right, plan, epsilons)
        figure.suptitle(f"{network.label}, {network.size} nodes: {_METHODS[plan.method]}", fontsize=12)


_METHODS = {
    "gossip": "ADMM with averages by gossip",
    "tree": "ADMM with averages along a spanning tree",
    "walk": "a token with gradient steps",
    "admm-walk": "a token with ADMM steps",
}


def _label_nodes(axes: Any, names: list[str]) -> None:
    if len(names) <= 40 and max(map(len, names)) <= 4:
        places = range(0, len(names), 1 if len(names) <= 20 else 2)
        axes.set_xticks(places, [names[i] for i in places], fontsize=6)
        axes.set_yticks(places, [names[i] for i in places], fontsize=6)
    else:
        axes.set_xticks([])
        axes.set_yticks([])


def _against_distance(axes: Any, plan: NetworkSchedule, epsilons: FloatArray) -> None:
    """All pairs as points, their mean at each distance as a line, and the two bounds that hold for everybody."""
    distances: IntArray = plan.network.distances
    pairs = ~np.eye(len(distances), dtype=bool)
    far, loss = distances[pairs], epsilons[pairs]
    spread = 0.24 * (np.argsort(np.argsort(loss, kind="stable"), kind="stable") % 17 / 8.0 - 1.0)
    axes.plot(far + spread, loss, ".", color="C0", alpha=0.25, markersize=3, label="pairs of nodes", rasterized=True)
    steps = np.unique(far)
    axes.plot(steps, [loss[far == d].mean() for d in steps], "o-", color="C1", label="mean at this distance")
    for (who, most), line in zip(plan.epsilon_of_readers.items(), ("--", ":"), strict=True):
        axes.axhline(most, color="black", linewidth=1.0, linestyle=line, label=READERS[who])
    axes.set(xlabel="distance between u and v in the graph (edges)", ylabel="epsilon", ylim=(0.0, None))
    axes.set_title("Loss against distance", fontsize=11)
    axes.set_xticks(steps if steps.size <= 16 else steps[:: steps.size // 8])
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def neighbours_first(network: Network) -> list[int]:
    """An order in which nodes that are near in the graph are near in the list: the given one, or depth first."""
    start = int(np.argmax(network.distances.max(axis=1)))
    order: list[int] = []
    stack = [start]
    while stack:
        node = stack.pop()
        if node not in order:
            order.append(node)
            stack += sorted(network.neighbours[node], key=lambda other: len(network.neighbours[other]), reverse=True)
    return min(list(range(network.size)), order, key=lambda found: _length(network, found))


def _length(network: Network, order: list[int]) -> int:
    """How far apart neighbours are in an order, all together."""
    place = np.argsort(order)
    return sum(int(abs(place[u] - place[w])) for u, found in enumerate(network.neighbours) for w in found)
