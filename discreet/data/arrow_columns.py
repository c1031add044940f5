"""Columns of Arrow tables as numbers: a number column as it is, a category column as one indicator per category.

Nothing about the rows decides how they are read: types come from the schema. Errors name the source and the column,
never a value or the number of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._common.types import BoolArray, FloatArray
from discreet.data.schema import Column, Schema, Target, as_text

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")

_COLUMN_HINT = "declare its categories in a schema (discreet schema TABLE), or ignore it there"
_TARGET_HINT = "it is the target: declare its labels with --classes, or in a schema"
_FAULTS = {
    "text": ("is not numeric", "are not numeric", ""),
    "date": ("holds something else than ISO dates", "hold something else than ISO dates", "write dates as 2024-12-31"),
    "missing": (
        "has missing values (NaN)",
        "have missing values (NaN)",
        'say in a schema what they become, "missing": "indicator" or a value, or set invalid_rows',
    ),
    "infinite": ("contains infinity", "contain infinity", "remove or correct those rows first"),
}
NO_TEXT = "\0"  # stands for a value that has no text
MOST_NAMES = 20  # of columns in a message
UNITS_OF_A_DAY = {
    "s": 86_400.0,
    "ms": 86_400e3,
    "us": 86_400e6,
    "ns": 86_400e9,
    "date32[day]": 1.0,
    "date64[ms]": 86_400e3,
}


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


def read_features(
    source: Any, columns: Any, schema: Schema, X: FloatArray, commas: bool = False, neutral: bool = False
) -> None:
    """Write the features of an Arrow table or batch into an array with a row for each of theirs.

    `commas` says that a comma in a number is a decimal mark, unless its column says otherwise. All columns that
    cannot be read are named together. `neutral` marks single values that cannot be read by infinity instead.
    """
    start, faults = 0, Faults(neutral)
    for column in schema.used:
        width = len(column.features)
        found = _features(source, columns.column(column.name), column, commas, faults)
        if found is not None:
            X[:, start : start + width] = found
        start += width
    faults.refuse(source, _COLUMN_HINT)


class Faults:
    """Which columns cannot be read, and why; `neutral`: single values that cannot be are none."""

    def __init__(self, neutral: bool = False) -> None:
        self.neutral = neutral
        self._columns: dict[str, list[str]] = {}

    def add(self, why: str, name: str) -> None:
        self._columns.setdefault(why, []).append(name)

    def refuse(self, source: Any, hint: str) -> None:
        """Name all columns with the first of the faults, if there is one."""
        for why, (singular, plural, advice) in _FAULTS.items():
            names = self._columns.get(why)
            if names:
                which = ", ".join(map(repr, names[:MOST_NAMES])) + (", ..." if len(names) > MOST_NAMES else "")
                told = f"column {which} {singular}" if len(names) == 1 else f"{len(names)} columns, {which}, {plural}"
                raise ValueError(f"{source}: {told}; {advice or hint}.")


def read_target(source: Any, columns: Any, target: Target, commas: bool = False, neutral: bool = False) -> Any:
    """The target of an Arrow table or batch: texts if its declared classes are texts, else numbers."""
    assert target.name is not None
    values = columns.column(target.name)
    if target.is_text:
        return _texts(source, target.name, values, neutral)
    faults = Faults(neutral)
    numbers = _as_floats(values, "auto" if commas else None, neutral)
    numbers = _checked(numbers, "text", target.name, faults, missing=neutral)  # which evaluations tell from unknown
    faults.refuse(source, _TARGET_HINT)
    return numbers


def read_texts(source: Any, columns: Any, name: str, neutral: bool = False) -> npt.NDArray[Any]:
    """One column of an Arrow table as texts, as categories are read; a missing value is the empty text."""
    return _texts(source, name, columns.column(name), neutral)


def check_column(source: Any, kinds: dict[str, str], name: str) -> None:
    """Refuse a name that no column has."""
    if name not in kinds:
        raise ValueError(f"{source} has no column {name!r}; {_advice(name, list(kinds))}")


def arrow_kind(kind: Any) -> str:
    """What a column of an Arrow type is: a "number", a "category" (text), a "date", or to "ignore" (lists)."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    return "category" if _is_text(kind) else "ignore"


