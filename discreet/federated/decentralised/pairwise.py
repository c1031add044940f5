"""What each node of a network learns about each other one: pairwise network differential privacy.

All losses are mu of Gaussian differential privacy: to node v, two states of node u's data are no easier to tell
apart than N(0, 1) from N(mu, 1). Proofs: docs/guarantees/decentralised.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.decentralised.gossip import Gossip
from discreet.federated.decentralised.random_walk import Walk
from discreet.federated.decentralised.tree import SpanningTree
from discreet.privacy import accounting
from discreet.privacy.budget import Budget

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
