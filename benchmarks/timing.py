"""What every measurement shares: one core, alternating repeats, fresh processes, one line of a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Row:
    """One measurement; `passed` is None where there is no target."""

    what: str
    ours: str
    against: str
    ratio: str
    target: str = ""
    passed: bool | None = None

    def markdown(self) -> str:
        verdict = {True: "pass", False: "FAIL", None: ""}[self.passed]
        return f"| {self.what} | {self.ours} | {self.against} | {self.ratio} | {self.target} | {verdict} |"


def use_one_core() -> None:
    """Call before NumPy is imported; processes started later inherit it."""
    for name in THREADS:
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


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


def in_new_process(script: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a script of this folder; what it prints last is JSON."""
    command = [sys.executable, str(Path(__file__).parent / script), *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def seconds_of(command: list[str]) -> float:
    """Wall time of a whole process."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def minima(calls: Mapping[str, Callable[[], float]], repeats: int = 7) -> dict[str, float]:
    """The least of some measured values, taken in turns: other work on the machine can only add to them."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            best[name] = min(best[name], call())
    return best


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms" if seconds < 10.0 else f"{seconds:.1f} s"
