"""A table in memory, and the checks of it; `discreet.data.loading` is where they come in.

Everything after them may rely on: finite numbers, matching lengths, weights in [0, 1], targets
encoded as the loss expects them. Nothing here is released, so nothing here needs noise; what is read from
the rows on request (bounds="data", classes=None) raises PrivacyLeakWarning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.callers import warn
from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import FloatArray, IntArray
from discreet.data.people import person_numbers
from discreet.data.rows import Data, Rows, on_host

LARGEST_BOUND = 1e100  # beyond it squares of sums of entries could overflow
SMALLEST_BOUND = 1e-100  # below it their inverses could

# What the numbers of a table may be; single precision stays, so that large tables need not be copied.
_NUMBERS: dict[str, Any] = {"dtype": (np.float64, np.float32)}
_SPARSE = ("csr", "csc")
TEXT = "X or y holds text where numbers are expected; encode columns of text first, as DeclaredOneHotEncoder does."
# Neither an imputer that learns from the rows without noise nor a number of rows that depends on entries keeps it.
NOT_FINITE = {
    "X": "X contains NaN or infinity: fill such entries by a public rule (DeclaredImputer) or privately "
    '(PrivateImputer) in a pipeline before the model; a fit with invalid_rows="neutral" takes such rows as empty ones.',
    "y": 'y contains NaN or infinity; a fit with invalid_rows="neutral" takes such rows as empty ones.',
}
DATES = "holds dates or times: make them numbers by a public rule, such as days since 2020-01-01."
NO_TARGET = "the fit requires y to be passed, but the target y is None: fit(X, y), where y may name a column of X."
COMPLEX = "Complex data not supported: X and y must hold real numbers."
MIXED = "y holds labels of another kind than the classes of the model: texts beside numbers."


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file as numbers: features, their names, and the target (None if it was not asked for).

    Estimators take it as X, and learn the names of the features from it.
    """

    X: FloatArray
    names: list[str]
    y: Any = None

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    def map_target(self, convert: Callable[[Any], Any]) -> Table:
        """The same table with another target, value by value."""
        return replace(self, y=convert(self.y))

    def sum_of_targets(self, part: Callable[[Any], FloatArray]) -> FloatArray:
        """What the part gives for the target."""
        return part(self.y)

    def check(self) -> None:
        """Nothing to do: the file was checked when it was read."""


