"""Declared bounds of columns: as a pair of numbers or of sequences, or by name; every side may be left open.

Only declarations and the types of columns are looked at, never a value. An open side is infinite in the arrays that
come out, and the range of its column is learned.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import BoolArray, FloatArray
from discreet.data.table import Table
from discreet.data.validation import LARGEST_BOUND, SMALLEST_BOUND

Pair = tuple[FloatArray, FloatArray]


def check_bounds(
    bounds: Any, columns: int, name: str = "bounds", feature_names: Sequence[str] | None = None
) -> Pair | None:
    """Declared bounds as two arrays of length `columns`, infinite on open sides; None if all sides are open.

    `bounds` is a pair (low, high) of scalars or arrays, or a mapping from names of columns to pairs of numbers. None,
    NaN and an infinity of the right sign leave a side open.
    """
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        bounds = _by_name(bounds, columns, name, feature_names)
    try:
        low, high = _pair(bounds)
        low = np.array(np.broadcast_to(np.asarray(low, dtype=np.float64), (columns,)))
        high = np.array(np.broadcast_to(np.asarray(high, dtype=np.float64), (columns,)))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (low, high) of numbers or of arrays with {columns} entries, or pairs by name of "
            f"column; got {bounds!r}."
        ) from None
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    _check_sizes(low, high, name)
    return None if np.isinf(low).all() and np.isinf(high).all() else (low, high)


def _pair(ends: Any) -> Any:
    """Two ends; a text is no pair, though "12" has two letters that are numbers."""
    if isinstance(ends, str | bytes):
        raise TypeError("a text is not a pair.")
    return ends


def _check_sizes(low: FloatArray, high: FloatArray, name: str) -> None:
    ends = np.concatenate([low[low > -np.inf], high[high < np.inf]])
    if not (np.abs(ends) <= LARGEST_BOUND).all():
        raise ValueError(f"{name} must be finite and at most {LARGEST_BOUND:g} in absolute value, or None.")
    size = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high)))
    apart = np.subtract(high, low, out=np.full(low.size, np.inf), where=np.isfinite(low) & np.isfinite(high))
    if ((size > 0.0) & (size < SMALLEST_BOUND)).any() or ((apart > 0.0) & (apart < SMALLEST_BOUND)).any():
        raise ValueError(f"{name} must not be closer together or to 0 than {SMALLEST_BOUND:g}; rescale the column.")
    if (low > high).any():
        column = int(np.argmax(low > high))
        raise ValueError(f"{name} has low > high in column {column} ({low[column]:g} > {high[column]:g}).")


def check_complete_bounds(
    bounds: Any, columns: int, name: str = "bounds", feature_names: Sequence[str] | None = None
) -> Pair | None:
    """The same for those who cannot learn a range: both sides of all columns, or nothing at all."""
    declared = check_bounds(bounds, columns, name, feature_names)
    if declared is None and bounds is not None:
        declared = np.full(columns, -np.inf), np.full(columns, np.inf)
    if declared is not None:
        refuse_open_sides(*declared, name, feature_names)
    return declared


def refuse_open_sides(
    low: FloatArray, high: FloatArray, name: str = "bounds", feature_names: Sequence[str] | None = None
) -> None:
    """Refuse bounds that leave a side of a column open."""
    open_columns = np.flatnonzero(np.isinf(low) | np.isinf(high))
    if open_columns.size:
        first = int(open_columns[0])
        which = repr(str(feature_names[first])) if feature_names is not None else first
        raise ValueError(f"{name} must have both ends here, low and high; column {which} lacks one.")


def declared_bounds(
    bounds: Any, columns: int, feature_names: Sequence[str] | None = None, booleans: BoolArray | None = None
) -> Pair | None:
    """Declared bounds in which columns of type bool lie between 0 and 1, if they are not declared by name.

    `booleans` are told by the types of the columns (`boolean_columns`). A pair (low, high) is taken as it is.
    """
    declared = check_bounds(bounds, columns, "bounds", feature_names)
    if booleans is None or not (bounds is None or isinstance(bounds, Mapping)):
        return declared
    low, high = (np.full(columns, -np.inf), np.full(columns, np.inf)) if declared is None else declared
    free = booleans & np.isinf(low) & np.isinf(high)
    return np.where(free, 0.0, low), np.where(free, 1.0, high)


def boolean_columns(X: Any) -> BoolArray | None:
    """Which columns of a data frame or array have the type bool, a part of the schema; None if there is none.

    Columns of categories do not count: pandas takes their list of categories from the values.
    """
    if isinstance(X, np.ndarray):
        return np.ones(X.shape[1], dtype=bool) if X.dtype == bool and X.ndim > 1 else None
    kinds = getattr(X, "dtypes", None)
    if kinds is None or getattr(X, "columns", None) is None:
        return None
    flags = np.array([str(kind).lower() in _BOOLEAN for kind in kinds], dtype=bool)
    return flags if flags.any() else None


_BOOLEAN = ("bool", "boolean", "bool[pyarrow]", "sparse[bool, false]")


def names_of(X: Any) -> list[str] | None:
    """The names of the columns of a table, if it has names and all are texts."""
    names = X.names if isinstance(X, Table) else getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def _by_name(bounds: Mapping[Any, Any], columns: int, name: str, feature_names: Sequence[str] | None) -> Pair:
    """Two arrays from pairs by name; columns that are not named stay open."""
    if feature_names is None:
        raise ValueError(
            f"{name} by name needs columns with names: pass a data frame (plan: feature_names=), or {name}=(low, high)."
        )
    names = [str(column) for column in feature_names]
    if len(names) != columns:
        raise ValueError(f"feature_names has {len(names)} names, but the table has {columns} columns.")
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    for column, pair in bounds.items():
        if column not in names:
            near = difflib.get_close_matches(str(column), names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the first columns are {', '.join(names[:5])}."
            raise ValueError(f"{name} names the column {column!r}, which the table does not have; {hint}")
        try:
            ends = [np.nan if end is None else float(end) for end in _pair(pair)]
            low[names.index(column)], high[names.index(column)] = ends
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} of column {column!r} must be a pair (low, high) of numbers or None; got {pair!r}."
            ) from None
    return low, high


def clip_columns(X: Any, low: Any, high: Any) -> Any:
    """A table, dense or sparse, with every entry moved into the range of its column; X itself if no range has ends."""
    if np.isneginf(low).all() and np.isposinf(high).all():
        return X
    if not sp.issparse(X):
        return np.clip(X, low, high)
    clipped = sp.coo_array(X)
    clipped.data = np.clip(clipped.data, low[clipped.col], high[clipped.col])
    return clipped.tocsr()
