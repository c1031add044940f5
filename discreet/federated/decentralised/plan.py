"""The plan of a training on a graph: made from public facts, with the loss of every node towards every other one.

That is pairwise network differential privacy. All losses are mu of Gaussian differential privacy: to node v, two states
of node u's data are no easier to tell apart than N(0, 1) from N(mu, 1). Proofs: docs/guarantees/decentralised.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet._common.checks import one_of, whole
from discreet._common.codec import plain
from discreet._common.digest import digest_of
from discreet._common.text import paragraph
from discreet._common.types import FloatArray
from discreet.federated.decentralised.averaging import Gossip, SpanningTree, plan_gossip
from discreet.federated.decentralised.network import Network
from discreet.federated.decentralised.random_walk import Walk, check_step, plan_tour, plan_walk, token_settings
from discreet.federated.plan import FederatedPlan
from discreet.federated.planning import plan_federated
from discreet.privacy import accounting
from discreet.privacy.budget import Budget, budget_from
from discreet.privacy.mechanisms.additive import NoisyGrid
from discreet.problem.problem import Problem

Method = Literal["gossip", "tree", "walk", "admm-walk"]
Target = Literal["local", "mean", "max"]
Way = Literal["tour", "random"]
METHODS: tuple[Method, ...] = ("gossip", "tree", "walk", "admm-walk")
TARGETS: tuple[Target, ...] = ("local", "mean", "max")
WAYS: tuple[Way, ...] = ("tour", "random")

AnyProtocol: TypeAlias = Gossip | SpanningTree | Walk


@dataclass(frozen=True, eq=False)
class PairwiseLosses:
    """The loss of every node towards every other one.

    Attributes
    ----------
    mu : array of shape (nodes, nodes)
        mu[u, v]: what node v learns about the data of node u; 0 on the diagonal.
    local : array of shape (nodes,)
        What someone learns who reads all messages of all nodes. No entry of mu exceeds it.
    reader : array of shape (nodes,)
        What someone outside learns who sees the models of all rounds.

    Guarantee: the data of node u are mu[u, v]-GDP in the view of node v, whatever v and the others know about the rest
    of the data, as long as v does not pool what it sees with other nodes.
    """

    mu: FloatArray
    local: FloatArray
    reader: FloatArray

    def __post_init__(self) -> None:
        np.fill_diagonal(self.mu, 0.0)

    @property
    def pairs(self) -> FloatArray:
        """The losses of all pairs of two nodes, as one list."""
        return _of_pairs(self.mu)

    def epsilon(self, delta: float) -> FloatArray:
        """The matrix as epsilons at a delta."""
        values, places = np.unique(self.mu, return_inverse=True)
        epsilons = np.array([accounting.gaussian_epsilon(delta, float(mu)) for mu in values])
        return epsilons[places].reshape(self.mu.shape)

    def pair_epsilons(self, delta: float) -> FloatArray:
        """The epsilons of all pairs of two nodes, as one list."""
        return _of_pairs(self.epsilon(delta))

    def rho(self) -> FloatArray:
        """The matrix in zero-concentrated differential privacy: mu^2 / 2."""
        return 0.5 * self.mu**2


def _of_pairs(matrix: FloatArray) -> FloatArray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def relative_losses(views: AnyProtocol, rounds: int) -> PairwiseLosses:
    """Return the losses for a noise multiplier of 1: in units of what a node's own noise makes of one release.

    Parameters
    ----------
    views : Gossip, SpanningTree or Walk
    rounds : int
        How often the protocol is run, one after the other; 1 for a walk, which counts its visits itself.
    """
    root = math.sqrt(rounds)
    mu = root * np.stack([views.seen_by([v]) for v in range(views.network.size)], axis=1)
    return PairwiseLosses(mu, root * views.local, root * views.seen_by([]))


def certified(relative: PairwiseLosses, multiplier: float, rounding: float) -> PairwiseLosses:
    """The losses for a noise multiplier, with what rounding adds, none above the local loss."""
    if multiplier == 0.0:
        losses = (relative.mu, relative.local, relative.reader)
        return PairwiseLosses(*(np.full_like(loss, math.inf) for loss in losses))
    local = relative.local / multiplier
    mu = np.minimum(relative.mu / multiplier + rounding, local[:, None])
    return PairwiseLosses(mu, local, np.minimum(relative.reader / multiplier + rounding, local))


LEAST_MULTIPLIER = 1.0 / 64.0  # below, rounding is not small against the noise, and only the local bound is stated
_TRIES = 20


def relative_to_noise(method: Method, protocol: AnyProtocol, repeats: int) -> PairwiseLosses:
    """The losses for a noise multiplier of 1; a token of ADMM is given the local bound, as nothing more is proved."""
    if method != "admm-walk":
        return relative_losses(protocol, repeats)
    local = protocol.local
    return PairwiseLosses(np.repeat(local[:, None], local.size, axis=1), local, local)


def mean_fits(losses: PairwiseLosses, budget: Budget) -> bool:
    """Whether the mean over the pairs keeps a budget."""
    if budget.epsilon is not None and budget.delta:
        return float(losses.pair_epsilons(budget.delta).mean()) <= budget.epsilon * (1.0 + 1e-9)
    return float(losses.pairs.mean()) <= budget.gaussian_mu() * (1.0 + 1e-9)


def own_budget(
    budget: Budget, target: Target, method: Method, protocol: AnyProtocol, rounds: int, dimension: int
) -> Budget:
    """What a node's own releases may cost, read by everybody, so that the target keeps the budget."""
    if target == "local" or budget.is_infinite:
        return budget
    repeats = 1 if isinstance(protocol, Walk) else rounds
    relative = relative_to_noise(method, protocol, repeats)
    allowed = budget.gaussian_mu() - protocol.rounding(dimension, repeats)
    if allowed <= 0.0:
        raise ValueError("the budget is too small for the errors of rounding; choose target='local'.")
    seen = float(relative.pairs.mean() if target == "mean" else relative.pairs.max())
    multiplier = seen / allowed * (1.0 + 1e-12)
    if target == "mean" and budget.epsilon is not None and budget.delta:
        # Epsilon is a convex function of mu that is 0 at 0: dividing all mu by a number divides epsilon by more. What
        # rounding adds is not divided: hence a second try, and more where the budget is tiny.
        for _ in range(_TRIES):
            losses = certified(relative, multiplier, protocol.rounding(dimension, repeats))
            epsilon = float(losses.pair_epsilons(budget.delta).mean())
            if epsilon <= budget.epsilon:
                break
            multiplier *= epsilon / budget.epsilon * (1.0 + 1e-9)
    # No pair loses more than the local loss: noise for the budget itself is always enough.
    multiplier = max(multiplier, LEAST_MULTIPLIER * (1.0 + 1e-9))
    return Budget.gdp(max(budget.gaussian_mu(), float(relative.local.max()) / multiplier))


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
        relative = relative_to_noise(self.method, self.protocol, self.repeats)
        grid = self.token_grid if self.method == "walk" else self.federated.grid
        rounding = self.protocol.rounding(self.federated.dimension, self.repeats)
        if self.federated.multiplier < LEAST_MULTIPLIER or grid.step > _FINEST * grid.scale:
            rounding = math.inf
        return certified(relative, self.federated.multiplier, rounding)

    def _keeps_budget(self) -> bool:
        """Whether the loss that the target names is within the budget."""
        if self.federated.multiplier == 0.0:
            return False
        allowed = self.budget.gaussian_mu() * (1.0 + 1e-9)
        if self.target == "local":
            return float(self.protocol.local.max()) * math.sqrt(self.repeats) / self.federated.multiplier <= allowed
        if self.target == "max":
            return float(self.losses.pairs.max()) <= allowed
        return mean_fits(self.losses, self.budget)

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
        return {name: accounting.gaussian_epsilon(self.delta, float(losses.max())) for name, losses in mu.items()}

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
    one_of("method", method, METHODS)
    one_of("target", target, TARGETS)
    one_of("way", way, WAYS)
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
    own = own_budget(budget, target, method, protocol, rounds, columns + problem.fit_intercept)
    if method == "walk":
        assert isinstance(protocol, Walk)
        settings = token_settings(problem, columns, settings, own, protocol)
    federated = plan_federated(
        problem, columns, bounds, network.size, epsilon=own, rounds=rounds, dropouts=0, **settings
    )
    return NetworkSchedule(federated, method, protocol, target, budget)


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
        claimed = accounting.gaussian_epsilon(delta, float(plan.claimed.mean()))
        lines.append(f"  another node, claimed by papers and NOT certified: {claimed:.4g}")
    if isinstance(plan.protocol, Walk) and not plan.protocol.visits.all():
        lines.append(f"the token never visits {int((plan.protocol.visits == 0).sum())} nodes: their rows are not used")
    return "\n".join(paragraph(line, rest="    ") for line in lines)


READERS = {"local": "someone who reads all messages", "reader": "someone who sees the models only"}
_TARGETS = {"local": READERS["local"], "mean": "the mean over pairs of nodes", "max": "every pair of nodes"}


def _method(plan: NetworkSchedule) -> str:
    protocol = plan.protocol
    if isinstance(protocol, Walk):
        step = "gradient steps" if plan.method == "walk" else "ADMM steps"
        return f"a token with {step}, {len(protocol.stops)} visits"
    rounds = f"{plan.federated.rounds} rounds of ADMM"
    if isinstance(protocol, Gossip):
        return f"{rounds}, averages by {protocol.steps} steps of gossip with noise {protocol.message_noise:.3g}"
    return f"{rounds}, averages along a spanning tree"
