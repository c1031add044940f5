"""The clipped gradient sum of a generalised linear model, with matrix products (dense or sparse).

The gradient of row i is slope_i times x_i (an outer product for several outputs), so clipping it to a norm
only rescales slope_i: no per-row gradient is ever stored.
Kernels count clipped numbers in units, so that sums of them are sums of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet._common.types import FloatArray

UNROUNDED = 2.0**-200  # a unit so small that rounding to multiples of it changes nothing


def units_of(clip: FloatArray, step: float) -> FloatArray:
    """In what numbers clipped to `clip` are counted: multiples of `step` times their threshold.

    A step of 0, for no noise, stands for no rounding; a threshold of 0 gives a unit that is not 0.
    """
    if step == 0.0:
        return np.full_like(clip, UNROUNDED)
    return np.maximum(clip * step, np.finfo(np.float64).tiny)


SMALLEST_NORM = 1e-150
# Of the factors that shorten gradients: below it a quotient has few digits and may be twice as large as it should be.
SMALLEST_FACTOR = 2.0**-1022
BLOCK_ENTRIES = 1 << 17  # of a table in single precision, widened at once


def row_norms(X: Any) -> FloatArray:
    """Euclidean norms of the rows, floored where the squares would underflow: a norm may never be understated."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    else:
        # Of a single row NumPy adds up more than 8192 squares in another order than of one of several.
        table = X if X.shape[0] != 1 else np.repeat(X, 2, axis=0)
        squares = np.einsum("ij,ij->i", table, table, dtype=np.float64)[: X.shape[0]]
    np.sqrt(squares, out=squares)
    return np.maximum(squares, SMALLEST_NORM, out=squares)


def mapped_row_norms(X: Any, matrix: FloatArray) -> FloatArray:
    """The same of the rows times a matrix; sparse rows in parts, as they are dense then."""
    squares, table = np.empty(X.shape[0]), X.tocsr() if sp.issparse(X) else X
    for rows in _blocks(X) if sp.issparse(X) else [slice(None)]:
        mapped = np.asarray(table[rows] @ matrix, dtype=np.float64)
        squares[rows] = np.einsum("ij,ij->i", mapped, mapped)
    np.sqrt(squares, out=squares)
    return np.maximum(squares, SMALLEST_NORM, out=squares)


def margins_of(X: Any, w: FloatArray) -> FloatArray:
    """X w' in double precision: (n,), or (n, outputs)."""
    if not _is_single(X):
        return np.asarray(X @ w.T)
    margins = np.empty((X.shape[0], *w.shape[:-1]))
    for rows in _blocks(X):
        margins[rows] = X[rows] @ w.T
    return margins


def margins_by_row(X: Any, w: FloatArray) -> FloatArray:
    """X w', each row by itself: a product of matrices would round a row differently in another batch."""
    if sp.issparse(X):
        return np.asarray(X @ w.T)
    from discreet.kernels.stochastic import fill_outputs

    weights = np.ascontiguousarray(np.atleast_2d(w))
    margins = np.empty((X.shape[0], weights.shape[0]))
    fill_outputs(np.ascontiguousarray(X), weights, margins)
    return margins[:, 0] if w.ndim == 1 else margins


def clipped_gradient_sum(
    X: Any, slopes: FloatArray, norms: FloatArray, clip: float, weight: FloatArray | None, step: float = 0.0
) -> FloatArray:
    """Sum over the rows of weight_i * clip(slope_i x_i, norm <= clip), each row rounded to multiples of the step.

    Guarantee: every row contributes a vector of norm at most weight_i * clip, whatever its slope, before it is
    rounded; a non-finite slope contributes nothing. The step must be a power of two, or 0 for no rounding.
    Returns (p,) or (outputs, p).
    """
    if step > 0.0:
        from discreet.kernels.grid_sums import rounded_row_sum

        return rounded_row_sum(X, clipped_slopes(slopes, norms, clip, weight), step)
    if not _is_single(X):
        return np.asarray(X.T @ clipped_slopes(slopes, norms, clip, weight)).T
    total = np.zeros((X.shape[1], *slopes.shape[1:]))
    for rows in _blocks(X):
        part = None if weight is None else weight[rows]
        total += X[rows].T @ clipped_slopes(slopes[rows], norms[rows], clip, part)
    return total.T


def clipped_slopes(slopes: FloatArray, norms: FloatArray, clip: float, weight: FloatArray | None) -> FloatArray:
    """Slopes shortened so that every row's gradient has norm at most clip, times the weights.

    0 if they are not finite, or so large that the factor would be below SMALLEST_FACTOR.
    """
    size = (np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)) * norms
    factor = np.where(np.isfinite(size), 1.0, 0.0)
    if np.isfinite(clip):
        quotient = clip / np.fmax(size, clip) if clip > 0.0 else np.zeros(size.shape)
        factor *= np.where(quotient >= SMALLEST_FACTOR, quotient, 0.0)
    if weight is not None:
        factor = factor * weight
    return (np.where(np.isfinite(slopes.T), slopes.T, 0.0) * factor).T


def _is_single(X: Any) -> bool:
    """NumPy would widen the whole table for a product with double-precision numbers: twice its memory."""
    return not sp.issparse(X) and X.dtype == np.float32


def _blocks(X: Any) -> Iterator[slice]:
    """The rows in blocks of a size that depends on the number of columns alone."""
    size = max(1, BLOCK_ENTRIES // X.shape[1])
    return (slice(start, start + size) for start in range(0, X.shape[0], size))
