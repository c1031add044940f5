"""Federated runs in one process: rows that are made up, or from a file, split over clients; some may drop out."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet._common.callers import warn
from discreet._common.checks import fraction
from discreet._common.exceptions import InsecureRandomnessWarning, PrivacyLeakWarning
from discreet._common.types import FloatArray, IndexArray, Progress
from discreet.federated.client import Client
from discreet.federated.plan import FederatedPlan
from discreet.federated.rounds import Request, Send, in_process, run_rounds
from discreet.federated.server import RoundReport, Server

Parts = dict[str, IndexArray]


def split_evenly(rows: int, clients: int, seed: int = 0) -> Parts:
    """Rows of each client, by name: a random split into parts of equal size, give or take one row.

    Parameters
    ----------
    rows, clients : int
        How many.
    seed : int, default=0
        Of the random order.

    Returns
    -------
    dict of ndarray
    """
    if not 1 <= clients <= rows:
        raise ValueError(f"{rows} rows cannot be split over {clients} clients.")
    order = np.random.default_rng(seed).permutation(rows)
    width = len(str(clients - 1))
    return {f"client {i:0{width}d}": part for i, part in enumerate(np.array_split(order, clients))}


def split_by(values: Any) -> Parts:
    """Rows of each client, by name: one client for every value of a column.

    Parameters
    ----------
    values : array of shape (n_samples,)
        The column, which must be public: it says who holds which row.

    Returns
    -------
    dict of ndarray
    """
    column = np.asarray(values)
    found, owner = np.unique(column, return_inverse=True)
    order = np.argsort(owner, kind="stable")
    cuts = np.searchsorted(owner[order], np.arange(1, found.size))
    return {str(value): part for value, part in zip(found.tolist(), np.split(order, cuts), strict=True)}


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What a simulation leaves.

    Attributes
    ----------
    server : Server
        It holds the model.
    clients : dict of Client
        By name.
    reports : list of RoundReport
        One for each round.
    seconds : float
        Time of a round, on average.
    """

    server: Server
    clients: dict[str, Client]
    reports: list[RoundReport]
    seconds: float


def clients_of(
    plan: FederatedPlan, X: Any, y: Any, parts: Mapping[str, IndexArray], seed: int | None
) -> dict[str, Client]:
    """One client for each part of the rows, all in this process; a seed makes their noise reproducible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)  # the caller of a simulation chose the seed
        known: dict[str, Any] = {"max_epsilon": math.inf, "random_state": seed}
        return {name: Client(plan, name, X[part], y[part], **known) for name, part in parts.items()}


def losing(send: Send, rate: float, seed: int = 0) -> Send:
    """A `send` that loses each answer with this probability, whatever is in it."""
    rng, rate = np.random.default_rng(seed), fraction("rate", rate)

    def unreliable(requests: dict[str, Request]) -> Iterable[Any]:
        return [answer for answer in send(requests) if rng.uniform() >= rate]

    return unreliable


def simulate(
    plan: FederatedPlan,
    X: Any,
    y: Any,
    parts: Mapping[str, IndexArray],
    *,
    dropout: float = 0.0,
    seed: int | None = None,
    progress: Progress | None = None,
) -> SimulatedRun:
    """Run a plan in this process.

    Guarantee: that of the plan, unless there is a seed, which removes the noise.

    Parameters
    ----------
    plan : FederatedPlan
        The plan, made for as many clients as there are parts.
    X : array of shape (n_samples, n_features)
        All rows.
    y : array of shape (n_samples,)
        Targets, or labels in the coding of the loss (-1 and +1).
    parts : dict of ndarray
        Which rows each client holds, from `split_evenly` or `split_by`.
    dropout : float, default=0.0
        Probability with which an answer is lost.
    seed : int, optional
        Makes the run reproducible, for tests.
    progress : callable, optional
        Called as progress(done, total).

    Returns
    -------
    SimulatedRun
    """
    clients = clients_of(plan, X, y, parts, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        server = Server(plan, list(clients), random_state=seed)
    send = in_process(clients)
    started = time.perf_counter()
    reports = run_rounds(server, losing(send, dropout, seed or 0) if dropout > 0.0 else send, progress)
    return SimulatedRun(server, clients, reports, (time.perf_counter() - started) / max(1, len(reports)))


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
    warn(message, PrivacyLeakWarning)
