"""What a user may know beside the private rows: public coefficients, or a public table with the same columns.

Neither is protected. Whoever passes one says that it was not made from the private rows, or that it was released from
them with a guarantee of its own: docs/guarantees/public-inputs.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.table import Table
from discreet.data.validation import encode_labels, load_features

FEWEST_ROWS = 2  # of a public table: one row has no spread


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
        rows = load_features(X).X
        if rows.shape[0] < FEWEST_ROWS:
            raise ValueError(f"a public table needs at least {FEWEST_ROWS} rows.")
        if y is not None:
            y = _target(y, rows.shape[0])
        for name, value in {"X": rows.copy(), "y": y, "feature_names": _items(names)}.items():
            object.__setattr__(self, name, value)

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


def check_names(what: str, names: tuple[str, ...] | None, fitted: Any) -> None:
    """Refuse a public input whose columns have other names than those of the private table, where both have names."""
    if names is not None and fitted is not None and list(names) != [str(name) for name in fitted]:
        raise ValueError(f"the columns of {what} are not those of the private table, in that order.")


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
