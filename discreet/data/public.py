"""What may be known about a table without reading a row; plans are made from this alone.

The one place that builds `Public`: from declarations alone, or from declarations and the shape of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.validation import bounds_from_rows, check_bounds
from discreet.privacy.relation import Relation


@dataclass(frozen=True, eq=False)
class Public:
    """What may be known without reading a row; plans are made from this alone.

    `rows` is the public number of rows to divide by; `low` and `high` are the declared limits of each
    column (or None), `target_low` and `target_high` those of a regression target.
    """

    rows: int
    columns: int
    relation: Relation = Relation.REPLACE
    low: FloatArray | None = None
    high: FloatArray | None = None
    target_low: float | None = None
    target_high: float | None = None
    sparse: bool = False
    streamed: bool = False  # whether the rows are read in blocks from where they are stored
    leaks: tuple[str, ...] = ()  # what the caller had read from the rows and now counts as public

    @property
    def bounded(self) -> bool:
        return self.low is not None

    @property
    def target_bounded(self) -> bool:
        return self.target_low is not None

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "columns": self.columns,
            "relation": str(self.relation),
            "low": None if self.low is None else self.low.tolist(),
            "high": None if self.high is None else self.high.tolist(),
            "target_low": self.target_low,
            "target_high": self.target_high,
            "sparse": self.sparse,
            "streamed": self.streamed,
            "leaks": list(self.leaks),
        }


def public_rows(relation: Relation, rows: int, public_n: int | None) -> int:
    """The number of rows that may be known: the true one, except under add/remove."""
    if relation is not Relation.ADD_REMOVE:
        if public_n is not None and public_n != rows:
            raise ValueError(f"public_n={public_n} differs from the {rows} rows; omit it or use add_remove.")
        return rows
    if public_n is None:
        raise ValueError('relation="add_remove" keeps the number of rows secret: pass a public estimate, public_n=.')
    if isinstance(public_n, bool) or int(public_n) != public_n or public_n < 1:
        raise ValueError(f"public_n must be a positive whole number; got {public_n!r}.")
    return int(public_n)


def describe(
    X: Any,
    y: Any,
    relation: Relation,
    bounds: Any,
    y_bounds: Any,
    public_n: int | None,
    regression: bool,
    leaks: Sequence[str] = (),
) -> Public:
    """The public facts of a validated table; bounds="data" is the only thing read from its rows."""
    rows, columns = X.shape
    leaks = list(leaks)
    if isinstance(bounds, str) and bounds == "data":
        limits: Any = bounds_from_rows(X)
        leaks.append("the bounds of the columns")
    else:
        limits = check_bounds(bounds, columns)
    low, high = limits if limits is not None else (None, None)
    if sp.issparse(X):
        check_sparse_bounds(low, high)
    target: Any = None
    if isinstance(y_bounds, str) and y_bounds == "data" and regression:
        target = bounds_from_rows(np.reshape(y, (-1, 1)), "y_bounds")
        leaks.append("the bounds of the target")
    elif regression:
        target = check_bounds(y_bounds, 1, "y_bounds")
    return Public(
        rows=public_rows(relation, rows, public_n),
        columns=columns,
        relation=relation,
        low=low,
        high=high,
        target_low=None if target is None else float(target[0][0]),
        target_high=None if target is None else float(target[1][0]),
        sparse=sp.issparse(X),
        leaks=tuple(leaks),
    )


def check_sparse_bounds(low: Any, high: Any) -> None:
    """Entries that are not stored are 0, so 0 must be within the bounds."""
    if low is not None and ((low > 0.0) | (high < 0.0)).any():
        raise ValueError("bounds of sparse columns must contain 0, the value of every entry that is not stored.")