def array_rows(X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Data:
    """Validated rows in memory with an already encoded numeric target, and the ids of the rows' persons.

    X may be dense (any float or integer dtype, C or F order), SciPy sparse, or a pandas/Polars frame.
    """
    data = load_features(X, sample_weight)
    target = as_numbers(y).ravel()
    if target.size != data.rows:
        raise ValueError(f"y has {target.size} values but X has {data.rows} rows; pass one value per row.")
    if not np.isfinite(target).all():
        raise ValueError(NOT_FINITE["y"])
    return replace(data, y=target, persons=persons_of({"groups": groups}, data.rows))


def load_features(X: Any, sample_weight: Any = None) -> Data:
    """Validate a table without a target: at least one row and one column, finite numbers; the target is all zeros."""
    from sklearn.utils import check_array

    refuse_dates(X)
    with no_entry_shown():
        rows = X.X if isinstance(X, Table) else X
        table = canonical(check_array(rows, accept_sparse=_SPARSE, input_name="X", **_NUMBERS))
    weight = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
    return Data(table, np.zeros(table.shape[0]), weight, owned=is_own_copy(X, table))


def validate_features(estimator: Any, X: Any, *, reset: bool, sparse: bool = True, missing: bool = False) -> Any:
    """The table of an estimator's `fit` (reset) or `predict`: its columns must be those of the fit.

    Sets or checks `n_features_in_` and `feature_names_in_`, as scikit-learn does. NaN is allowed where values may be
    missing.
    """
    from sklearn.utils.validation import validate_data

    if isinstance(X, Table):
        keep_names(estimator, len(X.names), X.names, reset)
        return X.X
    if isinstance(X, (str, Path)):
        raise ValueError("X must be a table, and not the name of one; read it first, or call discreet predict.")
    refuse_duplicate_names(X)
    refuse_dates(X)
    with no_entry_shown():
        gaps = {"ensure_all_finite": "allow-nan"} if missing else {}
        table = validate_data(
            estimator, on_host(X), accept_sparse=_SPARSE if sparse else False, reset=reset, **gaps, **_NUMBERS
        )
    return canonical(table)


def validate_values(estimator: Any, X: Any, *, reset: bool) -> Any:
    """The same for a table of values of any kind, missing ones included, as encoders of categories take it."""
    from sklearn.utils.validation import validate_data

    refuse_duplicate_names(X)
    return validate_data(estimator, X, dtype=object, ensure_all_finite=False, reset=reset)


def validate_rows(estimator: Any, X: Any, y: Any, *, numeric: bool, reset: bool) -> tuple[Any, Any, bool]:
    """The table and the target of an estimator's `fit`, and whether the table is a copy that nobody else can see.

    Labels are not encoded yet; a numeric target is an array of numbers.
    """
    from sklearn.utils.validation import validate_data

    if isinstance(X, Table):
        keep_names(estimator, len(X.names), X.names, reset)
        table, target = X.X, np.asarray(X.y if y is None else y)
    elif y is None:
        raise ValueError(NO_TARGET)
    else:
        refuse_duplicate_names(X)
        refuse_dates(X)
        refuse_dates(y, "y")
        with no_entry_shown():
            table, target = validate_data(
                estimator, X, y, accept_sparse=_SPARSE, y_numeric=numeric, reset=reset, **_NUMBERS
            )
    return canonical(table), target, is_own_copy(X, table)


@contextmanager
def no_entry_shown(text: str = TEXT) -> Iterator[None]:
    """Keep checks from telling of single entries.

    scikit-learn's test for NaN, a sum of all entries, warns of huge ones of both signs (inf - inf), and its refusals of
    complex numbers and of labels of two kinds show the table. NumPy quotes the first text that is no number. What
    scikit-learn advises about NaN would void the guarantee.
    """
    try:
        with np.errstate(invalid="ignore"):
            yield
    except TypeError as error:  # names the type of an entry, as Python does
        if any(word in str(error).lower() for word in ("date", "timestamp", "time")):
            raise ValueError(f"a column of X {DATES}") from None
        raise
    except ValueError as error:
        told = str(error)
        known = {"could not convert": text, "Complex data": COMPLEX, "Mix of label": MIXED}
        for start, instead in (known | {f"Input {name} contains": told for name, told in NOT_FINITE.items()}).items():
            if start in told:
                raise ValueError(instead) from None
        raise


def as_numbers(values: Any, text: str = TEXT) -> FloatArray:
    """Values as an array of numbers; where there is text, the error says so and does not quote it."""
    with no_entry_shown(text):
        return np.asarray(values, dtype=np.float64)


def refuse_dates(values: Any, what: str = "X") -> None:
    """Refuse columns of dates and times, which NumPy would turn into nanoseconds; told by types, no entry is read."""
    kinds = getattr(values, "dtypes", None)
    columns = getattr(values, "columns", None)
    if kinds is None or columns is None:
        kinds, columns = [getattr(values, "dtype", None)], [None]
    for name, kind in zip(columns, kinds, strict=True):
        if str(kind).lower().startswith(("datetime", "timedelta", "date", "duration", "timestamp", "time", "period")):
            told = what if name is None else f"column {name!r} of {what}"
            raise ValueError(f"{told} {DATES}")


def refuse_duplicate_names(X: Any) -> None:
    """Two columns of one name cannot be told apart."""
    names = getattr(X, "columns", None)
    if names is not None and len(set(names)) != len(names):
        raise ValueError("X has duplicate column names; rename them so that each column is unambiguous.")


def keep_names(estimator: Any, columns: int, names: Sequence[str] | None, reset: bool) -> None:
    """What scikit-learn does with the number and the names of columns, for a table that it does not know."""
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = columns
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    elif names is not None and [*getattr(estimator, "feature_names_in_", names)] != [*names]:
        raise ValueError("the columns of the table are not those that the model was trained on, in that order.")
    elif estimator.n_features_in_ != columns:
        raise ValueError(f"X has {columns} columns, but the model was trained on {estimator.n_features_in_}.")


def canonical(table: Any, finite: bool = True) -> Any:
    """A sparse matrix with at most one stored value per entry, as every bound on rows assumes.

    Sums of values that were stored for one entry must be `finite`, unless the caller looks at them.
    """
    if not sp.issparse(table):
        return table
    # Rebuilt so that SciPy looks at the indices again: its cached answer survives edits of the arrays.
    table = type(table)((table.data, table.indices, table.indptr), shape=table.shape)
    if not table.has_canonical_format:
        table = table.copy()
        with np.errstate(over="ignore"):
            table.sum_duplicates()
        if finite and not np.isfinite(table.data).all():
            raise ValueError("X holds entries stored several times whose sum is infinite; sum them before fitting.")
    return table


def is_own_copy(original: Any, table: Any) -> bool:
    """Whether validation made a copy that nobody else can see; in doubt, not."""
    if sp.issparse(table):
        return False
    if isinstance(original, np.ndarray):
        return not np.shares_memory(original, table)
    if type(original).__module__.split(".")[0] not in ("pandas", "polars"):
        return False
    return bool(table.flags.writeable and table.flags.owndata)


def check_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    """Weights must lie in [0, 1], since a weight above 1 would let a row count more than once.

    All ones are the same as no weights at all.
    """
    weight = as_numbers(sample_weight, "sample_weight holds text where numbers are expected.")
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}; pass one weight per row ({rows}).")
    if not (np.isfinite(weight).all() and (weight >= 0.0).all() and (weight <= 1.0).all()):
        raise ValueError(
            "sample_weight must lie in [0, 1]: a larger weight would let one row count more than once and break "
            "the guarantee; divide the weights by their public maximum."
        )
    return weight


