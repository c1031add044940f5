"""Training on a graph without a server, and what each node learns about each other one.

Proofs: docs/guarantees/decentralised.md. How to use it: docs/decentralised.md.
"""

from discreet.federated.decentralised.gossip import Gossip, plan_gossip
from discreet.federated.decentralised.network import Network, network_named
from discreet.federated.decentralised.pairwise import PairwiseLosses
from discreet.federated.decentralised.plan import NetworkSchedule, plan_network
from discreet.federated.decentralised.random_walk import Walk, plan_tour, plan_walk
from discreet.federated.decentralised.training import NetworkResult, train_network
from discreet.federated.decentralised.tree import SpanningTree

__all__ = [
    "Gossip",
    "Network",
    "NetworkResult",
    "NetworkSchedule",
    "PairwiseLosses",
    "SpanningTree",
    "Walk",
    "network_named",
    "plan_gossip",
    "plan_network",
    "plan_tour",
    "plan_walk",
    "train_network",
]
