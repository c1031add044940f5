"""Training on graphs: what pairs of nodes lose, and how good the models are. Prints tables, writes the pictures.

Four columns of acsincome_co (age, schooling, hours of work, sex), sorted by occupation and cut into as many parts as
there are nodes, so that nodes differ. Run: make bench-decentralised.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from stored_tables import command, labelled, stored_table

from discreet import Problem
from discreet.federated.decentralised import NetworkPlan, network_named, plan_network, train_network
from discreet.federated.decentralised.plots import plot_losses
from discreet.problem import L2, Logistic

PICTURES = Path(__file__).resolve().parents[1] / "docs"
GRAPHS = ("ring", "grid", "expander", "erdos-renyi", "les-miserables")
METHODS = ("gossip", "tree", "walk", "admm-walk")
NODES = 64
SEEDS = range(5)
PROBLEM = Problem(Logistic(), L2(0.001))
LOW, HIGH = [17.0, 1.0, 1.0, 0.0], [99.0, 24.0, 99.0, 1.0]  # of the columns, from the codebook of the survey


def pairs_of(plan: NetworkPlan) -> Any:
    epsilons = plan.losses.epsilon(plan.delta)
    return epsilons[~np.eye(len(epsilons), dtype=bool)]


def losses_table() -> None:
    """At the same noise of each node: local epsilon 1 at delta = 1 / nodes^2."""
    print("| graph | nodes | method | mean of pairs | median | largest | models only | messages |")
    print("|---|---|---|---|---|---|---|---|")
    for graph in GRAPHS:
        for method, way in (("gossip", ""), ("tree", ""), ("walk", "tour"), ("walk", "random")):
            plan = plan_network(PROBLEM, 4, (LOW, HIGH), network_named(graph, NODES), method=method, way=way or "tour")
            found = pairs_of(plan)
            reader = plan.to_dict()["reader_epsilon"]
            shown = f"{found.mean():.2f} | {np.median(found):.2f} | {found.max():.2f} | {reader:.2f}"
            print(f"| {graph} | {plan.network.size} | {method} {way} | {shown} | {plan.messages:,} |", flush=True)


def parts(X: Any, y: Any, nodes: int) -> list[tuple[Any, Any]]:
    return list(zip(np.array_split(X, nodes), np.array_split(y, nodes), strict=True))


def objective(data: list[tuple[Any, Any]], coef: Any, intercept: float) -> float:
    """The mean over nodes of the mean loss of their rows; the penalty is left out, as it is the same small one."""
    return float(np.mean([np.logaddexp(0.0, -y * (X @ coef + intercept)).mean() for X, y in data]))


def training_table(X: Any, y: Any) -> None:
    print("| graph, nodes | method | budget for | largest pair | local | accuracy | excess |")
    print("|---|---|---|---|---|---|---|")
    for graph, nodes in [*((graph, NODES) for graph in GRAPHS), ("expander", 4 * NODES)]:
        network = network_named(graph, nodes)
        data = parts(X, y, network.size)
        optimum = train_network(
            plan_network(PROBLEM, 4, (LOW, HIGH), network, epsilon=math.inf, rounds=60, gamma=20.0, clip=100.0), data
        )
        best, zero = objective(data, optimum.coef, optimum.intercept), math.log(2.0)
        accuracy = np.mean(np.where(X @ optimum.coef + optimum.intercept > 0.0, 1.0, -1.0) == y)
        print(f"| {graph}, {network.size} | without privacy | | | | {accuracy:.3f} | 0 |", flush=True)
        for epsilon, target in ((10.0, "local"), (10.0, "mean")):
            for method in METHODS:
                plan = plan_network(PROBLEM, 4, (LOW, HIGH), network, method=method, epsilon=epsilon, target=target)
                runs = [train_network(plan, data, random_state=seed) for seed in SEEDS]
                scores = [np.mean(np.where(X @ r.coef + r.intercept > 0.0, 1.0, -1.0) == y) for r in runs]
                excess = [(objective(data, r.coef, r.intercept) - best) / (zero - best) for r in runs]
                local = plan.to_dict()["local_epsilon"]
                start = f"| {graph}, {network.size} | {method} | {target} {epsilon:g}"
                print(
                    f"{start} | {pairs_of(plan).max():.1f} | {local:.1f}"
                    f" | {np.mean(scores):.3f} ± {np.std(scores):.3f} | {np.mean(excess):.2f} |",
                    flush=True,
                )


def pictures() -> None:
    for graph, nodes, method in (("grid", 64, "gossip"), ("les-miserables", 77, "tree"), ("expander", 64, "walk")):
        plan = plan_network(PROBLEM, 4, (LOW, HIGH), network_named(graph, nodes), method=method)
        plot_losses(plan, PICTURES / f"decentralised-{graph}-{method}.png")


def main() -> None:
    command(__doc__, "acsincome_co", other="the graphs are generated, or come with networkx").parse_args()
    warnings.simplefilter("ignore")
    pictures()
    losses_table()
    table = stored_table("acsincome_co")
    order = np.argsort(table["X_codes"][:, 4], kind="stable")  # by occupation
    X = np.asarray(table["X"], float)[order][:, [0, 1, 2, -1]]
    print(f"\ntraining on {labelled('acsincome_co')}")
    training_table(X, np.where(table["y"][order] == 1, 1.0, -1.0))


if __name__ == "__main__":
    main()