def only_weights(metadata: dict[str, Any], rows: int, groups: bool = False) -> FloatArray | None:
    """The checked sample weights among the arguments of fit; anything else is a mistake, unless `groups` may be one."""
    arguments = {"sample_weight", "groups"} if groups else {"sample_weight"}
    unknown = set(metadata) - arguments
    if unknown:
        allowed = "X, y, sample_weight and groups" if groups else "X, y and sample_weight"
        raise TypeError(f"fit got an unexpected argument {sorted(unknown)[0]!r}; it takes {allowed}.")
    weight = metadata.get("sample_weight")
    return None if weight is None else check_weights(weight, rows)


def refuse_groups(metadata: dict[str, Any], what: str) -> None:
    """Refuse ids of persons where only rows are protected."""
    if metadata.get("groups") is not None:
        raise ValueError(
            f"{what} protects single rows alone: leave groups out, or use fit(X, y, groups=ids) of a model."
        )


def persons_of(metadata: dict[str, Any], rows: int) -> IntArray | None:
    """The numbers of the rows' persons among the arguments of fit; None if each row is a person of its own."""
    groups = metadata.get("groups")
    return None if groups is None else person_numbers(groups, rows)


def refuse_several_outputs(y: Any) -> None:
    """One model predicts one number; the shape of y is public."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns: fit one model for each of them, with epsilon / {shape[1]} and "
            f"delta / {shape[1]} each, so that all together keep the budget."
        )


def is_neutral(invalid_rows: Any) -> bool:
    """Whether rows that cannot be read count as null rows; any other value than the two that exist is refused."""
    if not isinstance(invalid_rows, str) or invalid_rows not in ("error", "neutral"):
        raise ValueError(f"invalid_rows must be 'error' or 'neutral'; got {invalid_rows!r}.")
    return invalid_rows == "neutral"


def declared_classes(classes: Any) -> Any:
    """The declared labels, sorted."""
    distinct = np.unique(np.asarray(classes))
    if distinct.size < 2:
        raise ValueError(f"classes must hold at least two labels; got {classes!r}.")
    return distinct


def classes_from_rows(labels: Any, weight: FloatArray | None) -> Any:
    """The labels that occur among rows that count. Not private: asked for by classes=None."""
    from sklearn.utils.multiclass import check_classification_targets

    with warnings.catch_warnings():
        # scikit-learn warns of many distinct labels, which tells their number. Declared labels are never looked at so.
        warnings.simplefilter("ignore")
        check_classification_targets(labels)
    classes = np.unique(labels if weight is None else labels[weight > 0.0])
    if classes.size < 2:
        raise ValueError(
            f"y contains one class only{' among rows of positive sample_weight' if weight is not None else ''}; "
            "pass classes=[...] with every label that may occur."
        )
    warn(
        "the classes were read from y, which reveals them; pass classes=[...] if the set of labels is not public.",
        PrivacyLeakWarning,
    )
    return classes


def encode_labels(labels: Any, classes: Any) -> FloatArray:
    """Labels as the losses expect them: -1 and +1 for two classes, else the number of the class."""
    try:
        codes = np.searchsorted(classes, labels)
        declared = classes[np.minimum(codes, classes.size - 1)] == labels
    except TypeError:
        declared = np.zeros(1, dtype=bool)
    if not np.all(declared):
        raise ValueError(
            f"y holds labels that are not in classes={classes.tolist()}; declare every label that may occur."
        )
    return 2.0 * codes - 1.0 if classes.size == 2 else codes.astype(np.float64)


def bounds_from_rows(rows: Rows, name: str = "bounds") -> tuple[FloatArray, FloatArray]:
    """The exact minima and maxima of the columns, or of the target. Not private: asked for by bounds="data"."""
    warn(
        f'{name}="data" reads minima and maxima from the rows, which leaks them; pass ({name}=(low, high)) from '
        f"public knowledge, or {name}=None to learn scales privately.",
        PrivacyLeakWarning,
    )
    below, high = rows.max(ends_of_columns if name == "bounds" else _ends_of_target)
    low = -below
    low, high = (np.where(np.abs(end) < SMALLEST_BOUND, 0.0, end) for end in (low, high))
    return low, np.where(high - low < SMALLEST_BOUND, low, high)


def ends_of_columns(block: Data) -> FloatArray:
    low, high = column_ends(block.X)
    return np.stack([-low, high])


def _ends_of_target(block: Data) -> FloatArray:
    low, high = column_ends(block.y[:, None])
    return np.stack([-low, high])


def column_ends(X: Any) -> tuple[FloatArray, FloatArray]:
    """The exact minima and maxima of the columns. Not private."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    ends = (np.asarray(end, dtype=np.float64) for end in (low, high))
    low, high = (np.clip(end, -LARGEST_BOUND, LARGEST_BOUND) for end in ends)
    return low, high


def check_sparse_bounds(low: FloatArray, high: FloatArray) -> None:
    """Entries that are not stored are 0, so 0 must be within the bounds."""
    if ((low > 0.0) | (high < 0.0)).any():
        raise ValueError("bounds of sparse columns must contain 0, the value of every entry that is not stored.")
