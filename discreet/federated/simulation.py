"""Federated runs in one process: rows of a table split over clients, some of which drop out."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._common.checks import fraction
from discreet._common.exceptions import InsecureRandomnessWarning
from discreet._common.types import IndexArray, Progress
from discreet.federated.client import Client
from discreet.federated.plan import FederatedPlan
from discreet.federated.rounds import Request, Send, in_process, run_rounds
from discreet.federated.server import RoundReport, Server

Parts = dict[str, IndexArray]


def split_evenly(rows: int, clients: int, seed: int = 0) -> Parts:
    """Rows of each client, by name: a random split into parts of equal size, give or take one row.

    Parameters
    ----------
    rows, clients : int
        How many.
    seed : int, default=0
        Of the random order.

    Returns
    -------
    dict of ndarray
    """
    if not 1 <= clients <= rows:
        raise ValueError(f"{rows} rows cannot be split over {clients} clients.")
    order = np.random.default_rng(seed).permutation(rows)
    width = len(str(clients - 1))
    return {f"client {i:0{width}d}": part for i, part in enumerate(np.array_split(order, clients))}


def split_by(values: Any) -> Parts:
    """Rows of each client, by name: one client for every value of a column.

    Parameters
    ----------
    values : array of shape (n_samples,)
        The column, which must be public: it says who holds which row.

    Returns
    -------
    dict of ndarray
    """
    column = np.asarray(values)
    found, owner = np.unique(column, return_inverse=True)
    order = np.argsort(owner, kind="stable")
    cuts = np.searchsorted(owner[order], np.arange(1, found.size))
    return {str(value): part for value, part in zip(found.tolist(), np.split(order, cuts), strict=True)}


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What a simulation leaves.

    Attributes
    ----------
    server : Server
        It holds the model.
    clients : dict of Client
        By name.
    reports : list of RoundReport
        One for each round.
    seconds : float
        Time of a round, on average.
    """

    server: Server
    clients: dict[str, Client]
    reports: list[RoundReport]
    seconds: float


def clients_of(
    plan: FederatedPlan, X: Any, y: Any, parts: Mapping[str, IndexArray], seed: int | None
) -> dict[str, Client]:
    """One client for each part of the rows, all in this process; a seed makes their noise reproducible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)  # the caller of a simulation chose the seed
        return {
            name: Client(plan, name, X[part], y[part], max_epsilon=math.inf, random_state=seed)
            for name, part in parts.items()
        }


def losing(send: Send, rate: float, seed: int = 0) -> Send:
    """A `send` that loses each answer with this probability, whatever is in it."""
    rng, rate = np.random.default_rng(seed), fraction("rate", rate)

    def unreliable(requests: dict[str, Request]) -> Iterable[Any]:
        return [answer for answer in send(requests) if rng.uniform() >= rate]

    return unreliable


def simulate(
    plan: FederatedPlan,
    X: Any,
    y: Any,
    parts: Mapping[str, IndexArray],
    *,
    dropout: float = 0.0,
    seed: int | None = None,
    progress: Progress | None = None,
) -> SimulatedRun:
    """Run a plan in this process.

    Guarantee: that of the plan, unless there is a seed, which removes the noise.

    Parameters
    ----------
    plan : FederatedPlan
        The plan, made for as many clients as there are parts.
    X : array of shape (n_samples, n_features)
        All rows.
    y : array of shape (n_samples,)
        Targets, or labels in the coding of the loss (-1 and +1).
    parts : dict of ndarray
        Which rows each client holds, from `split_evenly` or `split_by`.
    dropout : float, default=0.0
        Probability with which an answer is lost.
    seed : int, optional
        Makes the run reproducible, for tests.
    progress : callable, optional
        Called as progress(done, total).

    Returns
    -------
    SimulatedRun
    """
    clients = clients_of(plan, X, y, parts, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        server = Server(plan, list(clients), random_state=seed)
    send = in_process(clients)
    started = time.perf_counter()
    reports = run_rounds(server, losing(send, dropout, seed or 0) if dropout > 0.0 else send, progress)
    return SimulatedRun(server, clients, reports, (time.perf_counter() - started) / max(1, len(reports)))