def _advice(name: str, names: list[str]) -> str:
    """What to do about a name that is not there. Others are not listed: without a header they would be a row."""
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"none of its {len(names)} columns has a name like that."


def _features(source: Any, values: Any, column: Column, commas: bool, faults: Faults) -> FloatArray | None:
    """The features of one column; None if it has a fault, which is kept."""
    if column.type == "category":
        return _indicators(column, *_coded(source, column.name, values, faults.neutral))
    if column.type == "date":
        numbers = _as_days(values, column.first_day, faults.neutral)
    else:
        numbers = _as_floats(values, column.decimal or ("auto" if commas else None), faults.neutral)
    kind = "date" if column.type == "date" else "text"
    numbers = _checked(numbers, kind, column.name, faults, missing=column.missing is not None)
    if numbers is None:
        return None
    if column.missing is None:
        return numbers[:, None]
    gaps = np.isnan(numbers)
    if column.filled is not None:
        numbers = np.where(gaps, column.filled, numbers)
    return np.column_stack([numbers, gaps]) if column.has_indicator else numbers[:, None]


def _indicators(column: Column, texts: list[str], places: Any) -> FloatArray:
    """A category column as zeros and ones; each distinct text is compared once, however long it is."""
    listed = column.categories or ()
    gaps = [text in MISSING and text not in listed for text in texts]
    if column.missing is not None and not column.has_indicator:
        texts = [as_text(column.missing) if gap else text for text, gap in zip(texts, gaps, strict=True)]
    found = [
        [text == category for category in column.levels] + [gap] * column.has_indicator
        for text, gap in zip(texts, gaps, strict=True)
    ]
    return np.array(found, dtype=np.float64).reshape(len(texts), -1)[places]


def _checked(numbers: FloatArray | None, kind: str, name: str, faults: Faults, missing: bool) -> FloatArray | None:
    """Finite numbers, with NaN for missing values if these are allowed; else None, and the fault is kept.

    Where single values are no faults, infinity stands for each that would be one.
    """
    if numbers is None:
        faults.add(kind, name)
    elif faults.neutral:
        return numbers if missing else np.where(np.isnan(numbers), np.inf, numbers)
    elif np.isfinite(numbers).all():  # as nearly always: one look at each number
        return numbers
    elif np.isinf(numbers).any():
        faults.add("infinite", name)
    elif not missing:
        faults.add("missing", name)
    else:
        return numbers
    return None


def _as_days(values: Any, first_day: int, neutral: bool = False) -> FloatArray | None:
    """ISO dates, with or without a time, or values of Arrow's own types, in days since the first day."""
    import pyarrow as pa

    unreadable = None
    if _is_text(values.type):
        values = _trimmed(values)
        if neutral:
            values, unreadable = each_cast(values, pa.timestamp("us"))
    try:
        if not (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)):
            values = values.cast(pa.timestamp("us"), safe=False)
        # No other unit of time in between: dates that it cannot hold would come back as quite different ones.
        units = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    days = np.asarray(_to_numpy(units.cast(pa.float64(), safe=False)), dtype=np.float64)
    days = days / UNITS_OF_A_DAY[getattr(values.type, "unit", str(values.type))] - first_day
    return days if unreadable is None else np.where(unreadable, np.inf, days)


def _trimmed(values: Any) -> Any:
    """Texts without spaces around them, and words for missing values as nulls."""
    import pyarrow as pa
    from pyarrow import compute

    values = compute.utf8_trim_whitespace(values.cast(pa.string()))
    missing = compute.is_in(values, pa.array(MISSING))
    return compute.if_else(missing, pa.scalar(None, pa.string()), values)


def _with_decimal_points(values: Any, decimal: str | None) -> Any:
    """Numbers as texts with a decimal point.

    With "," points are separators of thousands; "auto" reads numbers with a comma so, and others as they are.
    """
    from pyarrow import compute

    if decimal not in (",", "auto"):
        return values
    bare = compute.replace_substring(values, ".", "")
    pointed = compute.replace_substring(bare, ",", ".")
    return pointed if decimal == "," else compute.if_else(compute.match_substring(values, ","), pointed, values)


