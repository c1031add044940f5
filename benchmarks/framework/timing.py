"""What measurements share: one core, alternating repeats, fresh processes, memory, one line of a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
ROOT = BENCHMARKS.parent
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Row:
    """One measurement; `passed` is None where there is no target."""

    what: str
    ours: str
    against: str
    ratio: str
    target: str = ""
    passed: bool | None = None

    def fields(self) -> list[str]:
        verdict = {True: "pass", False: "FAIL", None: ""}[self.passed]
        return [self.what, self.ours, self.against, self.ratio, self.target, verdict]


@contextmanager
def one_core() -> Iterator[None]:
    """Stay on one core meanwhile, as do processes that are started meanwhile; the runner allows one thread anyway."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def alternate(contestants: Mapping[str, Callable[[], Any]], repeats: int = 9) -> dict[str, float]:
    """The best processor time of each in seconds; they take turns, so that a busy machine is busy for all.

    Wall time would favour the shorter contestant on a busy machine: it is interrupted less often.
    """
    best = dict.fromkeys(contestants, float("inf"))
    for call in contestants.values():
        call()
    for _ in range(repeats):
        for name, call in contestants.items():
            start = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - start)
    return best


def in_new_process(module: str, *arguments: str, **environment: str) -> Any:
    """Run a module of the benchmarks as a command; what it prints last is JSON."""
    known = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(BENCHMARKS), str(ROOT), *([known] if known else [])])
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def seconds_of(command: list[str]) -> float:
    """Wall time of a whole process."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def seconds_to(call: Callable[[], Any]) -> Callable[[], float]:
    """A call that makes this one and returns the wall time that it took, for `minima`."""

    def timed() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return timed


def minima(calls: Mapping[str, Callable[[], float]], repeats: int = 7) -> dict[str, float]:
    """The least of some measured values, taken in turns: other work on the machine can only add to them."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            best[name] = min(best[name], call())
    return best


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 10.0 else f"{seconds:.1f} s"


def resident(field: str) -> int:
    """A line of the kernel's account of this process, in bytes: VmRSS is now, VmHWM the peak."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"the kernel does not report {field}")
