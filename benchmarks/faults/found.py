"""What is looked at after a fault, and the places at which faults are made: a small disk, a clock that can be set."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DAY = 86_400
EPSILON = 3.0  # of a run; the data set's promise has room for more
GIVE_UP = 180.0  # seconds


def waited(condition: Callable[[], Any], seconds: float = GIVE_UP) -> Any:
    """What a condition gives once it is true; a TimeoutError after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("the run did not get so far")
        time.sleep(0.05)
    return found


def new_ledger(path: Path) -> str:
    """The address of a new ledger, in which the data set `rows` has room for several runs."""
    from discreet import Ledger

    Ledger(path).open("rows", epsilon=50.0, delta=1e-3)
    return str(path)


def entries(url: str) -> list[str]:
    """The status of every entry; none where the ledger cannot be asked now."""
    from discreet import Ledger

    return [entry.status for entry in Ledger(url).entries("rows")]


def row(fault: str, happens: str, message: str, url: str, granted: list[str], passed: bool) -> dict[str, Any]:
    """A line of the table; passed if the ledger holds what was granted, nothing else, and finds nothing wrong."""
    from discreet import Ledger

    found, wrong = entries(url), Ledger(url).verify()
    kept = ", ".join(found) or "no entry"
    return {
        "fault": fault,
        "happens": happens,
        "message": message,
        "ledger": kept,
        "passed": bool(passed and found == granted and not wrong),
        "spent": float(Ledger(url).spent("rows")),
    }


@contextmanager
def small_disk(path: Path, kilobytes: int = 128) -> Iterator[Path]:
    """A disk of a few kilobytes; needs the permission to mount one."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with suppress(OSError), open(disk / "rest", "ab", buffering=0) as file:
        while True:
            file.write(bytes(512))


def read_only(disk: Path, is_so: bool = True) -> None:
    subprocess.run(["mount", "-o", f"remount,{'ro' if is_so else 'rw'}", disk], check=True)


class Clock:
    """A clock that can be set for programs that are started with its environment."""

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self.jump(0)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "clock.c"], check=True)
        self.environment = {**os.environ, "LD_PRELOAD": str(library), "DISCREET_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Set the clock so far ahead of that of the machine, or behind it."""
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))
