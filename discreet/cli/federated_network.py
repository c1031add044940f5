"""`discreet federated network`: what each node of a graph would learn about each other one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.cli import options
from discreet.cli.console import check_free, print_json

EXAMPLE = "Example: discreet federated network --graph ring --nodes 32 --method gossip --plot losses.png"


def network(
    graph: Annotated[
        str, typer.Option(help="ring, grid, expander, erdos-renyi, complete, star, karate or les-miserables.")
    ] = "expander",
    nodes: Annotated[int, typer.Option(min=3, help="Number of nodes; social graphs have their own.")] = 32,
    method: Annotated[
        Literal["gossip", "tree", "walk", "admm-walk"],
        typer.Option(help="ADMM with averages by gossip or along a tree; a token with gradient or ADMM steps."),
    ] = "tree",
    epsilon: options.Epsilon = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="Failure probability of the promise.", show_default="1 / nodes squared"),
    ] = None,
    target: Annotated[
        Literal["local", "mean", "max"],
        typer.Option(help="What keeps the budget: all messages, or the mean or largest loss of a pair of nodes."),
    ] = "local",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of ADMM, or visits of a node by the token.")] = 10,
    columns: Annotated[int, typer.Option(min=1, help="Number of columns without the target.")] = 10,
    gossip_steps: Annotated[
        int | None, typer.Option(min=1, help="Exchanges for one average.", show_default="from the spectral gap")
    ] = None,
    message_noise: Annotated[
        float | None,
        typer.Option(help="Noise of a gossip message over that of a gradient.", show_default="variance + 25 %"),
    ] = None,
    graph_seed: Annotated[int, typer.Option(min=0, help="For random graphs and ways of a token; no secret.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="A picture to write; needs Matplotlib.", show_default="none")
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Show, without any data, what each node of a graph would learn about each other one.

    Each node is a data holder whose rows are protected together; the model is a logistic regression.
    """
    from discreet.federated.decentralised import network_named, plan_network
    from discreet.problem import L2, Logistic, Problem

    if epsilon == math.inf:
        raise ValueError("--epsilon must be finite: without noise there is nothing to account for.")
    if plot is not None:
        check_free(plot, force)
    plan = plan_network(
        Problem(Logistic(), L2(0.01)),
        columns,
        (-1.0, 1.0),
        network_named(graph, nodes, graph_seed),
        method=method,
        epsilon=epsilon,
        delta=delta,
        target=target,
        rounds=rounds,
        gossip_steps=gossip_steps,
        message_noise=message_noise,
        path_seed=graph_seed,
    )
    if plot is not None:
        from discreet.federated.decentralised.plots import plot_losses

        plot_losses(plan, plot)
    if json:
        print_json(plan.to_dict())
    else:
        print(plan)
