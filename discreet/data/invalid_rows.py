"""Rows that cannot be read, as rows that add nothing: what `invalid_rows="neutral"` does, before anything else.

Whether a row can be read, and as what, follows from the row alone, never from the type that another row has given to
its column. Theorem and proof: docs/guarantees/invalid-rows.md.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import BoolArray, FloatArray, IntArray
from discreet.data.people import array_of, is_missing, values_by_row
from discreet.data.public import names_of
from discreet.data.rows import Data, on_host
from discreet.data.schema import as_text
from discreet.data.validation import Table, canonical, encode_labels, refuse_duplicate_names

MISSING_LABEL, NO_LABEL = -2, -1
MOST_DIGITS = 400  # of a number that is written out as a text
TRUTHS = {"true": 1.0, "false": 0.0}
Target = Callable[[Any], tuple[Any, BoolArray]]  # values that can be used, and which of them could be read

NEEDS_CLASSES = (
    "invalid_rows='neutral' needs classes=[...]: which labels can be read must not depend on the labels that are there."
)
NEEDS_TABLE = (
    "invalid_rows='neutral' needs X as an array, a sparse matrix or a data frame, which have a number of columns "
    "whatever their rows hold."
)


def read_rows(
    X: Any, y: Any, given: dict[str, Any], target: Target | None = None, entries: str = "numbers"
) -> tuple[Any, Any, dict[str, Any]]:
    """A raw table, its target and the other arguments of `fit`, with null rows for those that cannot be read.

    Every row gets a weight, so that whether there are weights does not tell whether a row could be read. Rows without
    an id are left out, where there are ids. `entries` says what can be read in X: "numbers", NaN too ("gaps"), or
    "anything".
    """
    if entries == "anything":
        table, readable = X, np.ones(np.shape(X)[0], dtype=bool)
    else:
        table, readable = readable_table(X, gaps=entries == "gaps")
    if target is not None:
        y, usable = target(X.y if y is None and isinstance(X, Table) else y)
        if usable.size != readable.size:
            raise ValueError(f"y has {usable.size} values but X has {readable.size} rows; pass one value per row.")
        readable &= usable
    weight = _weights(given.get("sample_weight"), readable.size)
    readable &= np.isfinite(weight)
    given = given | {"sample_weight": np.where(readable, weight, 0.0)}
    if entries != "anything":
        table = without_entries(table, ~readable)
    if target is not None:
        y[~readable] = target(None)[0]
    if given.get("groups") is None:
        return table, y, given
    return _with_ids(table, y, given)


def readable_table(X: Any, gaps: bool = False) -> tuple[Any, BoolArray]:
    """A raw table in double precision, and in which rows all numbers are finite, or NaN if there may be gaps."""
    if isinstance(X, Table):
        table: Any = X.X
    elif sp.issparse(X):
        table = _sparse_numbers(X)
        unusable = table.tocoo()
        bad = unusable.row[~np.isfinite(unusable.data)]
        return table, np.bincount(bad, minlength=table.shape[0]) == 0
    else:
        table = _dense_numbers(X)
    usable = ~np.isinf(table) if gaps else np.isfinite(table)
    names = names_of(X)
    return table if names is None else Table(table, names), usable.all(axis=1)


def without_entries(table: Any, rows: BoolArray, mark: float = 0.0) -> Any:
    """A table of numbers with zeros, or a mark, in all entries of some rows; of sparse rows the mark is one entry."""
    if isinstance(table, Table):
        return Table(without_entries(table.X, rows, mark), table.names)
    if not sp.issparse(table):
        return np.where(rows[:, None], mark, table)
    entries = table.tocoo()
    kept, marked = ~rows[entries.row], np.flatnonzero(rows) if mark else np.zeros(0, dtype=np.int64)
    places = np.append(entries.row[kept], marked), np.append(entries.col[kept], np.zeros_like(marked))
    data = np.append(entries.data[kept], np.full(marked.size, mark))
    return type(table)((data, places), shape=table.shape)


def numbers_of(values: Any) -> FloatArray:
    """Values of any type as numbers, each by itself: NaN where one is missing, infinite where one is none."""
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would tell of single rows
        warnings.simplefilter("ignore")
        if array.dtype.kind in "biuf":
            found = np.array(array, dtype=np.float64, subok=False)
        elif array.dtype.kind == "c":
            found = np.where(np.asarray(array.imag) == 0.0, array.real, np.inf).astype(np.float64)
        elif array.dtype.kind in "OUS":
            found = np.array([_number(one) for one in np.ravel(array).tolist()], dtype=np.float64).reshape(array.shape)
        else:  # dates and records
            found = np.full(array.shape, np.inf)
        return np.where(np.ma.getmaskarray(array), np.nan, found)


def _number(one: Any) -> float:
    try:
        if isinstance(one, str | bytes):
            text = (one if isinstance(one, str) else one.decode()).strip()
            truth = TRUTHS.get(text.lower())
            return math.nan if not text else float(text) if truth is None else truth
        if isinstance(one, complex | np.complexfloating):
            return float(one.real) if one.imag == 0.0 else math.inf
        if isinstance(one, numbers.Number | np.bool_) and not isinstance(one, np.timedelta64):
            return float(one)  # type: ignore[arg-type]
        return math.nan if is_missing(one) else math.inf
    except Exception:  # whatever an object does when it is asked for its number
        return math.inf


def target_numbers(values: Any, allowed: Any = None) -> tuple[Any, BoolArray]:
    """A `Target` of finite numbers, or of the allowed ones alone; the null row has 0, or the first of these."""
    null = 0.0 if allowed is None else float(allowed[0])
    if values is None:
        return null, np.zeros(0, dtype=bool)
    found = numbers_of(_column(values, "y"))
    return found, np.isfinite(found) if allowed is None else np.isin(found, allowed)


def target_labels(values: Any, classes: Any) -> tuple[Any, BoolArray]:
    """A `Target` of declared labels; the null row has the first one."""
    if values is None:
        return classes[0], np.zeros(0, dtype=bool)
    codes = label_codes(values, classes)
    return classes[np.maximum(codes, 0)], codes >= 0


def label_target(classes: Any) -> Target:
    """The same for these classes, sorted."""
    return partial(target_labels, classes=classes)


def label_codes(values: Any, classes: Any) -> IntArray:
    """The place of each label among the classes, `NO_LABEL` for one that is none of them, `MISSING_LABEL`.

    Classes that are numbers are compared as numbers, all others as texts: a column of numbers becomes one of texts as
    soon as one of them is none.
    """
    labels, listed = _column(values, "y"), np.asarray(classes)
    if listed.dtype.kind in "biuf":
        numbered = {number: place for place, number in enumerate(listed.astype(np.float64).tolist())}
        return _places(numbers_of(labels).tolist(), numbered, math.isnan)
    named = {text_of(label): place for place, label in enumerate(listed)}
    return _places([text_of(label) for label in labels], named, lambda text: text == "")


def _places(values: list[Any], places: dict[Any, int], missing: Callable[[Any], bool]) -> IntArray:
    codes = [MISSING_LABEL if missing(value) else places.get(value, NO_LABEL) for value in values]
    return np.array(codes, dtype=np.int64)


def codes_or_nan(values: Any, classes: Any) -> FloatArray:
    """Labels as the losses expect them, NaN for those that are no class: an encoder for rows in blocks."""
    codes = label_codes(values, classes)
    return np.where(codes >= 0, encode_labels(classes[np.maximum(codes, 0)], classes), np.nan)


def null_rows(block: Data, target: float) -> Data:
    """A block with null rows in the places of those that NaN or infinity mark; all rows get weights."""
    readable = np.isfinite(block.X).all(axis=1) & np.isfinite(block.y)
    block.X[~readable], block.y[~readable] = 0.0, target
    return Data(block.X, block.y, readable.astype(np.float64), start=block.start)


def text_of(one: Any) -> str:
    """A value as the text by which it is compared: "" if it is missing, a character that is no text if it has none."""
    try:
        if is_missing(one):
            return ""
        if isinstance(one, frozenset):
            return "\0".join(["set", *sorted(map(text_of, one))])
        if isinstance(one, tuple):
            return "\0".join(["", *map(text_of, one), ""])
        if isinstance(one, Decimal):  # all of a column get the fraction of one of them
            bare = one.normalize() if one else Decimal(0)
            return format(bare, "f") if abs(bare.adjusted()) < MOST_DIGITS else str(bare)
        return as_text(one.item() if isinstance(one, np.generic) else one)
    except Exception:  # whatever an object does when it is asked for its text
        return "\0"


def _column(values: Any, name: str) -> Any:
    """One value per row; a table with one column will do."""
    column = values_by_row(on_host(values), name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(f"{name} must be one value per row; got an array of shape {column.shape}.")
    return column


def _dense_numbers(X: Any) -> FloatArray:
    """A data frame column by column, or an array."""
    if hasattr(X, "iloc") or hasattr(X, "get_columns"):  # pandas, Polars
        refuse_duplicate_names(X)
        rows, columns = X.shape
        found = np.empty((rows, columns))
        for j in range(columns):
            found[:, j] = numbers_of(array_of(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]))
        return found
    if not (isinstance(X, np.ndarray) or hasattr(X, "__array__")):
        raise ValueError(NEEDS_TABLE)
    array = X if isinstance(X, np.ndarray) else np.asarray(on_host(X))
    if array.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns; got the shape {array.shape}.")
    return numbers_of(array)


def _sparse_numbers(X: Any) -> Any:
    """Double precision, one stored value for each entry."""
    table = X if X.format in ("csr", "csc") else X.tocsr()
    table = type(table)((numbers_of(table.data), table.indices, table.indptr), shape=table.shape)
    with np.errstate(all="ignore"):
        return canonical(table, finite=False)


def _weights(sample_weight: Any, rows: int) -> FloatArray:
    """One weight per row, NaN where it is none; a single number is for all rows, and is checked as always."""
    # NumPy is asked for the shape of no list and no column: it would refuse, or warn of, an entry that is no number.
    column = hasattr(sample_weight, "__len__") and not isinstance(sample_weight, np.ndarray)
    if sample_weight is None or (not column and np.ndim(sample_weight) == 0):
        return np.ones(rows) if sample_weight is None else np.full(rows, float(sample_weight))
    weight = numbers_of(_column(sample_weight, "sample_weight"))
    if weight.size != rows:
        raise ValueError(f"sample_weight has shape {weight.shape}; pass one weight per row ({rows}).")
    return np.where((weight >= 0.0) & (weight <= 1.0), weight, np.nan)


def _with_ids(table: Any, y: Any, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Only the rows that have an id: those of nobody would be of somebody else otherwise."""
    ids = np.array([text_of(one) for one in values_by_row(given["groups"], "groups")], dtype=object)
    if ids.size != given["sample_weight"].size:
        raise ValueError("groups must hold one id per row of X, in the order of the rows.")
    known = ~np.isin(ids, ("", "\0"))
    if not known.any():
        raise ValueError("groups holds no id at all.")
    rows = table.X[known] if isinstance(table, Table) else (table.tocsr() if sp.issparse(table) else table)[known]
    kept = {"groups": ids[known], "sample_weight": given["sample_weight"][known]}
    return (Table(rows, table.names) if isinstance(table, Table) else rows), y[known], given | kept
