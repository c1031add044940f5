"""Environments of other libraries, made when first needed in build/bench-generality, and processes that run in them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from generality.adassp import centred
from generality.cells import Cell
from generality.rivals.exchange import receive, send

FOLDER = Path(__file__).resolve().parents[2] / "build" / "bench-generality"
SCRIPTS = Path(__file__).resolve().parent / "rivals"


@dataclass(frozen=True)
class Environment:
    """A library that needs packages of its own."""

    name: str
    packages: tuple[str, ...]
    script: str

    @property
    def folder(self) -> Path:
        return FOLDER / "environments" / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def ready(self) -> bool:
        return (self.folder / ".ready").exists()

    def install(self) -> None:
        """Make the environment; where that fails, say so and go on without it."""
        if self.ready:
            return
        print(f"installing {self.name} into {self.folder}", file=sys.stderr)
        try:
            venv.create(self.folder, with_pip=True, clear=True)
            command = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*command, *self.packages], check=True)
            (self.folder / ".ready").touch()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{self.name} is left out, since it cannot be installed: {error}", file=sys.stderr)


ENVIRONMENTS = (
    Environment("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.6"), "with_diffprivlib.py"),
    Environment("opacus", ("opacus==1.6.0", "torch==2.13.0"), "with_opacus.py"),
)


class Rival:
    """A process in the environment of a library; it ends when this one does."""

    def __init__(self, environment: Environment) -> None:
        settings = os.environ | {"NOISE_MULTIPLIERS": str(FOLDER / "noise_multipliers")}
        command = [str(environment.python), str(SCRIPTS / environment.script)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=settings
        )

    def scores(self, cell: Cell, epsilon: float) -> np.ndarray:
        """Predictions, or log-odds, for the held-out rows; `RuntimeError` where the library fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        low, high = cell.target_range()
        X, held_out = (centred(part, *cell.ranges()) for part in (cell.X, cell.held_out))
        about = {"classes": cell.classes, "low": low, "high": high, "epsilon": epsilon, "seed": cell.seed % 2**31}
        send(self._process.stdin, X=X, y=cell.y, held_out=held_out, **about)
        found = receive(self._process.stdout)
        if found is None or "error" in found:
            raise RuntimeError(str(found["error"]) if found else "the process ended")
        return found["scores"]
