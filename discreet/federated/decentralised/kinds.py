"""The names of methods, targets and ways of a token, and the protocols behind them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from discreet.federated.decentralised.gossip import Gossip
from discreet.federated.decentralised.random_walk import Walk
from discreet.federated.decentralised.tree import SpanningTree

Method = Literal["gossip", "tree", "walk", "admm-walk"]
Target = Literal["local", "mean", "max"]
Way = Literal["tour", "random"]
METHODS: tuple[Method, ...] = ("gossip", "tree", "walk", "admm-walk")
TARGETS: tuple[Target, ...] = ("local", "mean", "max")
WAYS: tuple[Way, ...] = ("tour", "random")

AnyProtocol: TypeAlias = Gossip | SpanningTree | Walk
