"""A Flower grid inside one process: the ServerApp and the ClientApp run as they are, without SuperLink or Ray."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

from discreet.federated.client import Client
from discreet.federated.flower.client_app import make_client_app
from discreet.federated.flower.internals import task_identity
from discreet.federated.flower.server_app import make_server_app
from discreet.federated.server import Server


def run_in_process(server: Server, clients: Mapping[str, Client], timeout: float = 60.0) -> None:
    """Run all rounds that a server has left through the ServerApp and the ClientApp, in this process.

    Parameters
    ----------
    server : Server
        Holds the model afterwards: the same numbers as with `run_rounds(server, in_process(clients))`.
    clients : mapping of str to Client
    timeout : float, default=60
        Seconds after which a round goes on without those who have not answered.
    """
    app = make_client_app(lambda context: clients[str(context.node_config["client"])])
    with task_identity():
        make_server_app(server, timeout=timeout)(InProcessGrid(app, list(clients)), Context(1, 0, {}, RecordDict(), {}))


class InProcessGrid(Grid):
    """Hand each message to the ClientApp as it is pushed, and keep the reply until it is pulled.

    Parameters
    ----------
    client_app : flwr.clientapp.ClientApp
    clients : sequence of str
        Names of the clients; node number i + 1 is client i, with `client` in its node configuration.
    """

    def __init__(self, client_app: ClientApp, clients: Sequence[str]) -> None:
        self._client_app = client_app
        self._names = dict(enumerate(clients, start=1))
        self._replies: dict[str, Message] = {}
        self._numbers = itertools.count(1)

    def get_node_ids(self) -> list[int]:
        """Return the numbers of the nodes."""
        return list(self._names)

    def get_nodes(self) -> list[NodeInfo]:
        """Return the nodes with the names of their clients."""
        return [NodeInfo(node_id=node, name=name) for node, name in self._names.items()]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Run the ClientApp on each message."""
        identifiers = []
        for message in messages:
            identifier = str(next(self._numbers))
            message.metadata.__dict__["_message_id"] = identifier  # as Flower's own grids set it
            self._replies[identifier] = self._client_app(message, self._context(message.metadata.dst_node_id))
            identifiers.append(identifier)
        return identifiers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies, each once."""
        return [self._replies.pop(identifier) for identifier in message_ids if identifier in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Push, then pull."""
        return self.pull_messages(self.push_messages(messages))

    def _context(self, node: int) -> Context:
        """Return a fresh context every time: a client keeps its own state, and relies on none of Flower's."""
        return Context(1, node, {"client": self._names[node]}, RecordDict(), {})

    @property
    def run(self) -> Any:
        """A grid inside one process has no record of a run."""
        raise NotImplementedError

    def set_run(self, *_: Any, **__: Any) -> Any:
        """A grid inside one process has no record of a run."""
        raise NotImplementedError

    create_message = set_run  # deprecated in Flower, which calls `Message`
