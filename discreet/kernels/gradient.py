"""The clipped gradient sum of a generalised linear model, with matrix products (dense or sparse).

The gradient of row i is slope_i times x_i (an outer product for several outputs), so clipping it to a norm
only rescales slope_i: no per-row gradient is ever stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]
SMALLEST_NORM = 1e-150


def row_norms(X: Any) -> FloatArray:
    """Euclidean norms of the rows, floored where the squares would underflow: a norm may never be understated."""
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    else:
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.maximum(np.sqrt(squares), SMALLEST_NORM)


def clipped_gradient_sum(
    X: Any, slopes: FloatArray, norms: FloatArray, clip: float, weight: FloatArray | None
) -> FloatArray:
    """Sum over the rows of weight_i * clip(slope_i x_i, norm <= clip).

    Guarantee: every row contributes a vector of norm at most weight_i * clip, whatever its slope; a
    non-finite slope contributes nothing. Returns (p,) or (outputs, p).
    """
    size = (np.abs(slopes) if slopes.ndim == 1 else np.linalg.norm(slopes, axis=1)) * norms
    factor = np.where(np.isfinite(size), 1.0, 0.0)
    if np.isfinite(clip):
        factor *= clip / np.fmax(size, clip)
    if weight is not None:
        factor = factor * weight
    kept = np.where(np.isfinite(slopes.T), slopes.T, 0.0) * factor
    return np.asarray((X.T @ kept.T).T)
