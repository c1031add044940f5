"""Environments of other libraries, made when first needed in build/environments, and processes that run in them.

Nothing is made by an import: `process_of(name)` makes an environment when a method is first run. Where that fails, the
message is kept for an hour, so that every cell of the method says why it has no result and none tries again.
"""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import sys
import time
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from generality.cells import Cell

from rivals.adassp import centred
from rivals.exchange import receive, send

FOLDER = Path(__file__).resolve().parents[2] / "build" / "environments"
SCRIPTS = Path(__file__).resolve().parent
TRIED_AGAIN = 3600.0  # seconds after which an installation that failed is tried again
LONGEST_MESSAGE = 300


class NotInstalledError(RuntimeError):
    """An environment could not be made."""


@dataclass(frozen=True)
class Environment:
    """A library that needs packages of its own."""

    name: str
    packages: tuple[str, ...]
    script: str

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def ready(self) -> bool:
        return (self.folder / ".ready").exists()

    def install(self) -> None:
        """Make the environment if it is not there; one process at a time."""
        if self.ready:
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        with (FOLDER / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.ready:
                self._make(FOLDER / f"{self.name}.failed")

    def _make(self, failed: Path) -> None:
        if failed.exists() and time.time() - failed.stat().st_mtime < TRIED_AGAIN:
            raise NotInstalledError(failed.read_text())
        print(f"installing {self.name} into {self.folder}", file=sys.stderr)
        try:
            venv.create(self.folder, with_pip=True, clear=True)
            command = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*command, *self.packages], check=True, capture_output=True, text=True)
            (self.folder / ".ready").touch()
        except (OSError, subprocess.CalledProcessError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
            message = f"{self.name} cannot be installed: {' '.join(said)}"[:LONGEST_MESSAGE]
            failed.write_text(message)
            raise NotInstalledError(message) from error


ENVIRONMENTS = {
    one.name: one
    for one in (
        Environment("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.6"), "with_diffprivlib.py"),
        Environment("opacus", ("opacus==1.6.0", "torch==2.13.0"), "with_opacus.py"),
        Environment("interpret", ("interpret-core==0.7.8",), "with_interpret.py"),
        Environment("mbi", ("mbi==2.0.0", "scikit-learn==1.9.1"), "with_mbi.py"),
    )
}


class Rival:
    """A process in the environment of a library; it ends when this one does."""

    def __init__(self, environment: Environment) -> None:
        environment.install()
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        command = [str(environment.python), str(SCRIPTS / environment.script)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | single
        )
        self.seconds = 0.0  # of processor time for the last answer, in that process

    def scores(self, cell: Cell, settings: Mapping[str, Any]) -> np.ndarray:
        """Predictions, or log-odds, for the held-out rows; `RuntimeError` where the library fails.

        The library is sent columns moved to [-1, 1] by their true ranges, the range of the target, and its settings.
        """
        low, high = cell.target_range()
        X, held_out = (centred(part, *cell.ranges()) for part in (cell.X, cell.held_out))
        about = {"classes": cell.classes, "low": low, "high": high, "seed": cell.seed % 2**31}
        return self.answer(X=X, y=cell.y, held_out=held_out, **about, **settings)

    def answer(self, **asked: Any) -> np.ndarray:
        """What the script of the library answers to these arrays."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        send(self._process.stdin, **asked)
        found = receive(self._process.stdout)
        if found is None or "error" in found:
            raise RuntimeError(str(found["error"]) if found else "the process ended")
        self.seconds = float(found["seconds"])
        return found["scores"]


@functools.cache
def process_of(name: str) -> Rival:
    """One process for each library in each process of ours; its environment is made if it is not there."""
    return Rival(ENVIRONMENTS[name])
