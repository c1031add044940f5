"""The ServerApp: the library's own rounds, with requests and answers that travel over Flower's grid."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, MessageType
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid, ServerApp

from discreet.federated.flower.app import ServerSettings
from discreet.federated.flower.records import UNREADABLE, answer_from_record, request_to_record
from discreet.federated.rounds import Refusal, Reply, Request, run_rounds
from discreet.federated.server import Server

LOOK_FOR_CLIENTS_EVERY = 1.0  # seconds
# What Flower reports for a message that was lost with a connection or a process, or whose node is not there now.
ON_THE_WAY = (
    ErrorCode.MESSAGE_UNAVAILABLE,
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
    ErrorCode.NODE_UNAVAILABLE,
    ErrorCode.CLIENT_APP_CRASHED,
)


class GridSender:
    """Send the requests of a round and collect the answers, up to a time limit.

    A client is the node that was registered with its name (`flwr supernode register KEY --name NAME`), so that a
    client that restarts is still the same client, and nobody else can answer in its name. A client that is not
    connected, or disappears before it has answered, is asked as soon as it is back, if the round has not ended.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    plan : bytes
        The digest of the plan; clients answer only a server that follows the plan they hold.
    timeout : float
        Seconds after which a round goes on without those who have not answered. A request expires with its
        round: a client that wakes up later does not spend a participation on it.
    poll : float
        Seconds between two looks for answers. Flower's own `send_and_receive` looks every 3 seconds.
    """

    def __init__(self, grid: Grid, plan: bytes, *, timeout: float, poll: float = 0.25) -> None:
        self.grid, self.plan, self.timeout, self.poll = grid, plan, timeout, poll
        self._known: dict[str, int] = {}

    def __call__(self, requests: dict[str, Request]) -> list[Reply | Refusal]:
        """Ask the clients; the answers in the order in which the clients were asked."""
        deadline = time.monotonic() + self.timeout
        unsent, waiting = dict(requests), dict[str, str]()
        answers: dict[str, Reply | Refusal] = {}
        next_look = 0.0
        while len(answers) < len(requests) and time.monotonic() < deadline:
            if unsent and time.monotonic() >= next_look:
                waiting.update(self._push(unsent, deadline))
                next_look = time.monotonic() + LOOK_FOR_CLIENTS_EVERY
            for message in self.grid.pull_messages(list(waiting)) if waiting else ():
                client = waiting.pop(message.metadata.reply_to_message_id, None)
                if client is None:
                    continue
                if message.has_error() and message.error.code in ON_THE_WAY:
                    unsent[client] = requests[client]  # asked twice in a round, a client sends the same reply again
                else:
                    answers[client] = read_answer(message, client, requests[client].round)
            if len(answers) < len(requests):
                time.sleep(self.poll)
        return [answers[client] for client in requests if client in answers]

    def wait_for(self, clients: tuple[str, ...], seconds: float) -> list[str]:
        """Wait until all clients are connected, at most this long; returns those that are not."""
        deadline = time.monotonic() + seconds
        while missing := sorted(set(clients) - self._nodes().keys()):
            if time.monotonic() >= deadline:
                break
            time.sleep(self.poll)
        return missing

    def _push(self, unsent: dict[str, Request], deadline: float) -> dict[str, str]:
        """Send to those who are connected, and take them off the list; returns the client of each message."""
        nodes = self._nodes()
        clients = [client for client in unsent if client in nodes]
        if not clients:
            return {}
        time_left = max(deadline - time.monotonic(), 1e-3)
        messages = []
        for client in clients:
            request = unsent.pop(client)
            record = request_to_record(request, self.plan)
            messages.append(
                Message(record, nodes[client], MessageType.TRAIN, ttl=time_left, group_id=str(request.round))
            )
        identifiers = self.grid.push_messages(messages)
        return {identifier: client for identifier, client in zip(identifiers, clients, strict=True) if identifier}

    def _nodes(self) -> dict[str, int]:
        """Nodes that are connected, by the name they were registered with.

        A client stays the node that first bore its name: a second key that is registered under the name later is not
        asked. Of two that are there from the start nobody knows which is the client, and neither is asked.
        """
        connected: dict[str, set[int]] = {}
        for node in self.grid.get_nodes():
            if node.name:
                connected.setdefault(node.name, set()).add(node.node_id)
        for name, nodes in connected.items():
            if name not in self._known and len(nodes) == 1:
                (self._known[name],) = nodes
        return {name: node for name, node in self._known.items() if node in connected.get(name, ())}


def read_answer(message: Message, client: str, round_number: int) -> Reply | Refusal:
    """Read what a client sent; what cannot be read, or comes in another client's name, is a refusal."""
    if message.has_error():
        return Refusal(client, round_number, f"Flower reports error {message.error.code}")
    try:
        answer = answer_from_record(message.content)
    except Exception:  # whatever a client sends, the round goes on
        return Refusal(client, round_number, UNREADABLE)
    if answer.client != client:
        return Refusal(client, round_number, "the answer came in another client's name")
    return answer


app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train by the settings that the run configuration names, and write the outcome where they say.

    The outcome is written also if something fails: whoever waits for the file then reads why there is no model.
    """
    settings = ServerSettings.read(Path(str(context.run_config["settings"])))
    try:
        settings.write_outcome(_train(grid, settings))
    except Exception as error:
        settings.write_outcome({"error": f"{type(error).__name__}: {error}"})
        raise


def make_server_app(server: Server, *, timeout: float, poll: float = 0.25) -> ServerApp:
    """Make a ServerApp that runs all rounds that a server has left; afterwards the server holds the model.

    Parameters
    ----------
    server : Server
    timeout : float
        Seconds after which a round goes on without those who have not answered.
    poll : float, default=0.25
        Seconds between two looks for answers.

    Returns
    -------
    flwr.serverapp.ServerApp
    """
    made = ServerApp()

    @made.main()
    def run(grid: Grid, context: Context) -> None:
        run_rounds(server, GridSender(grid, server.plan.digest, timeout=timeout, poll=poll))

    return made


def _train(grid: Grid, server_settings: ServerSettings) -> dict[str, Any]:
    """Run all rounds; returns the model and what happened, as JSON values."""
    server = server_settings.server()
    sender = GridSender(grid, server.plan.digest, timeout=server_settings.timeout)
    sender.wait_for(server.clients, server_settings.wait)
    seconds: list[float] = []

    def timed(requests: dict[str, Request]) -> list[Any]:
        begin = time.monotonic()
        answers = sender(requests)
        seconds.append(time.monotonic() - begin)
        return list(answers)

    reports = run_rounds(server, timed)
    coefficients, intercept = server.to_user(server.averaged_weights)
    return {
        "coef": coefficients.tolist(),
        "intercept": intercept,
        "weights": server.weights.tolist(),
        "averaged_weights": server.averaged_weights.tolist(),
        "plan": server.plan.to_dict(),
        "ended": server.ended,
        "rounds": [vars(report) | {"seconds": took} for report, took in zip(reports, seconds, strict=True)],
    }
