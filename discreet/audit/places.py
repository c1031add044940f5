"""Kinds of tables for a replay: rows in memory, sparse, of persons, stored, on Dask workers, in a tensor.

A table and its neighbour are turned into tables of the kind before each run: what is audited is the code that reads
them there. Stored tables and those on workers have no weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import numpy as np

from discreet.audit.targets import Target, target_of
from discreet.data.loading import load
from discreet.data.rows import Data, Rows
from discreet.privacy.relation import Relation
from discreet.solvers import Solver

Place = Callable[[Data], Any]  # gives rows
MOST_ROWS = 4  # of a person
PARTITIONS = 3  # of a table on workers


def _sparse(data: Data) -> Rows:
    import scipy.sparse as sp

    return replace(data, X=sp.csr_array(data.X))


def _of_persons(data: Data) -> Rows:
    """One person for each row, with one to four rows, each a little shorter; how many they are only the row decides."""
    counts = np.array([1 + crc32(np.ascontiguousarray(row).tobytes()) % MOST_ROWS for row in data.X])
    persons = np.repeat(np.arange(data.rows), counts)
    place = np.arange(persons.size) - np.searchsorted(persons, persons)
    X = data.X[persons] * (1.0 - place / 16.0)[:, None]
    return Data(X, data.y[persons], None if data.weight is None else data.weight[persons], persons=persons)


def _columns(data: Data) -> dict[str, Any]:
    if data.weight is not None and (data.weight != 1.0).any():
        raise ValueError("a table that is not in memory has no weights.")
    return {f"x{j}": data.X[:, j] for j in range(data.columns)} | {"y": data.y}


def _stored(data: Data) -> Rows:
    import pyarrow as pa
    import pyarrow.dataset

    return load(pyarrow.dataset.dataset(pa.table(_columns(data))), "y", "numbers").rows


def _on_workers(data: Data) -> Rows:
    import dask.dataframe as dd
    import pandas as pd

    return load(dd.from_pandas(pd.DataFrame(_columns(data)), npartitions=PARTITIONS), "y", "numbers").rows


def _on_device(data: Data) -> Rows:
    import torch

    from discreet.data.gpu_rows import GpuRows

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return GpuRows(torch.as_tensor(np.array(data.X), device=device), data.y, data.weight)


PLACES: Mapping[str, Place] = {
    "memory": lambda data: data,
    "sparse": _sparse,
    "persons": _of_persons,
    "stored": _stored,
    "Dask": _on_workers,
    "tensor": _on_device,
}
NEEDED = {"Dask": "dask", "tensor": "torch"}  # packages


def placed(audited: Any, place: str) -> Target:
    """The same, with its rows in another place; a plan must have been made for it."""
    target = target_of(audited)
    return replace(target, run=lambda data, rng: target.run(PLACES[place](data), rng))


def facts_of(place: str) -> dict[str, bool]:
    """What a plan for rows in this place is told, as `Public.of` takes it."""
    elsewhere = place not in ("memory", "sparse", "persons")
    return {"sparse": place == "sparse", "stored": elsewhere, "persons": place == "persons"}


def why_not_placed(solver: Solver[Any, Any], relation: Relation, place: str) -> str | None:
    """Why a solver, or a relation, cannot be replayed on rows in this place; None if it can."""
    if find_spec(NEEDED.get(place, "numpy")) is None:
        return f"{NEEDED[place]} is not installed"
    if place in ("stored", "Dask") and relation is Relation.ZERO_OUT:
        return "stored rows have no weights"
    if facts_of(place)["stored"] and not solver.capabilities.stored:
        return "the solver needs all rows in memory"
    if place == "Dask" and not solver.capabilities.workers:
        return "the solver needs the blocks"
    return None
