"""How a method of the scoreboard is run on a table: the same rows for all, its scores judged on held-out rows."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from framework import Dataset
from generality.cells import Cell
from sklearn import linear_model

from discreet import UtilityWarning
from rivals.environments import process_of

TRAINED = 0.7
MOST_TRAINED, MOST_HELD_OUT = 50_000, 5_000
LONGEST_MESSAGE = 200
Scores = Callable[..., np.ndarray]  # of a cell, an epsilon and what else is in the setting


def split(dataset: Dataset, seed: int) -> Cell:
    """Rows to train on and rows to judge by: the same for all methods and every epsilon."""
    X, y = loaded(dataset.name, dataset.load)
    number = int.from_bytes(dataset.name.encode(), "little") % 2**31 + seed
    order = np.random.default_rng(number).permutation(len(y))
    rows = min(int(TRAINED * len(y)), MOST_TRAINED)
    train, held_out = order[:rows], order[rows : rows + MOST_HELD_OUT]
    target = (y > 0.0).astype(np.float64) if dataset.classification else y
    kind = 2 if dataset.classification else 0
    return Cell(dataset.name, kind, X[train], target[train], X[held_out], target[held_out], number)


@functools.lru_cache(maxsize=2)
def loaded(name: str, load: Callable[[], Any]) -> Any:
    """A table, kept while its cells are run."""
    return load()


def scored_by(scores: Scores, library: str | None = None) -> Callable[[Cell, Mapping[str, Any], int], dict[str, Any]]:
    """The `run` of a method that gives predictions, or log-odds, for held-out rows.

    What the setting holds beside epsilon goes to the method as well, which a benchmark may so ask in another way.
    Seconds are of processor time, in the process of the library where it has one. A method that gives no answer is
    judged by the middle of the target's range, or by even odds, which need no row: its cell says why under "refused".
    """

    def run(cell: Cell, setting: Mapping[str, Any], seed: int) -> dict[str, Any]:
        start, why = time.process_time(), None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = scores(cell, **setting)
            except Exception as error:  # a failure is a result
                why, found = f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE], without_an_answer(cell)
        seconds = time.process_time() - start
        if library is not None and why is None:
            seconds = process_of(library).seconds
        about = {"seconds": round(seconds, 4), "warned": any(issubclass(w.category, UtilityWarning) for w in caught)}
        return numbers(found, cell) | about | ({"refused": why} if why else {})

    return run


def without_an_answer(cell: Cell) -> np.ndarray:
    middle = 0.0 if cell.classes else 0.5 * sum(cell.target_range())
    return np.full(len(cell.held_out_y), middle)


def numbers(found: np.ndarray, cell: Cell) -> dict[str, Any]:
    """The score (R2, or the share of right labels), the log-loss of labels, what `judged` says, and the shape."""
    figures = judged(found, cell)
    loss = math.inf if figures["loss"] is None else figures["loss"]
    shape = {"rows": cell.rows, "columns": cell.X.shape[1]}
    if cell.classes:
        return figures | {"score": 1.0 - float(figures["wrong"] or 0.0), "log_loss": loss} | shape
    return figures | {"score": 1.0 - loss} | shape


def judged(scores: np.ndarray, cell: Cell) -> dict[str, float | None]:
    """The loss (log-loss, or mean squared error over the variance), the share of wrong labels, the calibration slope.

    None instead of a number that is not finite, since JSON has no other.
    """
    y = cell.held_out_y
    with np.errstate(over="ignore", invalid="ignore"):
        losses = np.logaddexp(0.0, np.where(y == 1.0, -scores, scores)) if cell.classes else (scores - y) ** 2
        loss = float(np.mean(losses) / cell.unit)
    found: dict[str, float | None] = {"loss": loss if math.isfinite(loss) else None}
    if cell.classes:
        slope = calibration_slope(scores, y)
        found["wrong"] = float(np.mean((scores > 0.0) != (y == 1.0)))
        found["slope"] = slope if math.isfinite(slope) else None
    return found


def calibration_slope(scores: np.ndarray, y: np.ndarray) -> float:
    """The factor by which scores would have to be multiplied to be calibrated; 1 is best, below 1 too extreme."""
    if not np.isfinite(scores).all() or np.std(scores) < 1e-9 or len(np.unique(y)) < 2:
        return math.nan
    clipped = np.clip(scores, -30.0, 30.0)
    fit = linear_model.LogisticRegression(C=1e6, max_iter=500).fit(clipped[:, None], y)
    return float(fit.coef_[0, 0])
