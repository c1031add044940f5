"""Arithmetic on arrays that losses, penalties and sets share; it must hold for numbers of any size."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Values = npt.ArrayLike


def floats(values: Values) -> Array:
    """Double precision, whatever the input; no copy if it is so already."""
    return np.asarray(values, dtype=np.float64)


def extended_sum(terms: Array) -> float:
    """Sum in which one +inf decides, so that an overflow of the other sign does not turn it into NaN."""
    with np.errstate(over="ignore"):
        return math.inf if np.isposinf(terms).any() else float(terms.sum())


def direction_and_norm(v: Array) -> tuple[Array, float]:
    """Unit vector and norm, scaled by the largest entry first so that squares do not overflow or vanish."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest in (0.0, math.inf):
        return np.zeros_like(v), largest
    scaled = v / largest
    norm = float(np.sqrt((scaled * scaled).sum()))
    return scaled / norm, largest * norm
