"""The plan of a training on a graph: made from public facts, with the loss of every node towards every other one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from discreet._common.checks import one_of, whole
from discreet._common.codec import plain
from discreet._common.digest import digest_of
from discreet._common.types import FloatArray
from discreet.federated.decentralised import pairwise
from discreet.federated.decentralised.gossip import Gossip, plan_gossip
from discreet.federated.decentralised.network import Network
from discreet.federated.decentralised.pairwise import AnyProtocol, Method, PairwiseLosses, Target, Way
from discreet.federated.decentralised.random_walk import Walk, check_step, plan_tour, plan_walk, token_settings
from discreet.federated.decentralised.tree import SpanningTree
from discreet.federated.plan import FederatedPlan
from discreet.federated.planning import plan_federated
from discreet.privacy.accounting import gaussian_epsilon
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.problem.problem import Problem

ROUNDS = 10
SETTINGS = frozenset(
    {"y_bounds", "relation", "gamma", "relaxation", "clip", "tolerance", "run"}
)  # of a node's releases
_FINEST = 2.0**-29  # bounds a grid's step over its noise


@dataclass(frozen=True, eq=False)
class NetworkSchedule:
    """Everything that is decided before the first message, the same for all nodes. Made by `plan_network`.

    Guarantee: in a run by `train_network`, all rows of node u together are `losses.mu[u, v]`-GDP in the view of node v,
    and `losses.local[u]`-GDP for someone who reads every message.

    Attributes
    ----------
    federated : FederatedPlan
        Problem, columns, clip, noise and budget: what a node's own releases are.
    method : {"gossip", "tree", "walk", "admm-walk"}
        How nodes work together.
    protocol : Gossip, SpanningTree or Walk
        Who sends what to whom.
    target : {"local", "mean", "max"}
        Which loss keeps the budget: the local one, the mean over the pairs of nodes, or the largest of a pair.
    budget : Budget
        What that loss may be.
    """

    federated: FederatedPlan
    method: Method
    protocol: AnyProtocol
    target: Target
    budget: Budget

    def __post_init__(self) -> None:
        kind = {"gossip": Gossip, "tree": SpanningTree}.get(self.method, Walk)
        if not isinstance(self.protocol, kind):
            raise ValueError(f"method {self.method!r} needs a protocol of class {kind.__name__}.")
        plan, most = self.federated, round(float(self.protocol.local.max()) ** 2) * self.repeats
        if (plan.unit, plan.clients, plan.per_round) != ("client", self.network.size, self.network.size):
            raise ValueError("the plan of the nodes must protect whole clients and ask each node of the network.")
        if plan.participations < most:
            raise ValueError(f"a node releases {most} numbers; the plan of the nodes pays for {plan.participations}.")
        if self.method == "walk":
            check_step(plan.gamma, plan.problem, plan.dimension)
        if not self.budget.is_infinite and not self._keeps_budget():
            raise ValueError(f"the noise of this plan is too little for its budget (target {self.target!r}).")

    @property
    def network(self) -> Network:
        """The graph."""
        return self.protocol.network

    @property
    def repeats(self) -> int:
        """How often the protocol is run: every round anew, or one walk."""
        return 1 if isinstance(self.protocol, Walk) else self.federated.rounds

    @property
    def messages(self) -> int:
        """How many messages all nodes send in the whole run."""
        return self.repeats * self.protocol.messages

    @property
    def delta(self) -> float:
        """The delta at which losses are stated: the budget's, or one over the square of the number of nodes."""
        return self.budget.delta or 1.0 / self.network.size**2

    @cached_property
    def losses(self) -> PairwiseLosses:
        """What each node learns about each other one, certified."""
        relative = pairwise.relative_to_noise(self.method, self.protocol, self.repeats)
        grid = self.token_grid if self.method == "walk" else self.federated.grid
        rounding = self.protocol.rounding(self.federated.dimension, self.repeats)
        if self.federated.multiplier < pairwise.LEAST_MULTIPLIER or grid.step > _FINEST * grid.scale:
            rounding = math.inf
        return pairwise.certified(relative, self.federated.multiplier, rounding)

    def _keeps_budget(self) -> bool:
        """Whether the loss that the target names is within the budget."""
        if self.federated.multiplier == 0.0:
            return False
        allowed = self.budget.gaussian_mu() * (1.0 + 1e-9)
        if self.target == "local":
            return float(self.protocol.local.max()) * math.sqrt(self.repeats) / self.federated.multiplier <= allowed
        if self.target == "max":
            return float(self.losses.pairs.max()) <= allowed
        return pairwise.mean_fits(self.losses, self.budget)

    @property
    def claimed(self) -> FloatArray | None:
        """For the token of ADMM the local losses times sqrt(ln n / n), as papers claim them; not certified."""
        if self.method != "admm-walk":
            return None
        n = self.network.size
        return self.losses.local * math.sqrt(math.log(n) / n)

    @property
    def message_grid(self) -> NoisyGrid:
        """The noise of the messages of gossip; other protocols have none."""
        grid = self.federated.grid
        if not isinstance(self.protocol, Gossip) or grid.is_exact:
            return replace(grid, step=0.0, scale=0.0)
        ratio = self.protocol.message_noise
        finer = math.ldexp(grid.step, math.floor(math.log2(ratio)))
        return replace(grid, step=finer, scale=ratio * grid.scale)

    @property
    def token_grid(self) -> NoisyGrid:
        """The noise of a step of the token: that of a gradient, times the length of the step."""
        plan = self.federated
        return plan.mechanism.grid(plan.sensitivity * plan.gamma, plan.dimension)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the plan; seeded noise is keyed by it."""
        protocol = self.protocol
        path = (protocol.path, protocol.passing) if isinstance(protocol, Walk) else ()
        gossip = (protocol.mixing, protocol.message_noise, protocol.speaker) if isinstance(protocol, Gossip) else ()
        root = protocol.root if isinstance(protocol, SpanningTree) else -1
        facts = repr((self.method, self.target, self.network.names, self.network.neighbours, path, gossip, root))
        return digest_of("network plan", self.federated.digest, facts)

    @property
    def epsilon_of_readers(self) -> dict[str, float]:
        """The largest epsilon of a node towards someone who reads all messages, and towards one who sees the models."""
        mu = {"local": self.losses.local, "reader": self.losses.reader}
        return {name: gaussian_epsilon(self.delta, float(losses.max())) for name, losses in mu.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the plan and its losses as JSON values, for reading; epsilons at `delta`."""
        pairs = self.losses.pair_epsilons(self.delta)
        return {
            "graph": self.network.label,
            "nodes": list(self.network.names),
            "method": self.method,
            "target": self.target,
            "budget": self.budget.to_dict(),
            "delta": self.delta,
            "messages": self.messages,
            "noise_multiplier": self.federated.multiplier,
            "epsilon": plain(self.losses.epsilon(self.delta)),
            "mean_epsilon": plain(float(pairs.mean())),
            "max_epsilon": plain(float(pairs.max())),
            **{f"{name}_epsilon": plain(epsilon) for name, epsilon in self.epsilon_of_readers.items()},
        }

    def __str__(self) -> str:
        from discreet.federated.decentralised.plan_text import describe

        return describe(self)


