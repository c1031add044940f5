"""Columns of Arrow tables as numbers: a number column as it is, a category column as one indicator per category.

Nothing about the rows decides how they are read: types come from the schema. Errors name the source and the column,
never a value or the number of a row.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.data.schema import Column, Schema, Target, as_text

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")

_COLUMN_HINT = "declare its categories in a schema (discreet schema {source}), or ignore it there"
_TARGET_HINT = "it is the target: declare its labels with --classes, or in a schema"


def wanted_columns(source: Any, kinds: dict[str, str], schema: Schema, target: bool) -> list[str]:
    """The names to read for the features of a schema, and for its target if asked for; all of them must be there."""
    wanted = [column.name for column in schema.used]
    if target and schema.target.name is not None:
        wanted.append(schema.target.name)
    for name in wanted:
        check_column(source, kinds, name)
    if not schema.used:
        raise ValueError(f"{source} has no columns to learn from besides the target {schema.target.name!r}.")
    return wanted


def read_features(source: Any, columns: Any, schema: Schema, X: FloatArray) -> None:
    """Write the features of an Arrow table or batch into an array with a row for each of theirs."""
    start = 0
    for column in schema.used:
        width = len(column.features)
        X[:, start : start + width] = _features(source, columns.column(column.name), column)
        start += width


def read_target(source: Any, columns: Any, target: Target) -> Any:
    """The target of an Arrow table or batch: texts if its declared classes are texts, else numbers."""
    assert target.name is not None
    values = columns.column(target.name)
    if target.is_text:
        return _texts(source, target.name, values)
    return _numbers(source, target.name, values, _TARGET_HINT)


def read_texts(source: Any, columns: Any, name: str) -> npt.NDArray[np.str_]:
    """One column of an Arrow table as texts, as categories are read; a missing value is the empty text."""
    return _texts(source, name, columns.column(name))


def check_column(source: Any, kinds: dict[str, str], name: str) -> None:
    """Refuse a name that no column has."""
    if name not in kinds:
        raise ValueError(f"{source} has no column {name!r}; {_advice(name, list(kinds))}")


def arrow_kind(kind: Any) -> str:
    """What a column of an Arrow type is: a "number", a "category" (text), or to "ignore" (dates, lists)."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return "number"
    return "category" if _is_text(kind) else "ignore"


def _advice(name: str, names: list[str]) -> str:
    """What to do about a name that is not there. Others are not listed: without a header they would be a row."""
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"none of its {len(names)} columns has a name like that."


def _features(source: Any, values: Any, column: Column) -> FloatArray:
    if column.type == "number":
        return _numbers(source, column.name, values, _COLUMN_HINT)[:, None]
    return np.asarray(
        _texts(source, column.name, values)[:, None] == np.array(column.categories)[None, :], dtype=np.float64
    )


def _numbers(source: Any, name: str, values: Any, hint: str) -> FloatArray:
    where = f"{source}: column {name!r}"
    numbers = _as_floats(values)
    if numbers is None:
        raise ValueError(f"{where} is not numeric; {hint.format(source=source)}.")
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
            return np.asarray(_to_numpy(numbers), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _to_numpy(values: Any) -> Any:
    """A column of a table or of a batch as an array; only the latter must be allowed to copy."""
    import pyarrow as pa

    return values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)


def _texts(source: Any, name: str, values: Any) -> npt.NDArray[np.str_]:
    """A column as texts, each distinct value converted once."""
    import pyarrow as pa

    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        coded = whole.dictionary_encode()
        known = [as_text(value) for value in coded.dictionary.to_pylist()]
    except (pa.ArrowException, OverflowError, ValueError):  # lists, and dates that Python does not have
        raise ValueError(f"{source}: column {name!r} holds values that have no text; ignore it in a schema.") from None
    places = coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return np.array([*known, as_text(None)], dtype=str)[places]


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))