def _as_floats(values: Any, decimal: str | None = None, neutral: bool = False) -> FloatArray | None:
    """A column as floats, missing values as NaN; None if it holds something else.

    `neutral` makes infinity of single texts that are no number; a type that is none is public, and still None.
    """
    import pyarrow as pa

    if _is_text(values.type):
        values = _with_decimal_points(_trimmed(values), decimal)
        if neutral:
            return _each_number(values)
    for first in (pa.float64(), pa.bool_()):
        try:
            numbers = values.cast(first, safe=False)
            if pa.types.is_boolean(first):
                numbers = numbers.cast(pa.int8()).cast(pa.float64())
            return np.asarray(_to_numpy(numbers), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return None


def _each_number(values: Any) -> FloatArray:
    """Texts as numbers, each by itself: a number, else a truth value, else infinity."""
    import pyarrow as pa

    numbers, unreadable = each_cast(values, pa.float64())
    found = np.array(_to_numpy(numbers), dtype=np.float64)
    if unreadable.any():
        truths, neither = each_cast(values.filter(pa.array(unreadable)), pa.bool_())
        read = np.array(_to_numpy(truths.cast(pa.int8()).cast(pa.float64())), dtype=np.float64)
        found[unreadable] = np.where(neither, np.inf, read)
    return found


def each_cast(values: Any, kind: Any) -> tuple[Any, BoolArray]:
    """Texts in another type, null where one cannot be, and where that is; each is read whatever the others are.

    A cast reads text by text and fails as a whole. Where it fails, both halves of the different texts are cast alone.
    """
    import pyarrow as pa

    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        return whole.cast(kind, safe=False), np.zeros(len(whole), dtype=bool)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        coded = whole.dictionary_encode()
    read = pa.concat_arrays(list(_cast_parts(coded.dictionary, kind)))
    unread = np.append(np.asarray(read.is_null()), False)  # of missing texts
    places = coded.indices.fill_null(len(read)).to_numpy(zero_copy_only=False)
    return read.take(coded.indices), unread[places]


def _cast_parts(texts: Any, kind: Any) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield texts.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        half = len(texts) // 2
        if half == 0:
            yield pa.nulls(1, kind)
            return
        yield from _cast_parts(texts[:half], kind)
        yield from _cast_parts(texts[half:], kind)


def _to_numpy(values: Any) -> Any:
    """A column of a table or of a batch as an array; only the latter must be allowed to copy."""
    import pyarrow as pa

    return values.to_numpy() if isinstance(values, pa.ChunkedArray) else values.to_numpy(zero_copy_only=False)


def _texts(source: Any, name: str, values: Any, neutral: bool = False) -> npt.NDArray[Any]:
    """A column as texts; as objects where one may be of any length."""
    texts, places = _coded(source, name, values, neutral)
    return np.array(texts, dtype=object if neutral else str)[places]


def _coded(source: Any, name: str, values: Any, neutral: bool = False) -> tuple[list[str], Any]:
    """The distinct texts of a column, each converted once, with that of missing values; and the place of each row.

    `neutral` gives values that have no text one that nobody declares.
    """
    import pyarrow as pa

    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        coded = whole.dictionary_encode()
        known = _each_text(coded.dictionary) if neutral else [as_text(value) for value in coded.dictionary.to_pylist()]
    except (pa.ArrowException, OverflowError, ValueError):  # lists, and dates that Python does not have
        raise ValueError(f"{source}: column {name!r} holds values that have no text; ignore it in a schema.") from None
    return [*known, as_text(None)], coded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)


def _each_text(values: Any) -> list[str]:
    """The text of each value; dates that Python does not have and half characters have none."""
    texts = []
    for value in values:
        try:
            texts.append(as_text(value.as_py()))
        except (OverflowError, ValueError):
            texts.append(NO_TEXT)
    return texts


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))
