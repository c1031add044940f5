"""What a data holder runs: a SuperNode, and beside it the process that reads the rows and answers."""

from __future__ import annotations

import contextlib
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from discreet.federated.client import Client
from discreet.federated.flower.certificates import make_server_certificate, write_private
from discreet.federated.flower.client_app import make_client_app
from discreet.federated.flower.executor import Executor
from discreet.federated.flower.processes import LOOPBACK, Program, flower_environment, free_port, stop


def hold_data(client: Client, superlink: str, *, authority: Path, key: Path, log: Path) -> None:
    """Answer the requests of a server until this process is asked to stop.

    Starts a SuperNode that connects to the server's SuperLink, and answers what it receives. The SuperNode never
    sees a row: it passes requests and noisy answers on.

    Parameters
    ----------
    client : Client
        Holds the rows, the plan, and the file of its state.
    superlink : str
        Host and port of the server's SuperLink.
    authority : Path
        Certificate of the authority that signed the SuperLink's certificate.
    key : Path
        Private key of this client, whose public part the server has registered with the client's name.
    log : Path
        Receives what the SuperNode says.
    """
    with tempfile.TemporaryDirectory() as name, _stop_signals() as stopped:
        folder = Path(name)
        certificate, port, secret = make_server_certificate(folder, LOOPBACK), free_port(), secrets.token_bytes(32)
        write_private(folder / "secret", secret)
        supernode = Program(
            [
                *("flower-supernode", "--superlink", superlink, "--root-certificates", authority),
                *("--auth-supernode-private-key", key, "--isolation", "process"),
                *("--host", LOOPBACK, "--port", str(port), "--ssl-certfile", certificate.certificate),
                *("--ssl-keyfile", certificate.key, "--ssl-ca-certfile", certificate.authority),
                *("--superexec-auth-secret-file", folder / "secret"),
            ],
            log,
            flower_environment(folder / "flower"),
            own_group=False,
        )
        try:
            supernode.wait_for_port(port)
            app = make_client_app(lambda context: client)
            executor = Executor(app, f"{LOOPBACK}:{port}", authority=certificate.authority, secret=secret)
            with contextlib.closing(executor):
                executor.run(lambda: stopped() or not supernode.running)
        finally:
            stop([supernode])


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
def alone(state: Path) -> Iterator[None]:
    """Hold a client's state for this process alone: two processes would count their replies past each other.

    Raises
    ------
    RuntimeError
        Another process holds it.
    """
    import fcntl

    with open(f"{state}.lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another process answers with the state {state}; stop it first.") from None
        yield
