"""Tables for simulated runs: made-up rows, or a file, split over clients with some rows held out."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import FloatArray, IndexArray
from discreet.federated.simulation import Parts, split_by, split_evenly

HELD_OUT = 0.2  # share of the rows


@dataclass(frozen=True, eq=False)
class FederatedTable:
    """Rows, who holds them, and those held out to measure the model on.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        All rows.
    y : ndarray of shape (n,)
        Targets, or labels -1 and +1.
    parts : dict of ndarray
        The rows of each client.
    held_out : ndarray
        Rows that no client has.
    bounds : (low, high)
        Public limits of the columns.
    y_bounds : (low, high), optional
        Public limits of a regression target; None for labels.
    """

    X: FloatArray
    y: FloatArray
    parts: Parts
    held_out: IndexArray
    bounds: Any
    y_bounds: Any = None

    def score(self, coef: FloatArray, intercept: Any) -> float:
        """Accuracy, or R^2 for a regression, on the held-out rows. Not private."""
        y, predicted = self.y[self.held_out], self.X[self.held_out] @ coef + intercept
        if self.y_bounds is None:
            return float(np.mean(np.where(predicted >= 0.0, 1.0, -1.0) == y))
        return float(1.0 - np.mean((predicted - y) ** 2) / max(float(np.var(y)), 1e-300))


def made_up(clients: int, rows: int, columns: int, labels: bool, seed: int = 0) -> FederatedTable:
    """Uniform columns and a target that they explain; so many rows for each client, and some held out."""
    rng, count = np.random.default_rng(seed), clients * rows
    extra = max(1, round(HELD_OUT * count))
    X = rng.uniform(-1.0, 1.0, (count + extra, columns))
    margin = X @ (rng.standard_normal(columns) * 4.0 / np.sqrt(columns)) + 0.3
    y = np.where(margin + rng.logistic(size=margin.size) > 0.0, 1.0, -1.0)
    if not labels:
        y = np.clip(margin + rng.standard_normal(margin.size), -10.0, 10.0)
    held_out = np.arange(count, count + extra)
    return FederatedTable(
        X, y, split_evenly(count, clients, seed), held_out, (-1.0, 1.0), None if labels else (-10, 10)
    )


def read_table(
    path: Path,
    target: str | None,
    bounds: Any,
    y_bounds: Any,
    classes: Any,
    by: str | None,
    clients: int | None,
    seed: int = 0,
) -> FederatedTable:
    """A table file, split at random or by a column.

    Not private: bounds and classes that are not declared are read from the rows, which is warned of.
    """
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    for name in (target, by):
        if name is not None and name not in frame:
            raise ValueError(f"{path} has no column {name!r}; it has {', '.join(map(str, frame.columns))}.")
    if target is None:
        raise ValueError("the column to predict is missing; give --target NAME.")
    if by is not None and clients is not None:
        raise ValueError("--split-by makes one client of each value; leave --clients out.")
    features = frame.drop(columns=[target, *([] if by is None else [by])])
    X = np.column_stack([_numbers(features, name, path) for name in features])
    y = _coded(frame[target].to_numpy(), classes, path) if y_bounds is None else _numbers(frame, target, path)
    order = np.random.default_rng(seed).permutation(len(X))
    held_out, kept = np.split(order, [max(1, round(HELD_OUT * len(X)))])
    kept = np.sort(kept)
    parts = split_evenly(kept.size, clients or 100, seed) if by is None else split_by(frame[by].to_numpy()[kept])
    if bounds is None:
        _warn("the bounds of the columns", "--bounds LOW,HIGH")
        bounds = X.min(axis=0), X.max(axis=0)
    return FederatedTable(X, y, {name: kept[part] for name, part in parts.items()}, held_out, bounds, y_bounds)


def _numbers(frame: Any, name: Any, path: Path) -> FloatArray:
    """A column as numbers; the error for one of text names the column, and none of its values."""
    with contextlib.suppress(ValueError, TypeError):
        return np.asarray(frame[name].to_numpy(dtype=np.float64))
    raise ValueError(f"{path}: column {name!r} holds something other than numbers.")


def _coded(y: Any, classes: Any, path: Path) -> FloatArray:
    """Labels as -1 and +1."""
    if classes is None:
        _warn("the classes", "--classes A,B")
    found = np.unique(y).tolist() if classes is None else list(classes)
    if len(found) != 2:
        raise ValueError(f"the target has {len(found)} values; a classification needs two, a regression --y-bounds.")
    if not np.isin(y, found).all():
        raise ValueError(f"{path} has targets other than {found[0]!r} and {found[1]!r}.")
    return np.where(y == found[1], 1.0, -1.0)


def _warn(what: str, option: str) -> None:
    message = f"{what} were read from the rows, outside the guarantee: for a trial only; declare them with {option}"
    warnings.warn(message, PrivacyLeakWarning, stacklevel=3)
