"""What a user may know beside the private rows: public coefficients, or a public table with the same columns.

Neither is protected. Whoever passes one says that it was not made from the private rows, or that it was released from
them with a guarantee of its own: docs/guarantees/public-inputs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.validation import Table, column_ends, encode_labels, load_features

FEWEST_ROWS = 2  # of a public table: one row has no spread
MOST_WORK = 10_000  # of the search for shared memory, which is hard for some views


@dataclass(frozen=True, eq=False, repr=False)
class PublicModel:
    """Public coefficients to start from, in the columns of the private table.

    Guarantee: none. The coefficients are taken as public: they must not come from the private rows, unless a private
    fit released them, whose own cost counts beside that of the new fit.

    Parameters
    ----------
    coef : array of shape (n_features,) or (n_classes, n_features)
        Coefficients; one row per class for more than two classes.
    intercept : float or array of shape (n_classes,), default=0.0
        Intercept.
    classes : sequence, optional
        The sorted labels that the coefficients were fitted for; an estimator with others refuses the model.
    feature_names : sequence of str, optional
        Names of the columns; an estimator that is fitted on other names refuses the model.

    Examples
    --------
    >>> from discreet import LogisticRegression, PublicModel
    >>> start = PublicModel(coef=[0.5, -1.0], intercept=0.2)
    >>> LogisticRegression(start=start).plan(n_samples=1000, n_features=2).public.start.coef.tolist()
    [0.5, -1.0]
    """

    coef: FloatArray
    intercept: Any = 0.0
    classes: tuple[Any, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        coef = np.array(self.coef, dtype=np.float64)
        intercept = np.array(self.intercept, dtype=np.float64)
        if coef.ndim == 2 and coef.shape[0] == 1:
            coef, intercept = coef[0], intercept.reshape(-1)
        if coef.ndim not in (1, 2) or coef.size == 0:
            raise ValueError(f"coef of a public model must have one or two dimensions; its shape is {coef.shape}.")
        if coef.ndim == 1 and intercept.size == 1:
            intercept = intercept.reshape(())
        if coef.ndim == 2 and intercept.ndim == 0:
            intercept = np.full(coef.shape[0], float(intercept))
        if intercept.shape != coef.shape[:-1]:
            raise ValueError("a public model needs one intercept per row of its coefficients.")
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("a public model must have finite coefficients and intercept.")
        _check_name_count(self.feature_names, coef.shape[-1])
        settled = {"coef": coef, "intercept": intercept, "classes": _items(self.classes)}
        for name, value in (settled | {"feature_names": _items(self.feature_names)}).items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, model: Any) -> PublicModel:
        """Return the coefficients of a fitted linear model of scikit-learn or discreet.

        Parameters
        ----------
        model : object
            With `coef_` and `intercept_`; `classes_` and `feature_names_in_`, if it has them, are kept and checked.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import Ridge
        >>> from discreet import PublicModel
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> PublicModel.of(Ridge(alpha=1e-9).fit(X, [1.0, 3.0, 5.0])).coef.round(6).tolist()
        [2.0]
        """
        if not hasattr(model, "coef_"):
            raise ValueError(f"{type(model).__name__} has no coef_: pass a linear model that has been fitted.")
        names = getattr(model, "feature_names_in_", None)
        return cls(model.coef_, getattr(model, "intercept_", 0.0), getattr(model, "classes_", None), names)

    @property
    def columns(self) -> int:
        return int(self.coef.shape[-1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicModel):
            return NotImplemented
        same = np.array_equal(self.coef, other.coef) and np.array_equal(self.intercept, other.intercept)
        return same and self.classes == other.classes and self.feature_names == other.feature_names

    __hash__ = None  # type: ignore[assignment]  # arrays are compared, not hashed

    def __repr__(self) -> str:
        return f"PublicModel({self.columns} columns)"

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON values."""
        fields = {"coef": self.coef.tolist(), "intercept": self.intercept.tolist()}
        return fields | {"classes": _list(self.classes), "feature_names": _list(self.feature_names)}


