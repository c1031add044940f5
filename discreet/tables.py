"""CSV and Parquet files, read through a schema: the header is public, the rows are not.

Errors name the file and the column, never a value or the number of a row.
"""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.schema import Column, Schema, as_text

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
SEPARATORS = (",", ";", "\t")
MISSING = ["", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None", "<NA>", "#N/A"]


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file as numbers: features, their names, and the target (None if it was not asked for)."""

    X: FloatArray
    names: list[str]
    y: Any = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def frame(self) -> Any:
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
    wanted = {column.name: column.type for column in schema.used}
    if target and schema.target.name is not None:
        wanted[schema.target.name] = "category" if schema.target.is_text else "number"
    header = read_header(path)
    absent = [name for name in wanted if name not in header]
    if absent:
        raise ValueError(f"{path} has no column {absent[0]!r}; it has {_few(list(header))}.")
    if not schema.used:
        raise ValueError(f"{path} has no columns to learn from besides the target {schema.target.name!r}.")
    frame = _read_frame(path, wanted)
    if not len(frame):
        raise ValueError(f"{path} has a header but no rows.")
    blocks = [_features(path, frame[column.name], column) for column in schema.used]
    y = None
    if target and schema.target.name is not None:
        column = frame[schema.target.name]
        y = np.array(_texts(column), dtype=str) if schema.target.is_text else _numbers(path, column, _TARGET_HINT)
    return Table(np.column_stack(blocks), schema.feature_names, y)


_NOT_UTF8 = "{path} is not a text file in UTF-8; convert it, or use Parquet."
_COLUMN_HINT = "declare its categories in a schema (discreet schema {path}), or ignore it there"
_TARGET_HINT = "it is the target: declare its labels with --classes, or in a schema"


def _features(path: str | Path, values: pd.Series[Any], column: Column) -> FloatArray:
    if column.type == "number":
        return _numbers(path, values, _COLUMN_HINT)
    codes = {category: i for i, category in enumerate(column.categories or ())}
    block = np.zeros((len(values), len(codes)))
    found = np.array([codes.get(text, -1) for text in _texts(values)])
    known = np.flatnonzero(found >= 0)
    block[known, found[known]] = 1.0
    return block


def _numbers(path: str | Path, values: pd.Series[Any], hint: str) -> FloatArray:
    import pandas as pd

    where = f"{path}: column {values.name!r}"
    if not (pd.api.types.is_numeric_dtype(values) or _holds_numbers(values)):
        raise ValueError(f"{where} is not numeric; {hint.format(path=path)}.")
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isnan(numbers).any():
        raise ValueError(f"{where} has missing values (NaN); remove or impute those rows first.")
    if np.isinf(numbers).any():
        raise ValueError(f"{where} contains infinity; remove or correct those rows first.")
    return numbers


def _holds_numbers(values: pd.Series[Any]) -> bool:
    """Whether an untyped column (very large integers, decimals, no rows at all) is numeric after all."""
    from decimal import Decimal

    return all(isinstance(value, (int, float, Decimal)) for value in values)


def _texts(values: pd.Series[Any]) -> list[str]:
    return [as_text(value) for value in values.astype(object).where(values.notna(), None)]


def _read_frame(path: str | Path, wanted: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    if is_parquet(path):
        return pd.read_parquet(path, columns=list(wanted))
    names, separator = _csv_header(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=separator,
                names=names,
                header=0,
                index_col=False,
                usecols=list(wanted),
                dtype={name: str for name, kind in wanted.items() if kind == "category"},
                na_values={name: MISSING for name, kind in wanted.items() if kind == "number"},
                keep_default_na=False,
                float_precision="round_trip",
                encoding="utf-8-sig",
                low_memory=False,
            )
    except UnicodeDecodeError:
        raise ValueError(_NOT_UTF8.format(path=path)) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning):
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
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    return "category" if text else "ignore"


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
