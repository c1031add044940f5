"""CSV and Parquet files, opened once: the header is public, the rows are read through a schema.

CSV files may be compressed (.gz), come through a pipe (-), and be as Excel writes them: a byte order mark, semicolons,
a first line sep=; and decimal commas.

A CSV file may lack a header, and then its first line is a row. A first line that looks like one is refused, and no
message shows what it holds.

A file that is replaced on the disk while a command runs does not matter: all that is read comes from one opening.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from discreet.data.arrow_columns import (
    MISSING,
    check_column,
    read_features,
    read_target,
    read_texts,
    wanted_columns,
)
from discreet.data.schema import Schema
from discreet.data.stored_table import StoredTable
from discreet.data.validation import Table

OTHER_FORMATS = (".feather", ".arrow", ".orc", ".xlsx", ".xls", ".ods", ".npz", ".json", ".zip", ".bz2", ".xz")
PARQUET = (".parquet", ".pq")
STDIN = Path("-")  # the table comes through a pipe
SEPARATORS = (",", ";", "\t")

VALUE_WORDS = frozenset(word.lower() for word in (*MISSING, "true", "false"))  # that no column is called

_LOOKS_LIKE_DATA = (
    "the first line of {path} looks like a row and not like a header (field {place} is no name): put the names of the "
    "columns there, or pass --no-header if it is a row."
)
_DAMAGED = "{path} is damaged: it could not be decompressed."
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)
_NEEDS_HEADER = (
    "{path}: without a header the first row decides how all others are read, so that invalid_rows='neutral' would not "
    "be about single rows; write the names of the columns into the first line."
)
_NOT_UTF8 = "{path} is not a text file in UTF-8; convert it, or use Parquet."


class TableFile(ABC):
    """A file of rows that is open until `close`, or to the end of a `with` block; `open_table` makes one.

    Attributes
    ----------
    path : Path
    kinds : dict
        For every column its name and its kind as far as the file declares one: "number", "category" or "ignore".
    rows : int or None
        The number of rows, where the file says it without being read.
    """

    kinds: dict[str, str]
    rows: int | None = None
    _commas = False  # whether a comma in a number is a decimal mark

    def __init__(self, path: str | Path, header: bool = True, file: Any = None) -> None:
        self.path, self._has_header = Path(path), header
        self._file = _open(self.path) if file is None else file
        try:
            self.kinds = self._header()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self.path)

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        self._file.close()

    def check_names(self, schema: Schema) -> None:
        """Refuse a schema whose target or columns the file does not have; no row is read."""
        wanted_columns(self.path, self.kinds, schema, target=True)
        if schema.person is not None:
            check_column(self.path, self.kinds, schema.person)

    def read(self, schema: Schema, target: bool, neutral: bool = False) -> Table:
        """The features of a schema, and its target if asked for.

        `neutral` marks by infinity what cannot be read: single values, and lines of a CSV file with another number of
        fields than the header. It is for estimators with invalid_rows="neutral".

        Raises
        ------
        ValueError
            A column is missing or is not what the schema says, or a number is missing or infinite.
        """
        if neutral and not self._has_header:
            raise ValueError(_NEEDS_HEADER.format(path=self.path))
        columns, damaged = self._all_columns(wanted_columns(self.path, self.kinds, schema, target), neutral)
        if not columns.num_rows:
            raise ValueError(f"{self.path} has a header but no rows.")
        X = np.empty((columns.num_rows, len(schema.feature_names)))
        read_features(self.path, columns, schema, X, self._commas, neutral)
        X[damaged] = np.inf
        named = target and schema.target.name is not None
        y = read_target(self.path, columns, schema.target, self._commas, neutral) if named else None
        return Table(X, schema.feature_names, y)

    def persons(self, schema: Schema, neutral: bool = False) -> Any:
        """The id of each row's person as a text, None where it is missing; None if each row is a person of its own.

        Spaces around an id are no part of it, as in the names of columns: they must not make two persons of one.
        """
        if schema.person is None:
            return None
        ids = [text.strip() for text in self.texts(schema.person, neutral).tolist()]
        return np.array([None if text in MISSING else text for text in ids], dtype=object)

    def texts(self, name: str, neutral: bool = False) -> Any:
        """One column as texts, whether a schema knows it or not; missing values are empty texts."""
        check_column(self.path, self.kinds, name)
        return read_texts(self.path, self._all_columns([name], neutral)[0], name, neutral)

    def stored(self, schema: Schema) -> StoredTable:
        """The table without reading it into memory; the file must stay open as long as it is used."""
        raise ValueError(f"{self.path} cannot be read block by block; convert it to Parquet, or read it into memory.")

    @abstractmethod
    def _header(self) -> dict[str, str]:
        """Names and kinds of the columns, without reading a row."""

    @abstractmethod
    def _columns(self, wanted: list[str]) -> Any:
        """The wanted columns as an Arrow table."""

    def _all_columns(self, wanted: list[str], neutral: bool) -> tuple[Any, list[int]]:
        """The same, and, if `neutral`, the places of rows without values, which stand for lines that are no rows."""
        return self._columns(wanted), []


class CSVFile(TableFile):
    """A CSV file in UTF-8; its header has no types, so every kind is "number". Without one, columns are numbered."""

    def _header(self) -> dict[str, str]:
        """The names in the first line, split at its separator."""
        text = io.TextIOWrapper(self._file, encoding="utf-8-sig", newline="")
        try:
            line = text.readline()
            named = re.fullmatch(r"\"?sep=(.)\"?", line.strip("\r\n"))  # Excel's own line, before the header
            line = text.readline() if named else line
        except UnicodeDecodeError:
            raise ValueError(_NOT_UTF8.format(path=self.path)) from None
        except _BROKEN:
            raise ValueError(_DAMAGED.format(path=self.path)) from None
        self._file = text.detach()
        if not line.strip():
            raise ValueError(f"{self.path} is empty or its first line is; it needs a header with the column names.")
        self._separator = named[1] if named else _separator_of(line)
        self._skipped, self._commas = int(self._has_header) + bool(named), self._separator == ";"
        names = [name.strip() for name in next(csv.reader([line], delimiter=self._separator))]
        values = [place for place, name in enumerate(names, start=1) if looks_like_data(name)]
        if not self._has_header:
            names = [f"column_{place}" for place in range(1, len(names) + 1)]
        elif values:
            raise ValueError(_LOOKS_LIKE_DATA.format(path=self.path, place=values[0]))
        return unique_names(self.path, names, ["number"] * len(names))

    def _all_columns(self, wanted: list[str], neutral: bool) -> tuple[Any, list[int]]:
        import pyarrow as pa

        if not neutral:
            return super()._all_columns(wanted, neutral)
        damaged: list[int] = []

        def skipped(line: Any) -> str:
            damaged.append(line.number - 1 - self._skipped)
            return "skip"

        rows = self._columns(wanted, skipped)
        missing = np.zeros(rows.num_rows + len(damaged), dtype=bool)
        missing[damaged] = True
        return rows.take(pa.array(np.cumsum(~missing) - 1, mask=missing)) if damaged else rows, damaged

    def _columns(self, wanted: list[str], no_row: Callable[[Any], str] | None = None) -> Any:
        """The wanted columns as texts: what they mean is for the schema to say.

        `no_row` is asked about lines with another number of fields than the header; without it they are refused.
        """
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        names = list(self.kinds)
        # An empty line of a file with one column is a row whose value is missing.
        lines: dict[str, Any] = {"newlines_in_values": True, "ignore_empty_lines": len(names) > 1}
        self._file.seek(0)
        try:
            return read_csv(
                self._file,
                # Several threads do not count lines.
                ReadOptions(column_names=names, skip_rows=self._skipped, use_threads=no_row is None),
                ParseOptions(delimiter=self._separator, invalid_row_handler=no_row, **lines),
                ConvertOptions(column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted),
            )
        except _BROKEN:
            raise ValueError(_DAMAGED.format(path=self.path)) from None
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                raise ValueError(_NOT_UTF8.format(path=self.path)) from None
            if "Empty CSV" in str(error):
                return pa.table({name: pa.array([], pa.string()) for name in wanted})
            raise ValueError(
                f"{self.path} is damaged: some rows do not have {len(names)} fields like the header."
            ) from None


def looks_like_data(name: str) -> bool:
    """Whether a field of a first line is a value rather than a name: it holds no letter, or is a word for a value."""
    try:
        float(name)  # 1e5 holds a letter
    except ValueError:
        return bool(name) and (name.lower() in VALUE_WORDS or not any(map(str.isalpha, name)))
    return True


def open_table(path: str | Path, header: bool = True) -> TableFile:
    """Open a CSV or Parquet file, told apart by the ending of the name, and read its header.

    A folder, or a pattern such as "folder/*.parquet", is a table of several Parquet files. A file that
    comes through a pipe (-) is told by its first bytes. `header=False` says that the first line of a CSV file is a row;
    its columns are then called column_1, column_2, ...
    """
    from discreet.data.parquet_table import ParquetFolder, ParquetTableFile, is_several  # which need what is here

    path, file = Path(path), None
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    ending = endings[-1] if endings else ""
    if path == STDIN:
        content = sys.stdin.buffer.read()
        path, file = Path("stdin"), _from_bytes(content)
        ending = PARQUET[0] if content.startswith(b"PAR1") else ""
    if ending in OTHER_FORMATS or (ending == ".gz" and set(endings) & {*OTHER_FORMATS, *PARQUET, ".tar"}):
        raise ValueError(f"{path}: files with the ending {ending} are not read; convert it to Parquet or CSV.")
    several = is_several(path)
    if ending not in PARQUET and not several:
        return CSVFile(path, header, file)
    if not header:
        raise ValueError(f"{path} is a Parquet file, which names its columns; --no-header is for CSV files.")
    return ParquetFolder(path) if several else ParquetTableFile(path, file=file)


def read_header(path: str | Path, header: bool = True) -> dict[str, str]:
    """The column names of a file and their kinds, without reading a row."""
    with open_table(path, header) as file:
        return file.kinds


def read_table(path: str | Path, schema: Schema, target: bool, header: bool = True) -> Table:
    """The features of a schema from a file, and its target if asked for: `TableFile.read` for a single use."""
    with open_table(path, header) as file:
        return file.read(schema, target)


def _separator_of(line: str) -> str:
    """What separates the fields of the first line: what occurs most, outside of quotes.

    Numbers with decimal commas between semicolons hold more commas than semicolons, and are told by that.
    """
    bare = re.sub(r'"[^"]*"', "", line).strip("\r\n")
    if ";" in bare and all(re.fullmatch(r"\s*[-+]?[\d.]*(,\d*)?\s*", field) for field in bare.split(";")):
        return ";"
    return max(SEPARATORS, key=bare.count)


def _from_bytes(content: bytes) -> Any:
    import pyarrow as pa

    if content.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=io.BytesIO(content))
    return pa.BufferReader(content)


def _open(path: Path) -> Any:
    import pyarrow as pa

    try:
        if path.suffix.lower() == ".gz":
            return gzip.open(path, "rb")
        return pa.OSFile(str(path))
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, os.strerror(number) if number else str(error), str(path)) from None


def unique_names(path: Path, names: list[str], kinds: list[str]) -> dict[str, str]:
    """The kinds of columns by their names, of which none may be empty or there twice."""
    if "" in names:
        raise ValueError(f"{path}: column {names.index('') + 1} has no name; name it in the header or remove it.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        places = [place for place, name in enumerate(names, start=1) if name == twice[0]]
        raise ValueError(f"{path} has duplicate column names, in columns {places[0]} and {places[1]}; rename them.")
    return dict(zip(names, kinds, strict=True))