@dataclass(frozen=True, eq=False, repr=False)
class PublicTable:
    """A public table with the columns of the private one: scales, metric and, with a target, a start come from it.

    Guarantee: none. The table is taken as public: none of its rows may be a private one.

    Parameters
    ----------
    X : array, sparse matrix or table of shape (n_rows, n_features)
        Public rows; finite numbers.
    y : array of shape (n_rows,), optional
        Their targets or labels.
    feature_names : sequence of str, optional
        Names of the columns, if X has none; an estimator that is fitted on other names refuses the table.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import LogisticRegression, PublicTable
    >>> rng = np.random.default_rng(0)
    >>> public = PublicTable(rng.normal(size=(200, 3)), rng.integers(0, 2, 200))
    >>> plan = LogisticRegression(public_table=public).plan(n_samples=1000, n_features=3)
    >>> plan.scaling_plan.method
    'public'
    """

    X: Any
    y: Any = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        X: Any = self.X
        y, names = self.y, self.feature_names
        if isinstance(X, Table):
            X, y, names = X.X, X.y if y is None else y, X.names if names is None else names
        elif names is None:
            columns = getattr(X, "columns", None)
            names = None if columns is None or not all(isinstance(name, str) for name in columns) else columns
        rows = _features(X)
        _check_name_count(names, rows.shape[1])
        if rows.shape[0] < FEWEST_ROWS:
            raise ValueError(f"a public table needs at least {FEWEST_ROWS} rows.")
        if y is not None:
            y = _target(y, rows.shape[0])
        for name, value in {"X": rows.copy(), "y": y, "feature_names": _items(names)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_given", X)  # to be told from the private rows; not a part of copies and pickles

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_given": None}

    def is_made_of(self, X: Any) -> bool:
        """Whether the table was made from this very object, or from the same memory; no entry is read."""
        given = self.__dict__.get("_given")
        if given is None:
            return False
        ours, theirs = (array.data if sp.issparse(array) else array for array in (given, X))
        if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
            return given is X
        try:
            return bool(np.shares_memory(ours, theirs, max_work=MOST_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return False

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        return int(self.X.shape[1])

    def coded(self, classes: Any) -> PublicTable:
        """The same table with labels as the losses expect them."""
        if self.y is None:
            return self
        try:
            return replace(self, y=encode_labels(self.y, np.asarray(classes)))
        except ValueError:
            raise ValueError(
                f"the public table holds labels that are not in classes={np.asarray(classes).tolist()}; leave those "
                "rows out."
            ) from None

    def __repr__(self) -> str:
        return f"PublicTable({self.rows} rows, {self.columns} columns, {'with' if self.y is not None else 'no'} target)"


def refuse_private_rows(table: PublicTable | None, X: Any) -> None:
    """Refuse a public table that is the private one, as far as this can be seen without reading a row."""
    if table is not None and table.is_made_of(X):
        raise ValueError("public_table holds the private rows themselves; pass public rows, or no public_table.")


def check_overlap(table: PublicTable, low: FloatArray | None, high: FloatArray | None, target: Any) -> None:
    """Refuse declared bounds of columns, or of the target, outside which all values of the public table lie."""
    again = "check their units and the order of the columns"
    if low is not None and high is not None:
        least, most = column_ends(table.X)
        apart = np.flatnonzero((most < low) | (least > high))
        if apart.size:
            which = apart[0] if table.feature_names is None else repr(table.feature_names[apart[0]])
            raise ValueError(f"all values of column {which} of public_table lie outside its bounds; {again}.")
    if target is not None and table.y is not None and table.y.dtype.kind in "fiu":
        (lower,), (upper,) = target
        if table.y.max() < lower or table.y.min() > upper:
            raise ValueError("all targets of public_table lie outside y_bounds; check their units.")


def check_names(what: str, names: tuple[str, ...] | None, fitted: Any) -> None:
    """Refuse a public input whose columns have other names than those of the private table, where both have names."""
    if names is None or fitted is None:
        return
    pairs = zip_longest(map(str, names), map(str, fitted))
    differs = next(((own, other) for own, other in pairs if own != other), None)
    if differs is not None:
        raise ValueError(
            f"{what} must have the same columns in the same order as the private table; the first that differs is "
            f"{differs[0]!r} / {differs[1]!r}."
        )


def _check_name_count(names: Any, columns: int) -> None:
    if names is not None and len(names) != columns:
        raise ValueError(f"feature_names has {len(names)} names for {columns} columns; pass one name per column.")


def _features(X: Any) -> Any:
    """The checked entries of a public table."""
    try:
        return load_features(X).X
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        raise ValueError("the public table contains NaN; remove those rows or fill them in.") from None


def _target(y: Any, rows: int) -> Any:
    target = np.array(y).ravel()
    if target.size != rows:
        raise ValueError(f"y of a public table has {target.size} values for {rows} rows; pass one value per row.")
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise ValueError("y of a public table contains NaN or infinity; remove those rows first.")
    return target


def _items(values: Any) -> tuple[Any, ...] | None:
    """A sequence as a tuple of plain values."""
    return None if values is None else tuple(value.item() if hasattr(value, "item") else value for value in values)


def _list(values: tuple[Any, ...] | None) -> list[Any] | None:
    return None if values is None else list(values)
