"""Dask data frames and arrays as tables in partitions; Dask is imported only where there is one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np

from discreet._common.types import BoolArray
from discreet.data.distributed.partitions import Loaded, PartitionedSource
from discreet.data.distributed.rows import DistributedTable
from discreet.data.loading import is_dask
from discreet.data.public import boolean_columns
from discreet.data.schema import Column, Schema, Target

FRAME, ARRAY = "the Dask data frame", "the Dask array"
UNLIKE = (
    "the partitions of X and of y do not have the same index; pass the target as a column of X and y as its name, or "
    "persist the data frame that both come from."
)
TARGET = "y"  # what the target is called where the user has no name for it


def table_of_dask(X: Any, y: Any = None, classes: Any = None, neutral: bool = False) -> DistributedTable:
    """A Dask data frame or two-dimensional array with its target: the name of a column, or a series or array cut alike.

    Without y the table has no target. All columns are numbers. `classes` are the declared labels; labels that are
    texts let the target be read as text. The rows of each partition are counted now, where Dask does not know them.
    `neutral` reads values of mixed types one by one, so that some may be none.
    """
    frame = hasattr(X, "columns")
    if getattr(X, "ndim", 0) != 2:
        raise ValueError("X must be a Dask data frame or a Dask array with rows and columns.")
    labels = None if classes is None else tuple(np.asarray(classes).tolist())
    parts = _frame_parts(X, y) if frame else _array_parts(X, y)
    client = _client()
    rows = _counted(parts, client)
    source = PartitionedSource.of(
        parts.loaded(client, neutral), rows, dict.fromkeys(parts.names, "number"), parts.source
    )
    features = tuple(Column(name) for name in parts.names if name != parts.target)
    schema = Schema(features, Target(parts.target, labels))
    return DistributedTable(source, schema, None, parts.named, parts.booleans, client=client)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Partitions, the names of their columns, and what is known of them before they are read."""

    partitions: Sequence[Any]  # one for each, or a pair with the target's
    names: tuple[str, ...]
    target: str | None
    named: bool
    booleans: BoolArray | None
    source: str
    rows: tuple[int, ...] | None  # of each partition, where Dask knows them
    counted: Any = None  # a frame with as few columns as possible, to count rows

    def loaded(self, client: Any, neutral: bool) -> list[Loaded]:
        return [Loaded(_loader(each, client), self.names, self.source, neutral) for each in self.partitions]


@dataclass(frozen=True, eq=False)
class _Partition:
    """What Dask computes a partition from: its own part of the graph."""

    graph: dict[Any, Any]
    key: Any


def _partitions(collection: Any) -> list[_Partition]:
    """The partitions of a frame or series, or the chunks of rows of an array."""
    from dask.core import flatten
    from dask.optimization import cull

    best = collection.optimize() if hasattr(collection, "optimize") else collection
    graph = dict(best.__dask_graph__())
    return [_Partition(dict(cull(graph, [key])[0]), key) for key in flatten(best.__dask_keys__())]


def _frame_parts(X: Any, y: Any) -> _Parts:
    """A data frame; column names that are not texts are numbered, as scikit-learn does not know them either."""
    columns = list(X.columns)
    if len(set(columns)) != len(columns):
        raise ValueError("X has duplicate column names; rename them so that each column is unambiguous.")
    texts = [isinstance(name, str) for name in columns]
    if any(texts) and not all(texts):
        raise TypeError("some names of columns of X are texts and others are not; rename them.")
    booleans = boolean_columns(X)
    partitions: list[Any] = list(_partitions(X))
    names, own = [str(name) for name in columns], None
    if is_dask(y):
        _check_series(X, y)
        y = y[y.columns[0]] if getattr(y, "ndim", 1) == 2 else y
        partitions = list(zip(partitions, _partitions(y), strict=True))
        own = _free_name(names)
        names.append(own)
    elif y is not None:
        if not isinstance(y, (str, int)) or y not in columns:
            raise ValueError("y must be the name of a column of the Dask data frame, or a Dask series cut like it.")
        place = columns.index(y)
        own = names[place]  # not y itself, which is equal to a column's name but may be written otherwise: 1 and 1.0
        booleans = None if booleans is None else np.delete(booleans, place)
    booleans = booleans if booleans is not None and booleans.any() else None
    return _Parts(partitions, tuple(names), own, all(texts), booleans, FRAME, None, X[columns[:1]])


