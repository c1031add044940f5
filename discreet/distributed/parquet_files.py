"""Many Parquet files as one table whose row groups workers read; the driver reads footers only."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any, Self

from discreet.data.arrow_columns import arrow_kind, check_column, wanted_columns
from discreet.data.arrow_dataset import open_parquet, without_values
from discreet.data.schema import Schema
from discreet.distributed.partitions import ParquetGroup, PartitionedSource
from discreet.distributed.rows import DistributedTable


class ParquetFiles:
    """The Parquet files of a pattern such as "folder/*.parquet", or of a folder, in the order of their names.

    All workers must see them under the same paths. It stands for a `TableFile` where a table is fitted.
    """

    def __init__(self, pattern: str | Path, client: Any) -> None:
        self.path, self._client = Path(pattern), client
        wanted = str(self.path / "*.parquet") if self.path.is_dir() else str(pattern)
        # Each file once, however many of its names fit: no row may count twice.
        found = _different(sorted({str(Path(name).resolve()) for name in glob.glob(wanted, recursive=True)}))
        if not found:
            raise ValueError(f"{pattern}: no file has such a name; --dask reads Parquet files, 'folder/*.parquet'.")
        self.kinds: dict[str, str] = {}
        groups, counts = [], []
        for name in found:
            for number, rows in enumerate(self._footer(name)):
                groups.append(ParquetGroup(name, number))
                counts.append(rows)
        self.source = PartitionedSource.of(groups, counts, self.kinds, str(pattern))
        self.rows = self.source.rows

    def _footer(self, name: str) -> list[int]:
        """The numbers of rows of the groups of a file; all files must have the same columns."""
        with without_values(name):
            file = open_parquet(name)
            kinds = {field.name: arrow_kind(field.type) for field in file.schema_arrow}
            rows = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        if self.kinds and set(kinds) != set(self.kinds):
            raise ValueError(f"{name} does not have the columns of the files before it.")
        self.kinds = self.kinds or kinds
        return rows

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


def _different(names: list[str]) -> list[str]:
    """Without further names (hard links) of files that are there already."""
    seen: set[tuple[int, int]] = set()
    kept: list[str] = []
    for name in names:
        facts = os.stat(name)
        if facts.st_nlink > 1 and (facts.st_dev, facts.st_ino) in seen:  # not all disks number files with one name
            continue
        seen.add((facts.st_dev, facts.st_ino))
        kept.append(name)
    return kept
