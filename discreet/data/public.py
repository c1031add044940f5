"""What may be known about a table without reading a row; plans are made from this alone.

Declared bounds are a pair of numbers or of sequences, or go by name; every side may be left open, is then infinite in
the arrays, and the range of its column is learned. Declarations and the types of columns are looked at, never a value.
`Public.of` is the one place that builds the facts from declarations; `public_facts` adds the shape of a table, and its
exact bounds where the caller asks for them in spite of the leak.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import BoolArray, FloatArray
from discreet.data.composites import leaks_of_callers
from discreet.data.public_inputs import check_overlap
from discreet.data.rows import Data
from discreet.data.validation import LARGEST_BOUND, SMALLEST_BOUND, Table, bounds_from_rows, check_sparse_bounds
from discreet.privacy.relation import Relation, Unit, relation_from

if TYPE_CHECKING:
    from discreet.data.public_inputs import PublicModel, PublicTable
    from discreet.data.rows import Rows

Pair = tuple[FloatArray, FloatArray]
MOST_ROWS = 1_024  # of a person that are used: more would tell little, and rounding of each must stay far below noise


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


@dataclass(frozen=True, eq=False)
class Public:
    """What may be known without reading a row; plans are made from this alone.

    `rows` is the public number of rows to divide by; `low` and `high` are the declared limits of each
    column, infinite on sides that are open (None if all are), `target_low` and `target_high` those of a regression
    target. `start` and `table` are inputs that the caller takes as public; the labels of the table are coded as the
    loss expects them.
    """

    rows: int
    columns: int
    relation: Relation = Relation.REPLACE
    low: FloatArray | None = None
    high: FloatArray | None = None
    target_low: float | None = None
    target_high: float | None = None
    sparse: bool = False
    stored: bool = False  # whether the rows are read in blocks from where they are stored
    leaks: tuple[str, ...] = ()  # what the caller had read from the rows and now counts as public
    # A plan without public inputs keeps the digest that it had before there were any.
    start: PublicModel | None = field(default=None, metadata={"digest": "if given"})
    table: PublicTable | None = field(default=None, metadata={"digest": "if given"})
    # Whether columns with the bounds 0 and 1 are treated as all others, so that their number does not decide a plan.
    narrows_indicators: bool | None = field(default=None, metadata={"digest": "if given"})
    # Whether the guarantee is for persons, who may have several rows: `rows` then counts persons.
    persons: bool | None = field(default=None, metadata={"digest": "if given"})
    rows_per_person: int | None = field(
        default=None, metadata={"digest": "if given"}
    )  # at most; None: up to the solver
    # Whether rows that cannot be read count as null rows.
    neutral: bool | None = field(default=None, metadata={"digest": "if given"})

    @classmethod
    def of(
        cls,
        rows: int,
        columns: int,
        *,
        relation: str | Relation = Relation.REPLACE,
        bounds: Any = None,
        y_bounds: Any = None,
        public_n: int | None = None,
        sparse: bool = False,
        leaks: Sequence[str] = (),
        stored: bool = False,
        start: PublicModel | None = None,
        table: PublicTable | None = None,
        feature_names: Sequence[str] | None = None,
        booleans: BoolArray | None = None,
        persons: bool = False,
        rows_per_person: int | None = None,
        neutral: bool = False,
    ) -> Public:
        """The public facts that declarations make of a table of this shape; refuses declarations that contradict.

        Parameters
        ----------
        rows, columns : int
            The shape of the table; under add/remove the number of rows is not used.
        relation : Relation or str
            Which tables count as neighbours.
        bounds, y_bounds : (low, high), optional
            Declared limits of the columns, also by name, and of a regression target.
        public_n : int, optional
            The public number of rows, required under add/remove.
        sparse : bool
            Whether entries that are not stored are zeros.
        leaks : sequence of str
            What was read from the rows to make these declarations.
        stored : bool
            Whether the rows are read in blocks from where they are stored.
        start, table : PublicModel and PublicTable, optional
            Inputs that are taken as public; the labels of the table are coded.
        feature_names : sequence of str, optional
            Names of the columns, for bounds by name.
        booleans : array of bool, optional
            Which columns have the type bool and so lie between 0 and 1, unless (low, high) says otherwise.
        persons : bool
            Whether `rows` and `public_n` count persons, who may have several rows each.
        rows_per_person : int, optional
            The most rows of a person that are used.
        neutral : bool
            Whether rows that cannot be read count as null rows.
        """
        if rows_per_person is not None:
            _check_rows_per_person(rows_per_person, persons)
        for what, given in (("start", start), ("public_table", table)):
            if given is not None and given.columns != columns:
                raise ValueError(f"{what} has {given.columns} columns, but the private table has {columns}.")
        kind = relation_from(relation)
        low, high = declared_bounds(bounds, columns, feature_names, booleans) or (None, None)
        target = check_complete_bounds(y_bounds, 1, "y_bounds")
        if table is not None:
            check_overlap(table, low, high, target)
        if sparse and low is not None and high is not None:
            check_sparse_bounds(low, high)
        return cls(
            rows=_public_rows(kind, rows, public_n),
            columns=columns,
            relation=kind,
            low=low,
            high=high,
            target_low=None if target is None else float(target[0][0]),
            target_high=None if target is None else float(target[1][0]),
            sparse=sparse,
            leaks=tuple(leaks),
            stored=stored,
            start=start,
            table=table,
            persons=persons or None,
            rows_per_person=rows_per_person,
            neutral=neutral or None,
        )

    @property
    def unit(self) -> Unit:
        """What one neighbouring table differs in: a row, or a person with all of their rows."""
        return "person" if self.persons else "row"

    @property
    def rounded_rows(self) -> int:
        """How many rows of a person may be rounded, one by one, in a sum over rows."""
        return self.rows_per_person or MOST_ROWS if self.persons else 1

    @property
    def declared(self) -> BoolArray:
        """Which columns have both ends declared."""
        if self.low is None or self.high is None:
            return np.zeros(self.columns, dtype=bool)
        return np.isfinite(self.low) & np.isfinite(self.high)

    @property
    def bounded(self) -> bool:
        """Whether all columns have both ends declared."""
        return self.low is not None and bool(self.declared.all())

    @property
    def partly_bounded(self) -> bool:
        """Whether bounds are declared, but not all."""
        return self.low is not None and not self.bounded

    def complete_bounds(self, feature_names: Sequence[str] | None = None) -> tuple[FloatArray, FloatArray]:
        """The declared bounds, for those who cannot learn a range; refuses an open side."""
        if self.low is None or self.high is None:
            raise ValueError("bounds is missing; pass (low, high) for every column.")
        refuse_open_sides(self.low, self.high, "bounds", feature_names)
        return self.low, self.high

    @property
    def target_bounded(self) -> bool:
        return self.target_low is not None

    @property
    def has_start(self) -> bool:
        """Whether coefficients to start from are given, or can be fitted on the public table."""
        return self.start is not None or (self.table is not None and self.table.y is not None)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What was taken as public beside the declarations, in words for statements."""
        inputs = []
        if self.start is not None:
            inputs.append("the coefficients from which the fit started")
        if self.table is not None:
            target = "" if self.table.y is None else " and their targets"
            inputs.append(f"a second table, of {self.table.rows:,} rows{target}")
        return tuple(inputs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "columns": self.columns,
            "relation": str(self.relation),
            "low": _open_as_none(self.low),
            "high": _open_as_none(self.high),
            "target_low": self.target_low,
            "target_high": self.target_high,
            "sparse": self.sparse,
            "stored": self.stored,
            "leaks": list(self.leaks),
            "public_inputs": list(self.inputs),
            "unit": self.unit,
            **({"invalid_rows": "neutral"} if self.neutral else {}),
        }


