"""Many private models for each cell of the fairness benchmark, kept on disk as they are finished."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairness_cases import Case, FloatArray, Regime
from stored_tables import is_stand_in

from discreet import LogisticRegression

MODELS = 100
STORE = Path(__file__).resolve().parents[1] / "build" / "bench-fairness"


@dataclass(frozen=True)
class Cell:
    """One solver at one number of rows and one epsilon."""

    table: str
    regime: str
    solver: str
    rows: int
    epsilon: float
    models: int = MODELS

    @property
    def file(self) -> str:
        kept_apart = "stand-in-" if is_stand_in(self.table) else ""
        return f"{kept_apart}{self.table}-{self.regime}-{self.solver}-{self.rows}-{self.epsilon:.6g}-{self.models}.npz"


@dataclass(frozen=True, eq=False)
class Fits:
    """The coefficients of the private models of a cell, one row each, and the time of all fits."""

    coef: FloatArray
    seconds: float

    def scores(self, X: FloatArray) -> FloatArray:
        """Scores of every model (rows) for every row of X (columns)."""
        return np.asarray(self.coef @ X.T)


def private_model(case: Case, regime: Regime, cell: Cell, seed: int = 0) -> LogisticRegression:
    """One private model. Noise is seeded so that the page can be made again; that is no release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return regime.model(cell.solver, cell.epsilon, seed).fit(case.X[: cell.rows], case.y[: cell.rows])


def fits_of(case: Case, regime: Regime, cell: Cell, folder: Path | None = STORE) -> Fits:
    """The models of a cell, read from the folder if an earlier run has made them."""
    path = None if folder is None else folder / cell.file
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as stored:
            return Fits(stored["coef"], float(stored["seconds"]))
    start = time.perf_counter()
    models = [private_model(case, regime, cell, seed) for seed in range(cell.models)]
    seconds = time.perf_counter() - start
    found = Fits(np.vstack([model.coef_ for model in models]), seconds)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, coef=found.coef, seconds=seconds)
        part.replace(path)  # a stopped run leaves no half-written cell
    return found


def spaced(low: float, high: float, count: int) -> list[float]:
    """Logarithmically spaced values, ends included."""
    return [float(value) for value in np.geomspace(low, high, count)]
