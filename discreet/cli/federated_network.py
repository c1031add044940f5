"""`discreet federated network`: what each node of a graph would learn about each other one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from discreet.cli import options
from discreet.cli.console import check_plot, print_json

EXAMPLE = "Example: discreet federated network --graph ring --nodes 32 --method gossip --plot losses.png"

Graph = Annotated[str, Option(help="ring, grid, expander, erdos-renyi, complete, star, karate or les-miserables.")]
Nodes = Annotated[int, Option(min=3, help="Number of nodes; social graphs have their own.")]
MethodName = Annotated[
    Literal["gossip", "tree", "walk", "admm-walk"],
    Option(help="ADMM with averages by gossip or along a tree; a token with gradient or ADMM steps."),
]
BudgetFor = Annotated[
    Literal["local", "mean", "max"],
    Option(help="What keeps the budget: all messages of a node, or the mean or largest loss of a pair of nodes."),
]
NodeDelta = Annotated[
    float | None, Option(help="Failure probability of the promise.", show_default="1 / nodes squared")
]
Steps = Annotated[int | None, Option(min=1, help="Exchanges for one average.", show_default="from the spectral gap")]
MessageNoise = Annotated[
    float | None, Option(help="Noise of a gossip message over that of a gradient.", show_default="25 % more variance")
]
TrialTable = Annotated[
    Path | None,
    Option(help="A CSV or Parquet file, split evenly over the nodes, to train on.", show_default="only plan"),
]


def network(
    graph: Graph = "expander",
    nodes: Nodes = 32,
    method: MethodName = "tree",
    epsilon: options.Epsilon = 1.0,
    delta: NodeDelta = None,
    budget_for: BudgetFor = "local",
    rounds: Annotated[int, Option(min=1, help="Rounds of ADMM, or visits of a node by the token.")] = 10,
    columns: Annotated[int, Option(min=1, help="Number of columns, if there is no table.")] = 10,
    gossip_steps: Steps = None,
    message_noise: MessageNoise = None,
    way: Annotated[
        Literal["tour", "random"], Option(help="A token's way: each node once in every pass, or a random walk.")
    ] = "tour",
    graph_seed: Annotated[int, Option(min=0, help="Seed for graphs and walks; not secret.")] = 0,
    table: TrialTable = None,
    target: options.TargetName = None,
    bounds: options.Bounds = None,
    classes: options.Classes = None,
    seed: options.Seed = None,
    plot: options.Plot = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Show, without any data, what each node of a graph would learn about each other one.

    Each node is a data holder whose rows are protected together; the model is a logistic regression. With a table it is
    trained, all nodes in this process, and measured on rows that were held out; the measurements are not private.
    """
    from discreet.federated.decentralised import network_named, plan_network
    from discreet.federated.simulation import read_table
    from discreet.problem import L2, Logistic, Problem

    if epsilon == math.inf:
        raise ValueError("--epsilon must be finite: without noise there is nothing to account for.")
    check_plot(plot, force)
    made = network_named(graph, nodes, graph_seed)
    limits = options.parse_pair("--bounds", bounds)
    data = None
    if table is not None:
        labels = options.parse_labels(classes)
        data = read_table(table, target, limits, None, labels, None, made.size, seed or 0)
    plan = plan_network(
        Problem(Logistic(), L2(1e-3)),
        columns if data is None else data.X.shape[1],
        (limits or (-1.0, 1.0)) if data is None else data.bounds,
        made,
        method=method,
        epsilon=epsilon,
        delta=delta,
        target=budget_for,
        rounds=rounds,
        gossip_steps=gossip_steps,
        message_noise=message_noise,
        way=way,
        path_seed=graph_seed,
    )
    if plot is not None:
        from discreet.federated.decentralised.plots import plot_losses

        plot_losses(plan, plot)
    result = None if data is None else _trained(plan, data, seed)
    if json:
        print_json(plan.to_dict() if result is None else {"plan": plan.to_dict(), "result": result})
        return
    print(plan)
    if result is not None:
        print(f"accuracy on {result['held_out_rows']} held-out rows (not private): {result['accuracy']:.3f}")


def _trained(plan: Any, data: Any, seed: int | None) -> dict[str, Any]:
    """The model, and how good it is on rows that no node has. Not private."""
    from discreet.federated.decentralised import train_network

    found = train_network(plan, [(data.X[part], data.y[part]) for part in data.parts.values()], random_state=seed)
    return {
        "accuracy": data.score(found.coef, found.intercept),
        "held_out_rows": int(data.held_out.size),
        "coef": found.coef.tolist(),
        "intercept": found.intercept,
    }
