"""All that discreet uses of Flower and Flower does not call public: no public interface keeps the server's code out.

Flower sends the code of an app from the server to the clients. A client that ran it would hand its rows to whoever
runs the server, and no statement about its noise would hold. So a SuperNode of this library is started with
`--isolation process`, and `Executor` takes the requests from it: of the app that came with a request nothing is loaded.
It also stays up between rounds, where Flower starts a new Python for each message. Why nothing public does this:
docs/flower.md, "Which Flower".
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.clientapp import ClientApp
from flwr.common.constant import SubStatus
from flwr.proto.fleet_pb2 import DeactivateNodeRequest
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from discreet._common.codec import write_durably
from discreet._common.text import LONGEST, one_line

_log = logging.getLogger(__name__)

NOT_ACCEPTED = "its key must be registered there, and the clocks of both machines must agree to within seconds."
ACQUIRE = frozenset({"/flwr.proto.Runtime/AcquireTask"})


class Executor:
    """Take requests from a SuperNode and answer them with one ClientApp.

    Parameters
    ----------
    client_app : flwr.clientapp.ClientApp
    address : str
        Host and port of the SuperNode's own interface (its `--host` and `--port`).
    authority : Path
        Certificate of the authority that signed the SuperNode's certificate.
    secret : bytes
        What the SuperNode was given by `--superexec-auth-secret-file`: other programs on the machine may not take
        its requests.
    poll : float
        Seconds between two looks for a request.
    """

    def __init__(
        self, client_app: ClientApp, address: str, *, authority: Path, secret: bytes, poll: float = 0.1
    ) -> None:
        self.client_app, self.address, self.poll = client_app, address, poll
        self.authority = authority.read_bytes()
        signature = SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods=ACQUIRE)
        self._acquiring = self._connect(RuntimeVersionHttpInterceptor(component_name="SuperExec"), signature)

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Answer requests until `stopped()` is true. A SuperNode that is not there yet, or restarts, is waited for."""
        while not stopped():
            if not self.answer_one():
                time.sleep(self.poll)

    def answer_one(self) -> bool:
        """Answer one request, if there is one."""
        try:
            task = self._acquiring.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
            if not task.token:
                return False
            self._answer(task.token)
        except httpx.HTTPError:  # not there yet, restarting, or the run has ended: the server asks again
            return False
        except Exception:
            _log.exception("a request was not answered")  # the next one may be: the client stays up
            return False
        return True

    def close(self) -> None:
        """Close the connection to the SuperNode, which otherwise waits for it when it is asked to stop."""
        self._acquiring.close()

    def _answer(self, token: str) -> None:
        version = RuntimeVersionHttpInterceptor(component_name="flwr-clientapp")
        connection = self._connect(version, RuntimeTokenHttpInterceptor(token))
        heartbeat = HeartbeatSender(lambda: _beat(connection))
        context, status = None, SubStatus.FAILED
        try:
            heartbeat.start()
            message, context, _, _ = pull_task_input(connection)
            push_message(connection, self.client_app(message=message, context=context), context)
            status = SubStatus.COMPLETED
        finally:
            push_task_output(client=connection, context=context, sub_status=status, details="")
            if heartbeat.is_running:
                heartbeat.stop()
            connection.close()

    def _connect(self, *interceptors: Any) -> RuntimeHttpClient:
        """Open a connection that does not retry by itself: after a failure the next look for a request is soon."""
        return RuntimeHttpClient.from_server_address(
            server_address=self.address,
            insecure=False,
            root_certificates=self.authority,
            interceptors=list(interceptors),
        )


def _beat(connection: RuntimeHttpClient) -> bool:
    """Tell the SuperNode that the answer is being made; Flower's own function ends the process if this fails."""
    with contextlib.suppress(httpx.HTTPError):
        connection.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    return True


class EarlierConnection:
    """The number of a client at its SuperLink, in a file: so a client that was killed comes back at once.

    A SuperLink takes a client for connected until its signs of life are 60 seconds old, and turns a second connection
    with the same key away until then. A client that starts again first says, signed with its key, that the earlier
    connection has ended.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def remember(self, node: int) -> None:
        """Keep the number."""
        if self._number() != node:
            write_durably(self.path, str(node))

    def end(self, superlink: str, authority: Path, key: Path) -> None:
        """Tell the SuperLink that the connection has ended; without a number or an answer, it finds out by itself."""
        node = self._number()
        if node is None:
            return
        private = load_ssh_private_key(key.read_bytes(), None)
        if not isinstance(private, EllipticCurvePrivateKey):
            raise ValueError(f"{key} is not a key on an elliptic curve; make one with: ssh-keygen -t ecdsa -b 384")
        signature = NodeAuthHttpInterceptor(private, private.public_key())
        signs = [RuntimeVersionHttpInterceptor(component_name="SuperNode"), signature]
        try:
            with FleetHttpClient.from_server_address(superlink, False, authority.read_bytes(), signs) as connection:
                connection.DeactivateNode(DeactivateNodeRequest(node_id=node))
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.UNAUTHORIZED:
                _log.warning("%s does not accept the signature of this client: %s", superlink, NOT_ACCEPTED)
        except httpx.HTTPError as error:  # it is not there, or its certificate is not valid at this hour
            _log.warning("%s is not reached: %s", superlink, one_line(str(error), LONGEST))

    def _number(self) -> int | None:
        try:
            return int(self.path.read_text())
        except (FileNotFoundError, ValueError):
            return None


@contextmanager
def task_identity() -> Iterator[None]:
    """Give this process the identity that Flower's `Message` asks for, and take it back at the end."""
    names = ("_run_id", "_node_id", "_task_id")
    before = {name: getattr(TaskIdentity, name) for name in names}
    try:
        for name, value in zip(names, (1, 0, 1), strict=True):
            setattr(TaskIdentity, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(TaskIdentity, name, value)