def _check_series(X: Any, y: Any) -> None:
    if getattr(y, "ndim", 1) == 2 and len(y.columns) != 1:
        raise ValueError(f"y must be one column; got {len(y.columns)}.")
    if getattr(y, "npartitions", None) != X.npartitions:
        raise ValueError(f"X has {X.npartitions} partitions and y another number; pass y cut like X.")


def _array_parts(X: Any, y: Any) -> _Parts:
    """An array, whose rows are cut into chunks and whose columns are not."""
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers; got the type {X.dtype}.")
    X = X.rechunk({1: -1})
    partitions: list[Any] = list(_partitions(X))
    names, own = [str(j) for j in range(X.shape[1])], None
    rows = None if any(np.isnan(X.chunks[0])) else tuple(int(count) for count in X.chunks[0])
    if y is not None:
        if not is_dask(y) or getattr(y, "ndim", 0) != 1:
            raise ValueError("with a Dask array y must be a Dask array with one dimension, or a Dask series.")
        if rows is not None and hasattr(y, "chunks") and not any(np.isnan(y.chunks[0])):
            if y.shape[0] != X.shape[0]:
                raise ValueError(f"y has {y.shape[0]} values but X has {X.shape[0]} rows; pass one value per row.")
            y = y.rechunk((X.chunks[0],))
        if y.npartitions != len(partitions):
            raise ValueError(f"X has {len(partitions)} chunks of rows and y {y.npartitions}; pass y cut like X.")
        partitions = list(zip(partitions, _partitions(y), strict=True))
        own = TARGET
        names.append(own)
    booleans = np.ones(X.shape[1], dtype=bool) if X.dtype == bool else None
    return _Parts(partitions, tuple(names), own, False, booleans, ARRAY, rows)


def _free_name(names: list[str]) -> str:
    """A name for the target that no column has."""
    name = TARGET
    while name in names:
        name += "_"
    return name


def _loader(partition: Any, client: Any) -> Any:
    """What loads a partition on any worker; a pair is loaded together."""
    if isinstance(partition, tuple):
        return partial(_pair, tuple(_loader(each, client) for each in partition))
    if client is not None and _is_held(partition.graph):
        return partial(_held, client.get(partition.graph, partition.key, sync=False))
    return partial(_computed, partition)


def _is_held(graph: dict[Any, Any]) -> bool:
    """Whether a graph holds results on workers, as after `persist`, which only they can give."""
    from distributed import futures_of

    return bool(futures_of(list(graph.values())))


def _pair(loaders: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows and their target, of two graphs: a shuffle that both of them begin with may give each another order.

    A row would then have the target of another one, and a person would count in two rows.
    """
    table, target = (load() for load in loaders)
    indexed = hasattr(table, "index") and hasattr(target, "index") and len(table) == len(target)
    if indexed and not table.index.equals(target.index):  # other lengths have an error of their own
        raise ValueError(UNLIKE)
    return table, target


def _held(partition: Any) -> Any:
    """A partition that lies in the memory of a worker: a future here, and the rows themselves in a shard."""
    return partition


def _computed(partition: _Partition) -> Any:
    from dask.local import get_sync

    return get_sync(partition.graph, partition.key)


def _counted(parts: _Parts, client: Any) -> list[int]:
    """The number of rows of each partition."""
    if parts.rows is not None:
        return list(parts.rows)
    if parts.counted is None:
        counted = [each[0] if isinstance(each, tuple) else each for each in parts.partitions]
    else:
        counted = _partitions(parts.counted)
    if client is None:
        return [len(_computed(each)) for each in counted]
    own = uuid4().hex  # other runs on the same cluster count rows as well
    keys = [f"rows-{own}-{number}" for number in range(len(counted))]
    graph: dict[Any, Any] = {}
    for key, each in zip(keys, counted, strict=True):
        graph |= each.graph | {key: (len, each.key)}
    return [int(count) for count in client.get(graph, keys)]


def _client() -> Any:
    """The client of the cluster that Dask uses now; None if it has none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    if client.status != "running":  # Dask remembers clients that were closed
        return None
    if client.asynchronous:
        raise ValueError("the current Dask client is asynchronous; make one with asynchronous=False for fits.")
    return client
