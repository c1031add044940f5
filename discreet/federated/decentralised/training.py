"""Training on a graph, all nodes in one process: what each node does, and the messages between them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.federated.client import Client
from discreet.federated.decentralised.plan import NetworkSchedule
from discreet.federated.decentralised.random_walk import BLOCK, Walk
from discreet.federated.local_problem import LocalProblem
from discreet.federated.rounds import Reply, Request
from discreet.federated.server import ModelMap
from discreet.privacy.random.generator import RandomGenerator, generator_from


@dataclass(frozen=True, eq=False)
class NetworkResult:
    """What a training on a graph gives.

    Attributes
    ----------
    coef : array of shape (columns,)
        The coefficients, in the users' columns.
    intercept : float
    weights : array of shape (p,)
        The same in scaled columns, the intercept last.
    models : array of shape (rounds, p)
        The model after each round, or after each visit of a token, in scaled columns. All nodes know those of rounds;
        those of a token are for tests, and are known only to the nodes that held it.
    plan : NetworkSchedule
    """

    coef: FloatArray
    intercept: float
    weights: FloatArray
    models: FloatArray
    plan: NetworkSchedule


def train_network(
    plan: NetworkSchedule, data: Sequence[tuple[Any, Any]], random_state: int | RandomGenerator | None = None
) -> NetworkResult:
    """Train a model with the nodes of a network.

    Guarantee: `plan.losses`, for the result and for every message, if all nodes follow the plan.

    Parameters
    ----------
    plan : NetworkSchedule
    data : sequence of (X, y)
        The rows of each node, in the order of the network's names.
    random_state : int or RandomGenerator, optional
        A seed makes the noise reproducible, for tests; None: from the operating system.

    Returns
    -------
    NetworkResult
    """
    if len(data) != plan.network.size:
        raise ValueError(f"the network has {plan.network.size} nodes; there are rows for {len(data)}.")
    rng = generator_from(random_state)
    rng.rekey(plan.digest)
    own, shared = rng.spawn(plan.network.size), rng.spawn(1)[0]
    named = zip(plan.network.names, data, own, strict=True)
    clients = [
        Client(plan.federated, name, X, y, max_epsilon=math.inf, random_state=one) for name, (X, y), one in named
    ]
    model = ModelMap(plan.federated)
    if plan.method == "walk":
        models = np.array(list(_gradient_token(plan, clients, model, own)))
    elif plan.method == "admm-walk":
        models = np.array(list(_admm_token(plan, clients, model)))
    else:
        models = np.array(list(_consensus(plan, clients, model, shared)))
    # All nodes know the models of rounds, so that their mean costs nothing; a token is known at its last place only.
    kept = models[-1:] if isinstance(plan.protocol, Walk) else models[len(models) // 2 :]
    weights = kept.mean(axis=0)
    return NetworkResult(*model.to_user(weights), weights, models, plan)


def _answer(client: Client, weights: FloatArray) -> FloatArray:
    """A node's noisy gradient at its proximal step."""
    done = client.replies
    reply = client.answer(Request(done + 1, weights, done))
    if not isinstance(reply, Reply):
        raise RuntimeError(f"node {reply.client!r} does not take part: {reply.reason}.")
    return reply.gradient


def _consensus(
    plan: NetworkSchedule, clients: Sequence[Client], model: ModelMap, rng: RandomGenerator
) -> Iterator[FloatArray]:
    """Rounds of ADMM; the mean of the gradients comes from gossip or from the tree."""
    assert not isinstance(plan.protocol, Walk)
    federated, grid = plan.federated, plan.message_grid
    keep, mean = 1.0 - 2.0 * federated.relaxation, np.zeros(federated.dimension)
    for _ in range(federated.rounds):
        z = model.prox(mean)
        gradients = np.array([_answer(client, z) for client in clients])
        average = plan.protocol.average(gradients, grid, rng)
        mean = keep * mean + (1.0 - keep) * (z - federated.gamma * average)
        yield model.prox(mean)


def _gradient_token(
    plan: NetworkSchedule, clients: Sequence[Client], model: ModelMap, own: Sequence[RandomGenerator]
) -> Iterator[FloatArray]:
    """A token that takes a noisy proximal gradient step at every node it visits."""
    assert isinstance(plan.protocol, Walk)
    grid, step = plan.token_grid, plan.federated.gamma
    problems = [ClippedRows.of(client.problem, plan.federated.clip) for client in clients]
    token = np.zeros(plan.federated.dimension)
    for node in plan.protocol.stops:
        token = model.prox(grid.release(own[node], token - step * problems[node].gradient_at(token)))
        yield token


def _admm_token(plan: NetworkSchedule, clients: Sequence[Client], model: ModelMap) -> Iterator[FloatArray]:
    """A token that holds the mean of the dual variables, of which the node it visits renews its own."""
    assert isinstance(plan.protocol, Walk)
    federated = plan.federated
    keep, token = 1.0 - 2.0 * federated.relaxation, np.zeros(federated.dimension)
    duals = np.zeros((len(clients), federated.dimension))
    for node in plan.protocol.stops:
        z = model.prox(token)
        moved = keep * duals[node] + (1.0 - keep) * (z - federated.gamma * _answer(clients[node], z))
        token = token + (moved - duals[node]) / len(clients)
        duals[node] = moved
        yield model.prox(token)


class ClippedRows(LocalProblem):
    """The mean loss of a node with every row's gradient clipped: still convex and smooth, so steps are non-expansive.

    Guarantee: `gradient_at` is a mean of vectors of norm at most the clip. Not private.
    """

    @classmethod
    def of(cls, problem: LocalProblem, clip: float) -> ClippedRows:
        """The rows of another problem, clipped."""
        weight = problem.share * problem.divisor
        return cls(problem.X, problem.y, weight, problem.loss, problem.divisor, problem.gamma, clip)

    def gradient_at(self, w: FloatArray) -> FloatArray:
        """The gradient of the clipped loss; rounding errors do not grow with the number of rows, as Theorem 4 needs."""
        slopes = self._slopes(self.X @ w)
        blocks = [slice(start, start + BLOCK) for start in range(0, slopes.size, BLOCK)]
        sums = np.array([self.X[rows].T @ slopes[rows] for rows in blocks])
        return np.array([math.fsum(column) for column in sums.T])
