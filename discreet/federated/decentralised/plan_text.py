"""A plan of a training on a graph in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.text import paragraph
from discreet.federated.decentralised.gossip import Gossip
from discreet.federated.decentralised.random_walk import Walk
from discreet.privacy.accounting import gaussian_epsilon

if TYPE_CHECKING:
    from discreet.federated.decentralised.plan import NetworkSchedule


def describe(plan: NetworkSchedule) -> str:
    """The plan as lines of text: who sends what, and what each reader learns."""
    network, delta = plan.network, plan.delta
    pairs = plan.losses.pair_epsilons(delta)
    lines = [
        f"training on a graph: {network.label}, {network.size} nodes, {_method(plan)}",
        f"budget: {plan.budget} for {_TARGETS[plan.target]}; all rows of a node are protected together",
        f"noise of a node's own message: {plan.federated.multiplier:.4g} times its sensitivity",
        f"messages in all: {plan.messages:,}",
        f"epsilon at delta = {delta:g}, of a node towards",
        f"  another node, mean over pairs:     {pairs.mean():.4g}",
        f"  another node, median:              {np.median(pairs):.4g}",
        f"  another node, largest:             {pairs.max():.4g}",
        *(f"  {READERS[who] + ':':<34} {most:.4g} at most" for who, most in plan.epsilon_of_readers.items()),
    ]
    if plan.claimed is not None:
        claimed = gaussian_epsilon(delta, float(plan.claimed.mean()))
        lines.append(f"  another node, claimed by papers and NOT certified: {claimed:.4g}")
    if isinstance(plan.protocol, Walk) and not plan.protocol.visits.all():
        lines.append(f"the token never visits {int((plan.protocol.visits == 0).sum())} nodes: their rows are not used")
    return "\n".join(paragraph(line, rest="    ") for line in lines)


READERS = {"local": "someone who reads all messages", "reader": "someone who sees the models only"}
_TARGETS = {
    "local": READERS["local"],
    "mean": "the mean over pairs of nodes",
    "max": "every pair of nodes",
}


def _method(plan: NetworkSchedule) -> str:
    protocol = plan.protocol
    if isinstance(protocol, Walk):
        step = "gradient steps" if plan.method == "walk" else "ADMM steps"
        return f"a token with {step}, {len(protocol.stops)} visits"
    rounds = f"{plan.federated.rounds} rounds of ADMM"
    if isinstance(protocol, Gossip):
        return f"{rounds}, averages by {protocol.steps} steps of gossip with noise {protocol.message_noise:.3g}"
    return f"{rounds}, averages along a spanning tree"