def plan_network(
    problem: Problem,
    columns: int,
    bounds: Any,
    network: Network,
    *,
    method: Method = "tree",
    epsilon: float | Budget = 1.0,
    delta: float | None = None,
    target: Target = "local",
    rounds: int = ROUNDS,
    gossip_steps: int | None = None,
    message_noise: float | None = None,
    way: Way = "tour",
    path_seed: int = 0,
    **settings: Any,
) -> NetworkSchedule:
    """Plan a training on a graph from public facts; no row is read.

    Guarantee: the loss that `target` names keeps the budget; `losses` of the plan says what every pair costs.

    Parameters
    ----------
    problem : Problem
        Loss, penalty, constraint and intercept.
    columns : int
        Number of columns, the target not counted.
    bounds : (low, high)
        Public limits of the columns.
    network : Network
        Who can send to whom, for example from `network_named`; each node is one data holder.
    method : {"gossip", "tree", "walk", "admm-walk"}, default="tree"
        "gossip" and "tree": consensus ADMM, averages by gossip or along a spanning tree. "walk": a token with gradient
        steps. "admm-walk": a token with ADMM steps, for which only the local bound is certified.
    epsilon : float or Budget, default=1.0
        The budget for the whole run.
    delta : float, optional
        One over the square of the number of nodes by default.
    target : {"local", "mean", "max"}, default="local"
        Which loss must keep the budget: what all messages of a node tell together, or what a node learns about
        another one, on average over the pairs or at most.
    rounds : int, default=10
        Rounds of ADMM, or for a token how often it visits a node on average.
    gossip_steps, message_noise : optional
        As in `plan_gossip`.
    way : {"tour", "random"}, default="tour"
        How a token goes: on tours on which each node makes one step, in random orders, or on a random walk.
    path_seed : int, default=0
        For the way of a token, which is public.
    **settings
        y_bounds, relation, gamma, relaxation, clip, tolerance, run, as in `plan_federated`.

    Returns
    -------
    NetworkSchedule

    Examples
    --------
    >>> from discreet.federated.decentralised import Network, plan_network
    >>> from discreet.problem import L2, Logistic, Problem
    >>> ring = Network(tuple("abcde"), tuple(((i - 1) % 5, (i + 1) % 5) for i in range(5)))
    >>> plan = plan_network(Problem(Logistic(), L2(0.01)), 3, (-1.0, 1.0), ring, epsilon=2.0)
    >>> bool((plan.losses.mu <= plan.losses.local[:, None]).all())
    True
    """
    one_of("method", method, pairwise.METHODS)
    one_of("target", target, pairwise.TARGETS)
    one_of("way", way, pairwise.WAYS)
    if other := set(settings) - SETTINGS:
        raise TypeError(f"plan_network has no settings {sorted(other)}; those of nodes are {sorted(SETTINGS)}.")
    rounds = whole("rounds", rounds, least=1)
    budget = budget_from(epsilon, delta, network.size)
    if budget.kind == "pure" and not budget.is_infinite:
        raise ValueError("training on a graph uses Gaussian noise and needs a budget with delta > 0.")
    protocol: AnyProtocol
    if method == "gossip":
        protocol = plan_gossip(network, steps=gossip_steps, message_noise=message_noise)
    elif method == "tree":
        protocol = SpanningTree(network, network.centre)
    else:
        protocol = (plan_tour if way == "tour" else plan_walk)(network, rounds, path_seed)
    if isinstance(protocol, Walk):
        rounds = int(protocol.visits.max())
    own = pairwise.own_budget(budget, target, method, protocol, rounds, columns + problem.fit_intercept)
    if method == "walk":
        assert isinstance(protocol, Walk)
        settings = token_settings(problem, columns, settings, own, protocol)
    federated = plan_federated(
        problem, columns, bounds, network.size, epsilon=own, rounds=rounds, dropouts=0, **settings
    )
    return NetworkSchedule(federated, method, protocol, target, budget)
