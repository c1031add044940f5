"""The one door for rows: what is X, and what of it is public?

`load` decides once whether X is an array, a sparse matrix, a data frame or a table from a file, which are checked in
memory; a table that stays in its files or on the workers of a cluster, whose rows are read block by block; or a tensor
that stays on a GPU. Nothing is released here; what is read from the rows on request (`classes=None`) warns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from discreet._common.progress import progress_bar
from discreet._common.types import BoolArray
from discreet.data.invalid_rows import NEEDS_CLASSES, Target, codes_or_nan, label_target, read_rows, target_numbers
from discreet.data.public import Public, boolean_columns, names_of, public_facts
from discreet.data.rows import Data, Rows, is_tensor, on_host
from discreet.data.stored_table import StoredTable, features_of_dataset, table_of_dataset
from discreet.data.validation import (
    array_rows,
    as_numbers,
    classes_from_rows,
    declared_classes,
    encode_labels,
    is_neutral,
    keep_names,
    load_features,
    only_weights,
    persons_of,
    refuse_several_outputs,
    validate_features,
    validate_rows,
)

Kind = Literal["numbers", "labels"]
Entries = Literal["numbers", "gaps", "anything"]


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """Checked rows, and what is public of them beside their shape.

    `classes` are the sorted labels whose numbers stand in the rows' target, None if it is one of numbers. `booleans`
    says which columns have the type bool, `leaks` what was read from the rows without noise, `neutral` whether rows
    that cannot be read have become null rows.
    """

    rows: Rows
    names: Any = None
    booleans: BoolArray | None = None
    classes: Any = None
    leaks: tuple[str, ...] = ()
    neutral: bool = False

    @property
    def class_count(self) -> int:
        """The number of classes, 2 where the target is one of numbers."""
        return 2 if self.classes is None else len(self.classes)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights; where some may be null it does not matter whether one is."""
        return self.neutral or getattr(self.rows, "weight", None) is not None

    def public(self, **declared: Any) -> Public:
        """The public facts, with what the user declares of the rows, as `Public.of` takes it."""
        facts = {"feature_names": self.names, "booleans": self.booleans, "neutral": self.neutral} | declared
        return public_facts(self.rows, leaks=self.leaks, **facts)


def load(
    X: Any,
    y: Any = None,
    kind: Kind | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    classes: Any = None,
    estimator: Any = None,
    jobs: int = 1,
    memory_only: str | None = None,
    check: Callable[[Any], Any] | None = None,
    invalid_rows: str = "error",
    entries: Entries = "numbers",
) -> CheckedTable:
    """Check the rows of a fit wherever they lie, and encode their target.

    Parameters
    ----------
    X, y : Any
        What the user passed. Of a table in files or on a cluster y names the target's column.
    kind : {"numbers", "labels"}, optional
        What the target holds; None: there is none.
    metadata : dict, optional
        The other arguments of `fit`: `sample_weight` and `groups`.
    classes : sequence, optional
        The declared labels.
    estimator : object, optional
        Who is fitted: it gets `n_features_in_` and `feature_names_in_`.
    jobs : int, default=1
        Number of threads for sums over rows in memory.
    memory_only : str, optional
        With what error a table is refused whose rows are not in memory.
    check : callable, optional
        How a table in memory without a target is checked; by default all its entries must be finite numbers.
    invalid_rows : {"error", "neutral"}, default="error"
        Whether a row that cannot be read is refused, or becomes a null row.
    entries : {"numbers", "gaps", "anything"}, default="numbers"
        What entries of X in memory can be read then: finite numbers, also NaN, or anything.
    """
    given, neutral = dict(metadata or {}), is_neutral(invalid_rows)
    X, y = split_target(X, y)
    table = table_elsewhere(X, y, kind, classes, neutral)
    if table is not None:
        if memory_only is not None:
            raise ValueError(memory_only)
        return _stored(table, kind, given, classes, estimator, neutral)
    if kind is not None and on_gpu(X):
        if neutral:
            raise ValueError("invalid_rows='neutral' is for tables in the memory of the host; pass X.cpu().")
        return _on_gpu(X, y, kind, given, classes, estimator, jobs)
    how: dict[str, Any] = {"jobs": jobs, "check": check, "invalid_rows": invalid_rows, "entries": entries}
    return load_array(X, y, kind, given, classes=classes, estimator=estimator, **how)


