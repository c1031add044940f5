"""Training on graphs: what pairs of nodes lose, and how good the models are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from framework import Cell, Experiment
from framework.markdown import table
from framework.registry import datasets, datasets_of

from discreet import Problem
from discreet.federated.decentralised import NetworkSchedule, network_named, plan_network, train_network
from discreet.problem import L2, Logistic

NAME, LOSSES = "decentralised", "decentralised-losses"
FILE = "../decentralised.md"
GRAPHS = ("ring", "grid", "expander", "erdos-renyi", "les-miserables")
NODES, QUICK_NODES, RUNS = 64, 16, 5
METHODS = ("gossip", "tree", "walk", "admm-walk")
WAYS = {
    "gossip": ("gossip", "tour"),
    "tree": ("tree", "tour"),
    "walk, tours": ("walk", "tour"),
    "walk, random": ("walk", "random"),
}
EXACT = "without privacy"
EPSILON, TARGETS = 10.0, {"local": "local", "mean": "mean over pairs"}
PROBLEM = Problem(Logistic(), L2(0.001))
LOW, HIGH = [17.0, 1.0, 1.0, 0.0], [99.0, 24.0, 99.0, 1.0]  # of the columns, from the codebook of the survey
DRAWN = (("grid", 64, "gossip"), ("les-miserables", 77, "tree"), ("expander", 64, "walk"))


def planned(graph: str, nodes: int, **settings: Any) -> NetworkSchedule:
    return plan_network(PROBLEM, 4, (LOW, HIGH), network_named(graph, nodes), **settings)


def pairs_of(plan: NetworkSchedule) -> Any:
    epsilons = plan.losses.epsilon(plan.delta)
    return epsilons[~np.eye(len(epsilons), dtype=bool)]


# ---- what pairs of nodes lose ---------------------------------------------------------------------------------------


def cells_of_losses(quick: bool) -> Iterator[Cell]:
    for graph in GRAPHS[:1] if quick else GRAPHS:
        for way in WAYS:
            yield Cell(LOSSES, graph, way, {"nodes": QUICK_NODES if quick else NODES})


def measure_losses(cell: Cell) -> dict[str, float]:
    """At the same noise of each node: local epsilon 1 at delta = 1 / nodes^2."""
    method, way = WAYS[cell.method]
    plan = planned(cell.dataset, cell.setting["nodes"], method=method, way=way)
    found = pairs_of(plan)
    numbers = {"mean": float(found.mean()), "median": float(np.median(found)), "largest": float(found.max())}
    return {
        **numbers,
        "reader": plan.to_dict()["reader_epsilon"],
        "messages": plan.messages,
        "nodes": plan.network.size,
    }


def page_of_losses(results: Any, folder: Any) -> dict[str, str]:
    from discreet.federated.decentralised.plots import plot_losses

    for graph, nodes, method in DRAWN:
        plot_losses(planned(graph, nodes, method=method), folder.parent / f"decentralised-{graph}-{method}.png")
    rows = [
        [
            cell.dataset,
            str(found["nodes"]),
            cell.method,
            *(f"{found[name]:.2f}" for name in ("mean", "median", "largest", "reader")),
            f"{found['messages']:,}",
        ]
        for cell, found in results.select()
    ]
    head = ["graph", "nodes", "method", "mean of pairs", "median", "largest", "models only", "messages"]
    return {"losses": table(head, rows)}


# ---- how good the models are ----------------------------------------------------------------------------------------


def graphs(quick: bool) -> list[tuple[str, int]]:
    return [("ring", QUICK_NODES)] if quick else [*((graph, NODES) for graph in GRAPHS), ("expander", 4 * NODES)]


def cells(quick: bool) -> Iterator[Cell]:
    for dataset in datasets_of(NAME):
        for graph, nodes in graphs(quick):
            at = {"graph": graph, "nodes": nodes}
            yield Cell(NAME, dataset.name, EXACT, at)
            for target in list(TARGETS)[: 1 if quick else None]:
                for method in METHODS[:2] if quick else METHODS:
                    asked = {**at, "target": target, "epsilon": EPSILON, "runs": 1 if quick else RUNS}
                    yield Cell(NAME, dataset.name, method, asked)


@lru_cache(maxsize=1)
def loaded(name: str) -> tuple[Any, Any]:
    return datasets()[name].load()


def measure(cell: Cell) -> dict[str, Any]:
    """Accuracies and objectives of the runs; of the optimum where there is no privacy."""
    X, y = loaded(cell.dataset)
    asked = cell.setting
    if cell.method == EXACT:
        settings: dict[str, Any] = {"epsilon": math.inf, "rounds": 60, "gamma": 20.0, "clip": 100.0}
    else:
        settings = {"method": cell.method, "epsilon": asked["epsilon"], "target": asked["target"]}
    plan = planned(asked["graph"], asked["nodes"], **settings)
    nodes = plan.network.size
    data = list(zip(np.array_split(X, nodes), np.array_split(y, nodes), strict=True))
    runs = [train_network(plan, data, random_state=seed) for seed in range(asked.get("runs", 1))]
    found = {
        "accuracy": [float(np.mean(np.where(X @ r.coef + r.intercept > 0.0, 1.0, -1.0) == y)) for r in runs],
        "objective": [objective(data, r.coef, r.intercept) for r in runs],
        "nodes": nodes,
    }
    if cell.method != EXACT:
        found |= {"largest": float(pairs_of(plan).max()), "local": plan.to_dict()["local_epsilon"]}
    return found


def objective(data: list[tuple[Any, Any]], coef: Any, intercept: float) -> float:
    """The mean over nodes of the mean loss of their rows; the penalty is left out, as it is the same small one."""
    return float(np.mean([np.logaddexp(0.0, -y * (X @ coef + intercept)).mean() for X, y in data]))


def page(results: Any, folder: Path) -> dict[str, str]:
    """Accuracies with the excess loss, as a part of that of the zero model; and the largest loss of a pair."""
    rows, largest = [], []
    for cell, exact in results.select(method=EXACT):
        at = dict(cell.setting)
        name, best = f"{at['graph']}, {exact['nodes']}", exact["objective"][0]
        for target, shown in TARGETS.items():
            found = [results.one(method=method, target=target, **at) for method in METHODS]
            fields = [
                f"{np.mean(n['accuracy']):.3f} ({(np.mean(n['objective']) - best) / (math.log(2.0) - best):.2f})"
                if n
                else ""
                for n in found
            ]
            rows.append([name, f"{exact['accuracy'][0]:.3f}", f"{shown} {EPSILON:g}", *fields])
            if target == "mean":
                largest.append([name, *(f"{n['largest']:.1f}" if n else "" for n in found)])
    accuracies = table(["graph, nodes", EXACT, "budget", *METHODS], rows)
    return {"accuracy": accuracies, "largest pairs": table(["graph, nodes", *METHODS], largest)}


decentralised = [
    Experiment(LOSSES, NAME, "epsilon between nodes of a graph", cells_of_losses, measure_losses, page_of_losses, FILE),
    Experiment(
        NAME,
        NAME,
        "accuracy of models trained on graphs",
        cells,
        measure,
        page,
        FILE,
        order=1,
        stored=("acsincome_co",),
    ),
]
