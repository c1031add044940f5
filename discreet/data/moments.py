"""First and second moments of clipped columns: plain sums over the rows, before any noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import BLOCK_ENTRIES, Data


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
    def known(self) -> npt.NDArray[np.bool_]:
        return self.radius > 0.0


def limits_between(low: FloatArray, high: FloatArray, sparse: bool = False) -> Limits:
    """Ranges with the middle as centre, so that the radius is small; zeros of sparse tables stay zeros."""
    centre = np.zeros_like(low) if sparse else low + 0.5 * (high - low)
    return Limits(low, high, centre, np.maximum(high - centre, centre - low))


def column(X: Any, j: int) -> FloatArray:
    """One column as a dense array; X is dense or in compressed columns."""
    if not sp.issparse(X):
        return np.asarray(X[:, j], dtype=np.float64)
    values = np.zeros(X.shape[0])
    stored = slice(X.indptr[j], X.indptr[j + 1])
    values[X.indices[stored]] = X.data[stored]
    return values


def moment_sums(data: Data, limits: Limits, measured: slice) -> FloatArray:
    """Weighted sums of u and u^2, u = (clip(x) - centre) / radius in [-1, 1], for the measured columns."""
    columns = range(*measured.indices(limits.size))
    sums = np.zeros((2, len(columns)))
    p = data.X.shape[1]
    weight = np.ones(data.rows) if data.weight is None else data.weight
    inside = [j for j in columns if j < p]
    if inside and data.sparse:
        sums[:, : len(inside)] = _sparse_moments(data.X, limits, weight)
    elif inside:
        sums[:, : len(inside)] = _dense_moments(data.X, limits, weight)
    if p in columns:
        u = _unit(data.y, limits, p)
        sums[:, -1] = weight @ u, weight @ u**2
    return sums


def _dense_moments(X: Any, limits: Limits, weight: FloatArray) -> FloatArray:
    p = X.shape[1]
    sums = np.zeros((2, p))
    block = max(1, BLOCK_ENTRIES // max(1, p))
    for start in range(0, X.shape[0], block):
        u = _unit(X[start : start + block].astype(np.float64), limits, slice(0, p))
        w = weight[start : start + block]
        sums[0] += w @ u
        sums[1] += w @ np.square(u, out=u)
    return sums


def _sparse_moments(X: Any, limits: Limits, weight: FloatArray) -> FloatArray:
    # Sparse columns are never centred, so a zero stays a zero and contributes nothing.
    entries = sp.coo_array(X)
    u = np.clip(entries.data, limits.low[entries.col], limits.high[entries.col])
    u = np.where(limits.known[entries.col], u / np.where(limits.known, limits.radius, 1.0)[entries.col], 0.0)
    w = weight[entries.row]
    p = X.shape[1]
    return np.stack([np.bincount(entries.col, w * u, minlength=p), np.bincount(entries.col, w * u**2, minlength=p)])


def _unit(values: FloatArray, limits: Limits, which: Any) -> FloatArray:
    known = limits.known[which]
    u = (np.clip(values, limits.low[which], limits.high[which]) - limits.centre[which]) / np.where(
        known, limits.radius[which], 1.0
    )
    return np.where(known, np.clip(u, -1.0, 1.0), 0.0)