def load_array(
    X: Any,
    y: Any = None,
    kind: Kind | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    classes: Any = None,
    estimator: Any = None,
    reset: bool = True,
    jobs: int = 1,
    check: Callable[[Any], Any] | None = None,
    invalid_rows: str = "error",
    entries: Entries = "numbers",
) -> CheckedTable:
    """The same for a table in memory; one that lies elsewhere is brought here, if NumPy can.

    Without `reset` the columns must be those that the estimator has seen before. Without an estimator `classes` are the
    numbers that a target may be.
    """
    given = dict(metadata or {})
    X, y = split_target(X, y)
    if is_neutral(invalid_rows):
        refuse_several_outputs(y)
        X, y, given = read_rows(X, y, given, _target_of(kind, classes, estimator), entries)
        how: dict[str, Any] = {"classes": classes, "estimator": estimator, "reset": reset, "jobs": jobs, "check": check}
        return replace(load_array(X, y, kind, given, **how), neutral=True)
    if estimator is None:
        weights = {"sample_weight": given.get("sample_weight")}
        data = load_features(X, **weights) if kind is None else array_rows(X, y, groups=given.get("groups"), **weights)
        return CheckedTable(replace(data, jobs=jobs), names_of(X), boolean_columns(X))
    if kind is None:
        table = validate_features(estimator, X, reset=reset) if check is None else check(X)
        target, owned, persons = np.zeros(table.shape[0]), False, None
        weight = only_weights(given, table.shape[0])
    else:
        if kind == "numbers":
            refuse_several_outputs(y)
        table, target, owned = validate_rows(estimator, X, y, numeric=kind == "numbers", reset=reset)
        weight, persons = only_weights(given, target.shape[0], groups=True), persons_of(given, target.shape[0])
    leaks: tuple[str, ...] = ()
    if kind == "labels":
        leaks = ("the classes",) if classes is None else ()
        classes = classes_from_rows(target, weight) if classes is None else declared_classes(classes)
        target = encode_labels(target, classes)
    data = Data(table, as_numbers(target), weight, owned, persons, jobs)
    return CheckedTable(data, getattr(estimator, "feature_names_in_", None), boolean_columns(X), classes, leaks)


def _target_of(kind: Kind | None, classes: Any, estimator: Any) -> Target | None:
    """How targets are read of which some cannot be."""
    if kind == "labels":
        if classes is None:
            raise ValueError(NEEDS_CLASSES)
        return label_target(declared_classes(classes))
    return None if kind is None else partial(target_numbers, allowed=classes if estimator is None else None)


def split_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Features and target of a data frame in memory of which y names the target's column; other tables as they are."""
    if isinstance(y, str) and isinstance(X, np.ndarray):
        raise ValueError("y names a column, but X has no names: pass a data frame, or the target itself.")
    if not isinstance(y, str) or is_dask(X) or not hasattr(X, "columns"):
        return X, y
    if y not in list(X.columns):
        near = get_close_matches(y, map(str, X.columns), n=1)
        raise ValueError(f"X has no column {y!r}" + (f"; did you mean {near[0]!r}?" if near else "."))
    polars = type(X).__module__.partition(".")[0] == "polars"
    return (X.drop(y) if polars else X.drop(columns=y)), X[y]


