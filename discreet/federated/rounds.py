"""What server and clients send each other in a round, and the one loop of rounds, however requests travel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._common.codec import Count, UsualArray
from discreet._common.exceptions import UtilityWarning
from discreet._common.types import FloatArray, Progress

if TYPE_CHECKING:
    from discreet.federated.client import Client
    from discreet.federated.server import RoundReport, Server


@dataclass(frozen=True, eq=False)
class Request:
    """What the server asks a client.

    Attributes
    ----------
    round : int
        The number of the round, from 1.
    weights : array of shape (p,)
        The current model, in scaled columns, the intercept last.
    accepted : int
        The number of this client's last reply that the server has used; 0: none yet.
    """

    round: int
    weights: FloatArray
    accepted: int


@dataclass(frozen=True, eq=False)
class Reply:
    """What a client answers: its clipped gradient, with its own noise.

    Attributes
    ----------
    client : str
    round : int
        The round of the request.
    number : int
        How many replies this client has made in this run, this one included.
    gradient : array of shape (p,)
    """

    client: str
    round: Count
    number: Count
    gradient: UsualArray


@dataclass(frozen=True)
class Refusal:
    """A client's answer without any number from its rows, and why."""

    client: str
    round: int
    reason: str


def fault_of(gradient: Any, dimension: int) -> str:
    """What is wrong with the numbers of a message; empty if nothing is."""
    if not isinstance(gradient, np.ndarray):
        return f"a message of type {type(gradient).__name__}"
    if gradient.dtype != np.float64:
        return f"numbers of type {gradient.dtype}, not float64"
    if gradient.shape != (dimension,):
        return f"a message of shape {gradient.shape}, not ({dimension},)"
    return "" if np.isfinite(gradient).all() else "NaN or infinity in the message"


Send = Callable[[dict[str, Request]], Iterable[Any]]


def run_rounds(server: Server, send: Send, progress: Progress | None = None) -> list[RoundReport]:
    """Run all rounds that are left.

    Parameters
    ----------
    server : Server
        The server; afterwards it holds the model.
    send : callable
        Takes the requests of a round, by client, and returns whatever has come back before its timeout: replies,
        refusals, late answers to earlier rounds, in any order.
    progress : callable, optional
        Called as progress(done, total) after each round.

    Returns
    -------
    list of RoundReport
        One for each round.
    """
    plan, reports = server.plan, []
    before = plan.warnings()
    if server.round == 1:
        _warn(before)
    while not server.finished:
        reports.append(server.receive(send(server.next_requests())))
        if progress is not None:
            progress(reports[-1].round, plan.rounds)
    if not before:
        _warn(plan.warnings(server.averaged_weights))
    return reports


def _warn(told: list[str]) -> None:
    for message in told:
        warnings.warn(message, UtilityWarning, stacklevel=3)


def in_process(clients: Mapping[str, Client]) -> Send:
    """A `send` for clients that live in this process: each answers at once, in the order asked."""
    return lambda requests: [
        under_own_name(name, clients[name].answer(request), request) for name, request in requests.items()
    ]


def under_own_name(name: str, answer: Any, request: Request) -> Any:
    """The answer that came from this client, or a refusal if it bears another client's name.

    The server knows clients by the names in their answers. Whoever carries the messages knows where each comes from,
    and must pass them through here.
    """
    if getattr(answer, "client", name) == name:
        return answer
    return Refusal(name, request.round, "answered under another name")
