"""The one loop of a federated run, whichever way requests travel to the clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from discreet._common.types import Progress
from discreet.federated.client import Client
from discreet.federated.messages import Refusal, Request
from discreet.federated.server import RoundReport, Server

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
    reports = []
    while not server.finished:
        reports.append(server.receive(send(server.next_requests())))
        if progress is not None:
            progress(reports[-1].round, server.plan.rounds)
    return reports


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