def table_elsewhere(
    X: Any, y: Any = None, kind: Kind | None = None, classes: Any = None, neutral: bool = False
) -> StoredTable | None:
    """X as a table that is read where it lies: on the workers of a cluster or in files; None if it is in memory.

    `y` names its target; where there is none (`kind` is None) all columns may be features. `neutral` says that rows
    which cannot be read become null rows, with the target 0 until another one is said.
    """
    table = _table_elsewhere(X, y, kind, classes, neutral)
    return replace(table, null=0.0, booleans=None) if neutral and table is not None else table


def _table_elsewhere(X: Any, y: Any, kind: Kind | None, classes: Any, neutral: bool) -> StoredTable | None:
    if is_dask(X):
        from discreet.data.distributed.dask_tables import table_of_dask

        if y is None and kind is not None:
            raise ValueError("y is missing: pass the name of the target's column, or a Dask series cut like X.")
        return table_of_dask(X, y, classes, neutral)
    if isinstance(X, (str, Path)):
        from discreet.data.parquet_table import dataset_of_files

        X = dataset_of_files(X)
    if is_dataset(X):
        if y is None and kind is None:
            return features_of_dataset(X)
        return table_of_dataset(X, y, classes)
    if isinstance(X, StoredTable) and y is not None and y != X.schema.target.name:
        raise ValueError(f"y names the column {y!r}, but the schema's target is {X.schema.target.name!r}.")
    return X if isinstance(X, StoredTable) else None


def _stored(
    table: StoredTable, kind: Kind | None, given: dict[str, Any], classes: Any, estimator: Any, neutral: bool
) -> CheckedTable:
    """The rows of a table that stays where it is stored; one pass checks all of them."""
    if kind == "labels" and classes is None:
        raise ValueError("a table that is read block by block needs classes=[...]: all labels that may occur.")
    if given.get("groups") is not None:
        raise ValueError("groups is for tables in memory; the rows of a person may lie in different blocks of a table.")
    if given.get("sample_weight") is not None:
        raise ValueError("sample_weight is for tables in memory; a table that is read block by block has none.")
    only_weights(given, 1)  # refuses arguments that no fit has
    labels = declared_classes(classes) if kind == "labels" else None
    encode = np.asarray if labels is None else partial(codes_or_nan if neutral else encode_labels, classes=labels)
    if neutral and labels is not None:
        table = replace(table, null=float(encode_labels(labels[:1], labels)[0]))
    with progress_bar("checking the rows", bool(getattr(estimator, "verbose", 0))) as progress:
        rows = table.encoded(encode, progress)
    names = table.names if table.named else None
    if estimator is not None:
        keep_names(estimator, len(table.names), names, reset=True)
    return CheckedTable(rows, names, table.booleans, labels, neutral=neutral)


def _on_gpu(X: Any, y: Any, kind: Kind, given: dict[str, Any], classes: Any, estimator: Any, jobs: int) -> CheckedTable:
    """The rows of a table that stays on a GPU; target and weights are checked beside a table of zeros."""
    from discreet.data.gpu_rows import GpuRows, check_tensor

    if given.get("groups") is not None:
        raise ValueError("groups is for tables in the memory of the host; pass X.cpu() with them.")
    table = check_tensor(X)
    others = {name: on_host(each) for name, each in given.items()}
    stand_in = np.broadcast_to(np.float64(0.0), (table.shape[0], 1))
    beside = load_array(stand_in, on_host(y), kind, others, classes=classes, estimator=estimator)
    keep_names(estimator, int(table.shape[1]), None, reset=True)
    host: Any = beside.rows
    return replace(beside, rows=GpuRows(table, host.y, host.weight, jobs))


def is_dask(X: Any) -> bool:
    """Whether X is a Dask data frame, series or array; imports nothing for those who have none."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_dataset(X: Any) -> bool:
    """Whether X is a `pyarrow.dataset.Dataset`; imports nothing for those who have none."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(X, module.Dataset)


def on_gpu(X: Any) -> bool:
    """Whether X is a tensor that NumPy cannot read where it lies."""
    return is_tensor(X) and X.device.type != "cpu"
