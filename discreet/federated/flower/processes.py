"""Programs that are started and stopped with what they need: an environment, a free port, a log file."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import discreet
from discreet.federated.flower import NO_CALLS_HOME

LOOPBACK = "127.0.0.1"
SECONDS_TO_START = 60.0
SECONDS_TO_STOP = 10.0
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


class ProgramEndedError(RuntimeError):
    """A program ended, or did not get ready in time."""


class Program:
    """A running program, with everything it says in a log file.

    On Linux it is asked to end when the process that started it is killed; elsewhere it then goes on.

    Parameters
    ----------
    command : sequence of str or Path
    log : Path
    environment : dict
    own_group : bool
        Whether the program starts a process group, so that what it starts ends with it; otherwise it belongs to the
        group of the caller, and ends with that.
    """

    def __init__(
        self, command: Sequence[str | Path], log: Path, environment: dict[str, str], *, own_group: bool = True
    ) -> None:
        self.name, self.log = str(command[0]), log
        self.own_group = own_group
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                start_new_session=own_group,
                preexec_fn=_end_with_parent(),  # noqa: PLW1509 - one system call, safe also with threads
            )

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return self.process.poll() is None

    def wait_for_port(self, port: int) -> None:
        """Wait until the program accepts connections; a ProgramEndedError with the end of its log, if not."""
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline and self.running:
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1.0):
                return
            time.sleep(0.05)
        raise ProgramEndedError(f"{self.name} did not start:\n{tail(self.log)}")

    def kill(self) -> None:
        """End the program and its group at once, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            if self.own_group:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait()


def _end_with_parent() -> Callable[[], object] | None:
    """What a new process calls, so that it is asked to end when its parent is killed and cannot ask it."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return lambda: library.prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def stop(programs: Iterable[Program]) -> None:
    """Ask programs to end, and end those that do not, with what they have started."""
    programs = list(programs)
    for program in programs:
        program.process.terminate()
    deadline = time.monotonic() + SECONDS_TO_STOP
    for program in programs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.process.wait(max(deadline - time.monotonic(), 0.0))
        program.kill()


def flower_environment(home: Path) -> dict[str, str]:
    """Environment for Flower's programs: its files under `home`, no calls home, and this installation found first."""
    environment = {**NO_CALLS_HOME, **os.environ, "FLWR_HOME": str(home)}
    for name, folder in [("PATH", Path(sys.executable).parent), ("PYTHONPATH", Path(discreet.__file__).parents[1])]:
        environment[name] = os.pathsep.join(filter(None, [str(folder), environment.get(name)]))
    return environment


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log file."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
