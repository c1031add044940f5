"""CSV and Parquet files, read through a schema: the header is public, the rows are not.

Nothing about the rows decides how they are read: types come from the schema. Errors name the file and the
column, never a value or the number of a row.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data.schema import Column, Schema, as_text

SEPARATORS = (",", ";", "\t")
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")

_NOT_UTF8 = "{path} is not a text file in UTF-8; convert it, or use Parquet."
_COLUMN_HINT = "declare its categories in a schema (discreet schema {path}), or ignore it there"
_TARGET_HINT = "it is the target: declare its labels with --classes, or in a schema"


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file as numbers: features, their names, and the target (None if it was not asked for)."""

    X: FloatArray
    names: list[str]
    y: Any = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def to_pandas(self) -> Any:
        """The features as a data frame, so that an estimator learns their names."""
        import pandas as pd

        return pd.DataFrame(self.X, columns=self.names, copy=False)


def read_header(path: str | Path) -> dict[str, str]:
    """The column names of a file and their kinds, without reading a row.

    A CSV header has no types, so every kind is "number"; a Parquet file declares them: text is a "category",
    anything else that is not a number (dates, lists) is to "ignore".
    """
    if is_parquet(path):
        from pyarrow import ArrowException
        from pyarrow.parquet import read_schema

        try:
            fields = read_schema(path)
        except ArrowException as error:
            raise ValueError(f"{path} is not a Parquet file: {error}") from None
        return _unique(path, fields.names, [_arrow_kind(kind) for kind in fields.types])
    names = _csv_header(path)[0]
    return _unique(path, names, ["number"] * len(names))


def is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() in (".parquet", ".pq")


def read_table(path: str | Path, schema: Schema, target: bool) -> Table:
    """Read the features of a schema from a file, and its target if asked for.

    Raises
    ------
    ValueError
        A column is missing or is not what the schema says, or a number is missing or infinite.
    """
    wanted = [column.name for column in schema.used]
    if target and schema.target.name is not None:
        wanted.append(schema.target.name)
    header = read_header(path)
    absent = [name for name in wanted if name not in header]
    if absent:
        raise ValueError(f"{path} has no column {absent[0]!r}; it has {_few(list(header))}.")
    if not schema.used:
        raise ValueError(f"{path} has no columns to learn from besides the target {schema.target.name!r}.")
    columns = _read_columns(path, wanted)
    if not columns.num_rows:
        raise ValueError(f"{path} has a header but no rows.")
    blocks = [_features(path, columns[column.name], column) for column in schema.used]
    y = None
    if target and schema.target.name is not None:
        values = columns[schema.target.name]
        y = _texts(values) if schema.target.is_text else _numbers(path, schema.target.name, values, _TARGET_HINT)
    return Table(np.column_stack(blocks), schema.feature_names, y)


def _features(path: str | Path, values: Any, column: Column) -> FloatArray:
    """A number column as it is, a category column as one indicator per category."""
    if column.type == "number":
        return _numbers(path, column.name, values, _COLUMN_HINT)
    return np.asarray(_texts(values)[:, None] == np.array(column.categories)[None, :], dtype=np.float64)


def _numbers(path: str | Path, name: str, values: Any, hint: str) -> FloatArray:
    where = f"{path}: column {name!r}"
    numbers = _as_floats(values)
    if numbers is None:
        raise ValueError(f"{where} is not numeric; {hint.format(path=path)}.")
    if np.isnan(numbers).any():
        raise ValueError(f"{where} has missing values (NaN); remove or impute those rows first.")
    if np.isinf(numbers).any():
        raise ValueError(f"{where} contains infinity; remove or correct those rows first.")
    return numbers


def _as_floats(values: Any) -> FloatArray | None:
    """A column as floats, missing values as NaN; None if it holds something else."""
    import pyarrow as pa
    from pyarrow import compute

    if _is_text(values.type):
        values = compute.utf8_trim_whitespace(values.cast(pa.string()))
        missing = compute.is_in(values, pa.array(MISSING))
        values = compute.if_else(missing, pa.scalar(None, pa.string()), values)
    for first in (pa.float64(), pa.bool_()):
        try:
            numbers = values.cast(first, safe=False)
            if pa.types.is_boolean(first):
                numbers = numbers.cast(pa.int8()).cast(pa.float64())
            return np.array(numbers.to_numpy(), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _texts(values: Any) -> npt.NDArray[np.str_]:
    """A column as texts, each distinct value converted once."""
    coded = values.combine_chunks().dictionary_encode()
    known = [as_text(value) for value in coded.dictionary.to_pylist()]
    places = coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.array([*known, as_text(None)], dtype=str)[places]


def _read_columns(path: str | Path, wanted: list[str]) -> Any:
    """The wanted columns as an Arrow table; those of a CSV file as texts."""
    import pyarrow as pa

    if is_parquet(path):
        from pyarrow.parquet import read_table as read_parquet

        return read_parquet(path, columns=wanted)
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    names, separator = _csv_header(path)
    try:
        return read_csv(
            path,
            ReadOptions(column_names=names, skip_rows=1),
            ParseOptions(delimiter=separator, newlines_in_values=True),
            ConvertOptions(column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted),
        )
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise ValueError(_NOT_UTF8.format(path=path)) from None
        if "Empty CSV" in str(error):
            return pa.table({name: pa.array([], pa.string()) for name in wanted})
        raise ValueError(f"{path} is damaged: some rows do not have {len(names)} fields like the header.") from None


def _csv_header(path: str | Path) -> tuple[list[str], str]:
    """The names in the first line, and the separator that occurs there most."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            line = file.readline()
    except UnicodeDecodeError:
        raise ValueError(_NOT_UTF8.format(path=path)) from None
    if not line.strip():
        raise ValueError(f"{path} is empty or its first line is; it needs a header with the column names.")
    separator = max(SEPARATORS, key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=separator))], separator


def _unique(path: str | Path, names: list[str], kinds: list[str]) -> dict[str, str]:
    if "" in names:
        raise ValueError(f"{path}: column {names.index('') + 1} has no name; name it in the header or remove it.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{path} has duplicate column names: {_few(twice)}; rename them.")
    return dict(zip(names, kinds, strict=True))


def _arrow_kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return "number"
    return "category" if _is_text(kind) else "ignore"


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
