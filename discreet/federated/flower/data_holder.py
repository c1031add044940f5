"""What a data holder runs: a SuperNode, and beside it the process that reads the rows and answers."""

from __future__ import annotations

import contextlib
import logging
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from flwr.app import Context

from discreet.federated.client import Client
from discreet.federated.flower import processes
from discreet.federated.flower.certificates import make_server_certificate
from discreet.federated.flower.client_app import make_client_app
from discreet.federated.flower.internals import EarlierConnection, Executor
from discreet.federated.flower.processes import LOOPBACK, Program, free_port
from discreet.privacy.signatures import write_private

_log = logging.getLogger(__name__)

SECONDS_BETWEEN_STARTS = 5.0


def hold_data(client: Client, state: Path, superlink: str, *, authority: Path, key: Path, log: Path) -> None:
    """Answer the requests of a server until this process is asked to stop.

    Starts a SuperNode that connects to the server's SuperLink, again if it ends, and answers what it receives. The
    SuperNode never sees a row: it passes requests and noisy answers on.

    Guarantee: that of `Client`, as nothing else leaves this process, and no code that comes from the server is run.

    Parameters
    ----------
    client : Client
        Holds the rows, the plan, and its state.
    state : Path
        The file of the client's state; a file beside it holds the client's number at the SuperLink.
    superlink : str
        Host and port of the server's SuperLink.
    authority : Path
        Certificate of the authority that signed the SuperLink's certificate.
    key : Path
        Private key of this client, whose public part the server has registered with the client's name.
    log : Path
        Receives what the SuperNode says.
    """
    earlier = EarlierConnection(state.with_name(f"{state.name}.node"))

    def find_client(context: Context) -> Client:
        earlier.remember(context.node_id)
        return client

    app = make_client_app(find_client)
    with tempfile.TemporaryDirectory() as name, _stop_signals() as stopped:
        folder = Path(name)
        certificate, secret = make_server_certificate(folder, LOOPBACK), secrets.token_bytes(32)
        write_private(folder / "secret", secret)
        while not stopped():
            earlier.end(superlink, authority, key)
            port = free_port()
            command: list[str | Path] = [
                *("flower-supernode", "--superlink", superlink, "--root-certificates", authority),
                *("--auth-supernode-private-key", key),
                # The interface by which the SuperNode hands requests to this process, and to no other.
                *("--isolation", "process", "--host", LOOPBACK, "--port", str(port), *certificate.options),
                *("--superexec-auth-secret-file", folder / "secret"),
            ]
            supernode = Program(command, log, processes.flower_environment(folder / "flower"), own_group=False)
            try:
                supernode.wait_for_port(port)
                executor = Executor(app, f"{LOOPBACK}:{port}", authority=certificate.authority, secret=secret)
                with contextlib.closing(executor):
                    executor.run(lambda program=supernode: stopped() or not program.running)  # type: ignore[misc]
            except processes.ProgramEndedError as error:
                _log.warning("%s", error)
            finally:
                processes.stop([supernode])
            if not stopped():
                _log.warning("no connection to %s; it is tried again. %s says more", superlink, log)
            deadline = time.monotonic() + SECONDS_BETWEEN_STARTS
            while not stopped() and time.monotonic() < deadline:
                time.sleep(0.1)


@contextmanager
def _stop_signals() -> Iterator[Callable[[], bool]]:
    """Turn the signals that end a process into a question, so that the SuperNode can be ended first."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def only_process(state: Path) -> Iterator[None]:
    """Let one process at a time answer for a client: two would end each other's connection.

    Their answers would still be counted together: `StateFile` sees to that, with a lock of its own for each answer.

    Raises
    ------
    RuntimeError
        Another process holds it.
    """
    import fcntl

    with open(f"{state}.process", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another process answers with the state {state}; stop it first.") from None
        yield
