"""Many Parquet files as one table whose row groups workers read; the driver reads footers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from discreet.data.arrow_columns import check_column, wanted_columns
from discreet.data.distributed.partitions import ParquetGroup, PartitionedSource
from discreet.data.distributed.rows import DistributedTable
from discreet.data.parquet_table import footer, parquet_names
from discreet.data.schema import Schema


class ParquetFiles:
    """The Parquet files of a pattern such as "folder/*.parquet", or of a folder, in the order of their names.

    All workers must see them under the same paths. It stands for a `TableFile` where a table is fitted.
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

    def persons(self, schema: Schema) -> None:
        """None: persons with several rows are for tables in memory, and `fit_table` has refused them."""
