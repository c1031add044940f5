"""Faults of a Dask cluster: a scheduler and two workers as processes of their own, on the loopback interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faults.found import DAY, EPSILON, GIVE_UP, Clock, entries, fill, new_ledger, read_only, row, small_disk, waited

ROWS, COLUMNS = 45_000, 50  # three blocks, hence a shard for each worker
LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard"]


class Cluster:
    """A scheduler, two workers without nannies, and the command that trains on them."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder, self.environment = folder, clock.environment if clock else dict(os.environ)
        self.programs: dict[str, subprocess.Popen[str]] = {}
        address = folder / "scheduler.json"
        self.start("scheduler", *LOOPBACK, "--port", "0", "--scheduler-file", str(address))
        waited(address.exists)
        self.address = waited(lambda: json.loads(address.read_text() or "{}").get("address"))
        for number in range(2):
            self.start_worker(f"worker {number}")

    def start_worker(self, name: str) -> None:
        self.start("worker", self.address, *LOOPBACK, "--nthreads", "1", "--no-nanny", name=name)

    def start(self, kind: str, *options: str, name: str = "") -> None:
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            command = [sys.executable, "-m", "dask", kind, *options]
            self.programs[name or kind] = subprocess.Popen(
                command, stdout=log, stderr=log, text=True, cwd=self.folder, env=self.environment
            )

    def fit(self, table: Path, url: str) -> None:
        """Start a private fit, which the ledger pays for."""
        (self.folder / "model.json").unlink(missing_ok=True)
        command = [sys.executable, "-m", "discreet.cli", "fit", str(table), "--target", "y", "--classes", "0,1"]
        command += ["--bounds=-5,5", "--solver", "gd", "--epsilon", str(EPSILON), "--delta", "1e-6", "--quiet"]
        command += ["--ledger", url, "--dataset", "rows", "--dask", self.address, "--out", "model.json"]
        self.programs["driver"] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment
        )

    def kill(self, name: str) -> None:
        self.programs[name].kill()
        self.programs[name].wait()

    def result(self) -> tuple[int, str]:
        """The exit code of the fit, and the last line that it wrote to stderr about an error or a warning."""
        driver = self.programs["driver"]
        said = driver.communicate(timeout=GIVE_UP)[1]
        lines = [line for line in said.splitlines() if line.startswith(("error: ", "warning: "))]
        assert "Traceback" not in said, said
        return driver.returncode, lines[-1] if lines else ""

    def made(self) -> bool:
        """Whether there is a model that can be read."""
        from discreet import load_model

        path = self.folder / "model.json"
        return path.exists() and load_model(path).guarantee_.epsilon > 0.0


@contextmanager
def cluster(table: Path, clocked: bool = False) -> Iterator[tuple[Cluster, str]]:
    """A cluster and a ledger in a folder of their own; all programs are gone afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        disk = stack.enter_context(small_disk(folder / "disk"))
        made = Cluster(folder, Clock(folder) if clocked else None)

        def stop() -> None:
            for name in list(made.programs):
                made.kill(name)

        stack.callback(stop)
        yield made, new_ledger(disk / "budget.db")


def running(made: Cluster, url: str) -> None:
    """Wait until the ledger has granted the fit, and the workers have made some of its sums."""
    waited(lambda: entries(url) or made.programs["driver"].poll() is not None)
    time.sleep(1.0)
    assert made.programs["driver"].poll() is None, made.result()


def fault(table: Path, name: str, meddle: Callable[[Cluster, Path], None], goes_on: bool) -> dict[str, Any]:
    """A fault in the middle of a fit: it goes on, or ends with one line, and its cost stays counted."""
    with cluster(table, "clock" in name) as (made, url):
        made.fit(table, url)
        running(made, url)
        meddle(made, Path(url).parent)
        code, said = made.result()
        passed = code == 0 and made.made() if goes_on else code != 0 and not made.made()
        status = "committed" if goes_on and "the ledger could not" not in said else "reserved"
        read_only(Path(url).parent, False)
        (Path(url).parent / "rest").unlink(missing_ok=True)
        return row(name, "the model is made" if goes_on else "the run ends", said, url, [status], passed)


def driver(table: Path) -> dict[str, Any]:
    """A driver that is killed: its cost stays counted, and a second run is a second entry."""
    with cluster(table) as (made, url):
        made.fit(table, url)
        running(made, url)
        made.kill("driver")
        first = entries(url)
        made.fit(table, url)
        code, said = made.result()
        passed = first == ["reserved"] and code == 0 and made.made()
        happens = "the run ends; started again it makes the model and is paid for anew"
        return row("the driver is killed", happens, said, url, ["reserved", "committed"], passed)


def refused(table: Path, name: str, meddle: Callable[[Path], None]) -> dict[str, Any]:
    """A ledger that cannot be written before the fit: no row is read."""
    with cluster(table) as (made, url):
        meddle(Path(url).parent)
        made.fit(table, url)
        code, said = made.result()
        passed = code != 0 and not made.made() and said.startswith("error: ")
        read_only(Path(url).parent, False)
        return row(name, "the run is refused", said, url, [], passed)


def kill_workers(made: Cluster, disk: Path) -> None:
    for number in range(2):
        made.kill(f"worker {number}")


def jump(made: Cluster, seconds: int) -> None:
    with open(made.environment["DISCREET_CLOCK"], "r+b") as file:
        file.write(seconds.to_bytes(8, "little", signed=True))


def write_table(folder: Path) -> Path:
    """A table of three files."""
    X = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(COLUMNS)]).assign(y=(X[:, 0] > 0.0).astype(int))
    table = folder / "table"
    table.mkdir()
    for number, part in enumerate(np.array_split(np.arange(ROWS), 3)):
        frame.iloc[part].to_parquet(table / f"{number}.parquet", index=False)
    return table


def at(name: str, meddle: Callable[[Cluster, Path], None], goes_on: bool) -> Callable[[Path], dict[str, Any]]:
    return lambda table: fault(table, name, meddle, goes_on)


CASES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "none": at("none", lambda made, disk: None, True),
    "worker": at("a worker is killed", lambda made, disk: made.kill("worker 0"), True),
    "workers": at("all workers are killed", kill_workers, False),
    "scheduler": at("the scheduler is killed", lambda made, disk: made.kill("scheduler"), False),
    "driver": driver,
    "full": lambda table: refused(table, "the disk of the ledger is full", fill),
    "fills": at("the disk of the ledger fills up", lambda made, disk: fill(disk), True),
    "read-only": lambda table: refused(table, "the ledger's file and folder are read-only", read_only),
    "ahead": at("all clocks jump a day ahead", lambda made, disk: jump(made, DAY), True),
    "back": at("all clocks jump a day back", lambda made, disk: jump(made, -DAY), True),
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(CASES[sys.argv[1]](write_table(Path(place)))))
