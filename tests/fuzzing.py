"""Runs a reader of files on damaged copies of them, and says what it does that it must not do.

A reader may refuse a file by a ValueError of one line, or accept it and then give finite numbers. It must do so
within bounded time and memory, without running code that the file names. `make fuzz` runs 100,000 inputs.
"""

from __future__ import annotations

import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from discreet._common.exceptions import BudgetExceededError, DiscreetWarning

SECONDS = 2.0  # of processor time for one input of at most 10 MB
MEGABYTES = 200  # of memory beyond what was in use before
GIGABYTES = 3  # of address space, so that a runaway input ends in a MemoryError
LONGEST = 600  # characters of a message
# What Python reports when code is loaded from data, or another program or machine is called.
FORBIDDEN = (
    *("pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile"),
    *("os.fork", "socket.connect", "urllib.Request"),
)
_FORBIDDEN_SEEN: list[str] = []
_WATCHED: list[bool] = []


class TooSlow(BaseException):
    """An input took more than its time; no Exception, so that no reader takes it for something that it can handle."""


@dataclass(frozen=True)
class Target:
    """A kind of file, and what reads it.

    `good` gives contents of files that must be accepted, `damage` changes one of them. `read` reads the file at a path
    and uses what it got; its assertions say what must hold of an accepted file.
    """

    name: str
    share: int  # of every 1,000 inputs
    good: Callable[[], list[bytes]]
    damage: Callable[[random.Random, bytes], bytes]
    read: Callable[[Path], None]
    ending: str = ".json"
    compiles: bool = False  # whether the reader compiles texts of its own, as Typer does with annotations

    def content(self, number: int) -> bytes:
        """Input number so and so, the same in every run."""
        rng = random.Random(f"{self.name} {number}")
        return self.damage(rng, rng.choice(self.good()))


@dataclass
class Outcome:
    """How many files were accepted and refused, and what went wrong, with the number of the input."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: dict[str, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        listed = "; ".join(f"inputs {numbers[:5]} ({len(numbers)}): {what}" for what, numbers in self.faults.items())
        return f"{self.accepted} accepted, {self.refused} refused, slowest {self.slowest:.2f} s. {listed}"


def fuzz(target: Target, count: int, folder: Path, first: int = 0) -> Outcome:
    """Read `count` damaged files and collect what a reader must not do."""
    outcome, path = Outcome(), folder / f"damaged{target.ending}"
    for content in target.good():  # this also compiles and imports what the reader needs
        assert try_content(target, content, path, Outcome()) is None, f"a good file for {target.name} is refused"
    with limited_memory(), no_foreign_code():
        for number in range(first, first + count):
            start = time.perf_counter()
            fault = try_content(target, target.content(number), path, outcome)
            outcome.slowest = max(outcome.slowest, time.perf_counter() - start)
            if fault is not None:
                outcome.faults.setdefault(fault, []).append(number)
    return outcome


def try_content(target: Target, content: bytes, path: Path, outcome: Outcome) -> str | None:
    """Read one file; return what is wrong with the reader's answer, if anything."""
    path.write_bytes(content)
    _FORBIDDEN_SEEN.clear()
    before = _memory("VmRSS", reset=True)
    try:
        with limited_time(), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DiscreetWarning)
            target.read(path)
        outcome.accepted += 1
        fault = None
    except (Exception, TooSlow) as error:
        outcome.refused += 1
        fault = fault_of(error, path)
    if (taken := _memory("VmHWM") - before) > MEGABYTES:
        return f"took {taken:.0f} MB of memory"
    seen = [event for event in _FORBIDDEN_SEEN if not (event == "compile" and target.compiles)]
    return f"ran {seen[0]}" if seen else fault


def _memory(what: str, reset: bool = False) -> float:
    """Megabytes in use now (VmRSS) or at most since the last reset (VmHWM); 0 where the system does not say."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))


def fault_of(error: BaseException, path: Path) -> str | None:
    """Why an error is no proper refusal; None if it is one."""
    kind, message = type(error), str(error)
    ours = kind in (ValueError, BudgetExceededError) or kind.__module__.startswith("discreet")
    if not ours or isinstance(error, (AssertionError, TooSlow)):
        return f"{kind.__name__}: {message[:200]} {where(error)}"
    if not message or "\n" in message or not message.isprintable():
        return f"not one printable line: {message[:200]!r} {where(error)}"
    if len(message) > LONGEST + len(str(path)):
        return f"a message of {len(message)} characters: {message[:100]}... {where(error)}"
    return None


def where(error: BaseException) -> str:
    """The innermost line of discreet that the error passed."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "discreet/" in file or "tests/" in file:
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"at {place}"


@contextmanager
def limited_time(seconds: float = SECONDS) -> Iterator[None]:
    """Raise TooSlow inside the block after so much processor time; elsewhere than on Unix there is no limit."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def limited_memory(gigabytes: float = GIGABYTES) -> Iterator[None]:
    """Let the process take only so much more address space in the block; a larger demand is a MemoryError."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):  # only Linux says how much is in use
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def no_foreign_code() -> Iterator[None]:
    """Note what loads code from data, or calls programs, while the block runs."""
    if not _WATCHED:
        sys.addaudithook(_watch)  # for good: Python has no way to remove it
        _WATCHED.append(False)
    _WATCHED[0] = True
    try:
        yield
    finally:
        _WATCHED[0] = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _WATCHED or not _WATCHED[0]:
        return
    if event in FORBIDDEN or (event == "compile" and arguments[0] is not None and arguments[1] == "<string>"):
        _FORBIDDEN_SEEN.append(event)