def _open_as_none(ends: FloatArray | None) -> list[float | None] | None:
    """Bounds as JSON values, None on open sides."""
    return None if ends is None else [end if math.isfinite(end) else None for end in ends.tolist()]


def public_facts(
    data: Rows,
    *,
    relation: str | Relation = Relation.REPLACE,
    bounds: Any = None,
    y_bounds: Any = None,
    public_n: int | None = None,
    leaks: Sequence[str] = (),
    start: PublicModel | None = None,
    table: PublicTable | None = None,
    feature_names: Sequence[str] | None = None,
    booleans: BoolArray | None = None,
    rows_per_person: int | None = None,
    neutral: bool = False,
) -> Public:
    """The public facts of validated rows: their shape and what was declared about them.

    Not private: bounds="data" and y_bounds="data" read exact minima and maxima from the rows, and what of scikit-learn
    called the fit may have read more; `leaks` then names it.
    """
    named = [*leaks, *leaks_of_callers()]
    if isinstance(bounds, str) and bounds == "data":
        bounds = bounds_from_rows(data)
        named.append("the bounds of the columns")
    if isinstance(y_bounds, str) and y_bounds == "data":
        y_bounds = bounds_from_rows(data, "y_bounds")
        named.append("the bounds of the target")
    persons = isinstance(data, Data) and data.persons is not None
    return Public.of(
        data.units if isinstance(data, Data) else data.rows,
        data.columns,
        relation=relation,
        bounds=bounds,
        y_bounds=y_bounds,
        public_n=public_n,
        sparse=data.sparse,
        leaks=named,
        stored=not data.in_memory,
        start=start,
        table=table,
        feature_names=feature_names,
        booleans=booleans,
        persons=persons,
        rows_per_person=rows_per_person,
        neutral=neutral,
    )


def _public_rows(relation: Relation, rows: int, public_n: int | None) -> int:
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


def _check_rows_per_person(rows_per_person: Any, persons: bool) -> None:
    """Refuse a number of rows of a person that is not whole and positive, too large, or given without persons."""
    whole = isinstance(rows_per_person, (int, np.integer)) and not isinstance(rows_per_person, bool)
    if not whole or not 1 <= rows_per_person <= MOST_ROWS:
        raise ValueError(f"rows_per_person must be a whole number from 1 to {MOST_ROWS}; got {rows_per_person!r}.")
    if not persons:
        raise ValueError("rows_per_person is for rows with ids: pass fit(X, y, groups=ids), or leave it out.")
