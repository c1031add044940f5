"""What each node of a network learns about each other one: pairwise network differential privacy.

All losses are mu of Gaussian differential privacy: to node v, two states of node u's data are no easier to tell
apart than N(0, 1) from N(mu, 1). Proofs: docs/guarantees/decentralised.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.decentralised.network import Network
from discreet.privacy import accounting


class Views(Protocol):
    """A protocol whose views can be accounted for: gossip, a tree, or a walk."""

    @property
    def network(self) -> Network: ...

    @property
    def local(self) -> FloatArray: ...

    def seen_by(self, observers: Sequence[int]) -> FloatArray: ...

    def rounding(self, columns: int, rounds: int) -> float: ...


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

    @property
    def pairs(self) -> FloatArray:
        """The losses of all pairs of two nodes, as one list."""
        return self.mu[~np.eye(len(self.mu), dtype=bool)]

    def epsilon(self, delta: float) -> FloatArray:
        """The matrix as epsilons at a delta."""
        values, places = np.unique(self.mu, return_inverse=True)
        epsilons = np.array([accounting.gaussian_epsilon(delta, float(mu)) for mu in values])
        return epsilons[places].reshape(self.mu.shape)

    def rho(self) -> FloatArray:
        """The matrix in zero-concentrated differential privacy: mu^2 / 2."""
        return 0.5 * self.mu**2


def relative_losses(views: Views, rounds: int) -> PairwiseLosses:
    """Return the losses for a noise multiplier of 1: in units of what a node's own noise makes of one release.

    Parameters
    ----------
    views : Gossip, SpanningTree or Walk
    rounds : int
        How often the protocol is run, one after the other; 1 for a walk, which counts its visits itself.
    """
    root = math.sqrt(rounds)
    mu = root * np.stack([views.seen_by([v]) for v in range(views.network.size)], axis=1)
    np.fill_diagonal(mu, 0.0)
    return PairwiseLosses(mu, root * views.local, root * views.seen_by([]))


def certified(relative: PairwiseLosses, multiplier: float, rounding: float) -> PairwiseLosses:
    """The losses for a noise multiplier, with what rounding adds, none above the local loss."""
    if multiplier == 0.0:
        infinite = np.full_like(relative.mu, math.inf)
        np.fill_diagonal(infinite, 0.0)
        return PairwiseLosses(infinite, np.full_like(relative.local, math.inf), np.full_like(relative.local, math.inf))
    local = relative.local / multiplier
    mu = np.minimum(relative.mu / multiplier + rounding, local[:, None])
    np.fill_diagonal(mu, 0.0)
    return PairwiseLosses(mu, local, np.minimum(relative.reader / multiplier + rounding, local))
