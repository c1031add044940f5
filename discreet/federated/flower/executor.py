"""A client's own process beside its SuperNode: it answers with the installed library, never with code from the server.

Flower sends the code of an app from the server to the clients. A client that ran it would hand its rows to whoever
runs the server, and no statement about its noise would hold. So a SuperNode of this library is started with
`--isolation process`, and this process takes the requests from it: of the app that came with a request nothing is
loaded. It also stays up between rounds, where Flower starts a new Python for each message.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from flwr.clientapp import ClientApp
from flwr.common.constant import SubStatus
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

_log = logging.getLogger(__name__)

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
        self.client_app = client_app
        self.address = address
        self.authority = authority.read_bytes()
        self.poll = poll
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
