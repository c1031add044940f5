"""Predictions for a Dask table, one partition at a time, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from discreet.data.loading import is_dask


def by_partition(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method that gives one result for each row give a Dask array for a Dask table; nothing is computed yet."""

    @wraps(method)
    def predict(self: Any, X: Any) -> Any:
        return _lazily(method, self, X) if is_dask(X) else method(self, X)

    return predict


def gathered(X: Any, y: Any) -> tuple[Any, Any]:
    """Features and targets in this process, where they are a Dask table."""
    return (X.compute() if is_dask(X) else X), (y.compute() if is_dask(y) else y)


def _lazily(method: Callable[[Any, Any], Any], model: Any, X: Any) -> Any:
    """One chunk of results for each partition; a table of two rows of made-up numbers tells what they are like."""
    import dask.array as da
    from dask import delayed

    frame = hasattr(X, "columns")
    if frame:
        from dask.dataframe.utils import meta_nonempty

        sample, sizes = meta_nonempty(X._meta), [np.nan] * X.npartitions
    else:
        X = X.rechunk({1: -1})
        sample, sizes = np.zeros((2, X.shape[1]), X.dtype), X.chunks[0]
    like = method(model, sample)[:0]
    fitted, compute = delayed(model), delayed(_rows)
    parts = [
        da.from_delayed(compute(method.__name__, fitted, part, like), (size, *like.shape[1:]), like.dtype)
        for part, size in zip(X.to_delayed().ravel() if not frame else X.to_delayed(), sizes, strict=True)
    ]
    return da.concatenate(parts)


def _rows(name: str, model: Any, part: Any, like: Any) -> Any:
    return getattr(model, name)(part) if len(part) else like
