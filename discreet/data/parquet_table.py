"""Parquet files as tables: a single one, or those of a folder, one after the other."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from discreet.data.arrow_columns import arrow_kind
from discreet.data.arrow_dataset import open_parquet, without_values
from discreet.data.files import PARQUET, TableFile, unique_names
from discreet.data.schema import Schema
from discreet.data.stored_table import StoredTable


class ParquetTableFile(TableFile):
    """A Parquet file; it declares types and the number of rows, and can be read batch by batch."""

    def _header(self) -> dict[str, str]:
        with without_values(self):
            self._parquet = open_parquet(self._file)
            self.rows = self._parquet.metadata.num_rows
        return kinds_of(self._parquet, self.path)

    def _columns(self, wanted: list[str]) -> Any:
        with without_values(self):
            return self._parquet.read(columns=wanted)

    def stored(self, schema: Schema) -> StoredTable:
        return StoredTable(self, schema)

    def batches(self, wanted: list[str], rows: int) -> Generator[Any, None, None]:
        """The wanted columns as Arrow batches of at most so many rows, in the order of the file."""
        with without_values(self):
            yield from self._parquet.iter_batches(batch_size=rows, columns=wanted)


class ParquetFolder(TableFile):
    """The Parquet files of a folder, or of a pattern such as "folder/*.parquet", as one table.

    Each file is opened when its turn comes: there may be more of them than a process may hold open.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, file=contextlib.nullcontext())

    def close(self) -> None:
        """Nothing stays open."""

    def _header(self) -> dict[str, str]:
        self._names, counts = parquet_names(self.path), []
        kinds: dict[str, str] = {}
        for name in self._names:
            kinds, groups = footer(name, kinds)
            counts += groups
        self.rows = sum(counts)
        return kinds

    def _columns(self, wanted: list[str]) -> Any:
        """One table; numbers of different types become the wider one."""
        import pyarrow as pa

        tables = []
        for name in self._names:
            with without_values(name):
                tables.append(open_parquet(name).read(columns=wanted).select(wanted))
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException:
            raise ValueError(f"{self}: a column is text in one file and a number in another; convert them.") from None

    def stored(self, schema: Schema) -> StoredTable:
        return StoredTable(self, schema)

    def batches(self, wanted: list[str], rows: int) -> Generator[Any, None, None]:
        """The wanted columns as Arrow batches of at most so many rows, file by file."""
        for name in self._names:
            with without_values(name):
                yield from open_parquet(name).iter_batches(batch_size=rows, columns=wanted)


def is_several(path: Path) -> bool:
    """Whether a path stands for several Parquet files: a folder, or a pattern that is not itself the name of a file."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def parquet_names(path: str | Path) -> list[str]:
    """The Parquet files of a folder or a pattern, in the order of their names.

    Each file once, however many of its names fit: no row may count twice.
    """
    folder = Path(path).is_dir()
    wanted = str(Path(glob.escape(str(path))) / "*.parquet") if folder else str(path)
    paths = _different(sorted({str(Path(name).resolve()) for name in glob.glob(wanted, recursive=True)}))
    if not paths:
        what = "the folder holds no Parquet files (*.parquet)" if folder else "no file has such a name"
        raise ValueError(f"{path}: {what}; name a Parquet file, a folder of them or 'folder/*.parquet'.")
    for name in paths:
        if Path(name).suffix.lower() not in PARQUET:
            raise ValueError(f"{name} is no Parquet file (.parquet); convert it, or leave it out of the pattern.")
    return paths


def dataset_of_files(path: str | Path) -> Any:
    """The `pyarrow.dataset` of a Parquet file, or of all that lie in a folder or fit a pattern."""
    from pyarrow.dataset import dataset

    if is_several(Path(path)):
        return dataset(parquet_names(path), format="parquet")
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist: name a Parquet file, a folder of them or 'folder/*.parquet'.")
    if Path(path).suffix.lower() not in PARQUET:
        raise ValueError(f"{path} is no Parquet file; read it first, pandas.read_csv say, or call discreet fit.")
    return dataset(str(path), format="parquet")


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


def footer(name: str, kinds: dict[str, str]) -> tuple[dict[str, str], list[int]]:
    """The kinds of the columns of the files so far and the rows of each row group; all have the same columns."""
    with without_values(name):
        file = open_parquet(name)
        rows = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    own = kinds_of(file, Path(name))
    if kinds and set(own) != set(kinds):
        raise ValueError(f"{name} does not have the columns of the files before it.")
    return kinds or own, rows


def kinds_of(parquet: Any, path: Path) -> dict[str, str]:
    """The columns of an opened file with their kinds."""
    fields = parquet.schema_arrow
    return unique_names(path, fields.names, [arrow_kind(kind) for kind in fields.types])
