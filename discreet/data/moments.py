"""First and second moments of clipped columns: plain sums over the rows, before any noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import BoolArray, FloatArray
from discreet.data.rows import TERM_STEP, Data, Rows, on_term_grid, piece_slices, takes_tensors
from discreet.kernels.small_rows import is_small

OnGrid = Callable[[FloatArray], FloatArray]  # rounds terms before they are added


@dataclass(frozen=True, eq=False)
class Limits:
    """Where each column is clipped, and the centre and radius of that range (radius 0: nothing known)."""

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    radius: FloatArray

    @property
    def size(self) -> int:
        return self.radius.size

    @property
    def known(self) -> BoolArray:
        return self.radius > 0.0


def limits_between(low: FloatArray, high: FloatArray, sparse: bool = False) -> Limits:
    """Ranges with the middle as centre, so that the radius is small; zeros of sparse tables stay zeros."""
    centre = np.zeros_like(low) if sparse else low + 0.5 * (high - low)
    return Limits(low, high, centre, np.maximum(high - centre, centre - low))


def moment_sums(rows: Rows, limits: Limits, measured: slice, *, rounded: bool = True) -> FloatArray:
    """Weighted sums of u and u^2, u = (clip(x) - centre) / radius in [-1, 1], for the measured columns.

    The target counts as one more column, after the last one. Every weighted term is rounded to multiples of
    `TERM_STEP`, so the sums are exact; without noise nothing need be rounded.
    """
    on_grid = on_term_grid if rounded else np.asarray
    return rows.sum(partial(_block_sums, limits=limits, measured=measured, on_grid=on_grid))


@takes_tensors
def _block_sums(data: Data, limits: Limits, measured: slice, on_grid: OnGrid) -> FloatArray:
    columns = range(*measured.indices(limits.size))
    sums = np.zeros((2, len(columns)))
    weight = np.ones(data.rows) if data.weight is None else data.weight
    inside = [j for j in columns if j < data.columns]
    if inside and data.on_device:
        sums[:, : len(inside)] = _tensor_sums(data, limits, TERM_STEP if on_grid is on_term_grid else 0.0)
    elif inside and data.sparse:
        sums[:, : len(inside)] = _sparse_sums(data.X, limits, weight, on_grid)
    elif inside and data.weight is None and on_grid is on_term_grid and not is_small(*data.X.shape):
        sums[:, : len(inside)] = _rounded_sums(data.X, limits)
    elif inside:
        for part in piece_slices(data.rows, data.columns):
            u = _unit(data.X[part], limits, slice(0, data.columns))
            terms = np.stack([u, u**2]) * weight[part, None]
            sums[:, : len(inside)] += on_grid(terms).sum(axis=1)
    if data.columns in columns:
        u = _unit(data.y, limits, data.columns)
        sums[:, -1] = on_grid(weight * u).sum(), on_grid(weight * u**2).sum()
    return sums


def _rounded_sums(X: Any, limits: Limits) -> FloatArray:
    """The sums over dense rows that all count the same, compiled."""
    from discreet.kernels.column_sums import add_moments, tiled_columns

    p = X.shape[1]
    tiled = tiled_columns(limits.low[:p], limits.high[:p], limits.centre[:p], limits.radius[:p])
    sums = np.zeros((2, tiled.shape[1]))
    add_moments(np.ravel(X), tiled, TERM_STEP, sums)
    return np.asarray(sums.reshape(2, -1, p).sum(axis=1) * TERM_STEP)


def _tensor_sums(data: Data, limits: Limits, step: float) -> FloatArray:
    """The sums over rows on a GPU, computed there."""
    from discreet.kernels.tensors import moment_sums as tensor_moments

    p = data.columns
    low, high, centre, radius = limits.low[:p], limits.high[:p], limits.centre[:p], limits.radius[:p]
    return np.asarray(tensor_moments(data.X, low, high, centre, radius, data.weight, step))


def _sparse_sums(X: Any, limits: Limits, weight: FloatArray, on_grid: OnGrid) -> FloatArray:
    # Sparse columns are never centred, so a zero stays a zero and contributes nothing.
    entries = sp.coo_array(X)
    u = np.clip(entries.data, limits.low[entries.col], limits.high[entries.col])
    u = np.where(limits.known[entries.col], u / np.where(limits.known, limits.radius, 1.0)[entries.col], 0.0)
    w = weight[entries.row]
    p = X.shape[1]
    terms = (on_grid(w * u), on_grid(w * u**2))
    return np.stack([np.bincount(entries.col, term, minlength=p) for term in terms])


def _unit(values: Any, limits: Limits, which: Any) -> FloatArray:
    """(clip(x) - centre) / radius in [-1, 1]; 0 for a column of which nothing is known."""
    bounded = limits.known[which]
    # A copy in column order: the inner loops of NumPy then run along the rows, which are many.
    u = np.array(values, dtype=np.float64, order="F")
    np.maximum(u, limits.low[which], out=u)
    np.minimum(u, limits.high[which], out=u)
    u -= limits.centre[which]
    u /= np.where(bounded, limits.radius[which], 1.0)
    np.clip(u, -1.0, 1.0, out=u)
    u *= bounded
    return u


def column(X: Any, j: int) -> FloatArray:
    """One column as a dense array; X is dense or in compressed columns."""
    if not sp.issparse(X):
        return np.asarray(X[:, j], dtype=np.float64)
    values = np.zeros(X.shape[0])
    stored = slice(X.indptr[j], X.indptr[j + 1])
    values[X.indices[stored]] = X.data[stored]
    return values
