"""`Rows` whose blocks lie in shards, and the tables that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from discreet._common.types import FloatArray, Progress
from discreet.data.arrow_columns import check_column, wanted_columns
from discreet.data.distributed.engine import Engine, LocalEngine
from discreet.data.distributed.partitions import ParquetGroup, PartitionedSource
from discreet.data.distributed.shard import recipes_for
from discreet.data.parquet_table import footer, parquet_names
from discreet.data.rows import Data, DenseElsewhere
from discreet.data.schema import Schema
from discreet.data.stored_table import Encoder, StoredTable

LOCAL_SHARDS = 1  # of a table that this process reads by itself


@dataclass(frozen=True, eq=False)
class DistributedRows(DenseElsewhere):
    """Checked rows with an encoded target, in the memory of other processes; only sums come from there."""

    engine: Engine
    columns: int

    @property
    def rows(self) -> int:
        return self.engine.n_rows

    @property
    def gives_blocks(self) -> bool:
        return False

    def blocks(self) -> Iterator[Data]:
        raise TypeError("rows on workers are not brought to the driver; ask for sums over them.")

    def sum(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return self.engine.reduce(part, "sum")

    def max(self, part: Callable[[Data], FloatArray]) -> FloatArray:
        return self.engine.reduce(part, "max")


@dataclass(frozen=True, eq=False)
class DistributedTable(StoredTable):
    """A table in partitions that workers load; estimators take it as X.

    `client` is a `distributed.Client`; None: this process reads the partitions.
    """

    client: Any = None

    def encoded(self, encode: Encoder, progress: Progress | None = None) -> DistributedRows:
        """The rows on the workers, after one pass that checks all of them; errors are those of a stored table."""
        wanted_columns(self.source, self.source.kinds, self.schema, target=True)
        if not self.rows:
            raise ValueError(f"{self.source} has no rows.")
        plain = StoredTable(self.source, self.schema, self.convert, null=self.null)
        columns = len(self.names)
        if self.client is None:
            return DistributedRows(LocalEngine(recipes_for(plain, encode, LOCAL_SHARDS), progress), columns)
        from discreet.data.distributed.dask_engine import DaskEngine

        return DistributedRows(DaskEngine(self.client, plain, encode, progress), columns)

    def sum_of_targets(self, part: Callable[[Any], FloatArray]) -> FloatArray:
        """The sum of what the part gives for blocks of the target, which are numbers."""
        return self.encoded(np.asarray).sum(partial(_of_target, part=part))


def _of_target(block: Data, part: Callable[[Any], FloatArray]) -> FloatArray:
    return part(block.y)


class ParquetFiles:
    """The Parquet files of a pattern such as "folder/*.parquet", or of a folder, in the order of their names.

    Workers read their row groups, and the driver reads footers only. All workers must see them under the same paths. It
    stands for a `TableFile` where a table is fitted.
    """

    def __init__(self, pattern: str | Path, client: Any) -> None:
        self.path, self._client = Path(pattern), client
        self.kinds: dict[str, str] = {}
        groups, counts = [], []
        for name in parquet_names(pattern):
            self.kinds, rows = footer(name, self.kinds)
            groups += [ParquetGroup(name, number) for number in range(len(rows))]
            counts += rows
        self.source = PartitionedSource.of(groups, counts, self.kinds, str(pattern))
        self.rows = self.source.rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def __str__(self) -> str:
        return str(self.path)

    def check_names(self, schema: Schema) -> None:
        """Refuse a schema whose target or columns the files do not have; no row is read."""
        wanted_columns(self.path, self.kinds, schema, target=True)
        if schema.person is not None:
            check_column(self.path, self.kinds, schema.person)

    def stored(self, schema: Schema) -> DistributedTable:
        """The table on the workers."""
        return DistributedTable(self.source, schema, client=self._client)

    def persons(self, schema: Schema, neutral: bool = False) -> None:
        """None: persons with several rows are for tables in memory, and `fit_table` has refused them."""
