"""The only room that meets raw input: it validates, and separates the rows from the public facts.

Everything after this module may rely on: finite numbers, matching lengths, weights in [0, 1], targets
encoded as the loss expects them. Nothing here is released, so nothing here needs noise; what is read from
the rows on request (bounds="data", classes=None) raises PrivacyLeakWarning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.exceptions import PrivacyLeakWarning
from discreet._common.types import FloatArray
from discreet.data.rows import Data

LARGEST_BOUND = 1e100  # beyond it squares of sums of entries could overflow
SMALLEST_BOUND = 1e-100  # below it their inverses could


def load(X: Any, y: Any, sample_weight: Any = None) -> Data:
    """Validate a table and an already encoded numeric target.

    X may be dense (any float or integer dtype, C or F order), SciPy sparse, or a pandas/Polars frame.
    """
    table = as_matrix(X)
    target = np.asarray(y, dtype=np.float64).ravel()
    if target.size != table.shape[0]:
        raise ValueError(f"y has {target.size} values but X has {table.shape[0]} rows; pass one value per row.")
    if not np.isfinite(target).all():
        raise ValueError("y contains NaN or infinity; remove or impute those rows first.")
    weight = None if sample_weight is None else check_weights(sample_weight, target.size)
    return Data(table, target, weight, owned=is_own_copy(X, table))


def huge_entries() -> Any:
    """Let scikit-learn's test for NaN, which adds all entries up, pass 1e308 on both sides (inf - inf) in silence."""
    return np.errstate(invalid="ignore")


def as_matrix(X: Any) -> Any:
    """X as a finite float32/float64 array or CSR/CSC matrix with at least one row and one column."""
    from sklearn.utils import check_array

    with huge_entries():
        table = check_array(X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), input_name="X")
    return canonical(table)


def canonical(table: Any) -> Any:
    """A sparse matrix with at most one stored value per entry, as every bound on rows assumes."""
    if not sp.issparse(table):
        return table
    # Rebuilt so that SciPy looks at the indices again: its cached answer survives edits of the arrays.
    table = type(table)((table.data, table.indices, table.indptr), shape=table.shape)
    if not table.has_canonical_format:
        table = table.copy()
        with np.errstate(over="ignore"):
            table.sum_duplicates()
        if not np.isfinite(table.data).all():
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
    weight = np.asarray(sample_weight, dtype=np.float64)
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


def check_bounds(bounds: Any, columns: int, name: str = "bounds") -> tuple[FloatArray, FloatArray] | None:
    """Declared bounds as two arrays of length `columns`: a pair (low, high) of scalars or arrays."""
    if bounds is None:
        return None
    try:
        low, high = bounds
        low = np.array(np.broadcast_to(np.asarray(low, dtype=np.float64), (columns,)))
        high = np.array(np.broadcast_to(np.asarray(high, dtype=np.float64), (columns,)))
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (low, high) of numbers or of arrays with {columns} entries; got {bounds!r}."
        ) from None
    largest = max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0))
    if not (np.isfinite(largest) and largest <= LARGEST_BOUND):
        raise ValueError(f"{name} must be finite and at most {LARGEST_BOUND:g} in absolute value.")
    span = np.maximum(np.abs(low), np.abs(high))
    if ((span > 0.0) & (span < SMALLEST_BOUND)).any() or ((high > low) & (high - low < SMALLEST_BOUND)).any():
        raise ValueError(f"{name} must not be closer together or to 0 than {SMALLEST_BOUND:g}; rescale the column.")
    if (low > high).any():
        column = int(np.argmax(low > high))
        raise ValueError(f"{name} has low > high in column {column} ({low[column]:g} > {high[column]:g}).")
    return low, high


def bounds_from_rows(X: Any, name: str = "bounds") -> tuple[FloatArray, FloatArray]:
    """The exact minima and maxima of the columns. Not private: asked for by bounds="data"."""
    warnings.warn(
        f'{name}="data" reads minima and maxima from the rows, which leaks them; pass ({name}=(low, high)) from '
        f"public knowledge, or {name}=None to learn scales privately.",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return (
        np.clip(np.atleast_1d(low).astype(np.float64), -LARGEST_BOUND, LARGEST_BOUND),
        np.clip(np.atleast_1d(high).astype(np.float64), -LARGEST_BOUND, LARGEST_BOUND),
    )
