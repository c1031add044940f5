"""Rows of a table for compiled loops, dense or compressed: their products with weights, and sums of their multiples.

`rows` is (table,) or, of compressed rows, (indptr, columns, values); Numba compiles a loop for each of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba.extending import overload

from discreet.kernels.lanes import dot, sparse_dot

_OPTIONS = {"error_model": "numpy", "forceinline": True}


def arrays_of(X: Any) -> tuple[Any, ...]:
    """The rows of a matrix as the loops take them."""
    return (X.indptr, X.indices, X.data) if sp.issparse(X) else (X,)


def margin_of(rows, i, w):
    """The product of row i with the weights."""


@overload(margin_of, jit_options=_OPTIONS)
def _margin_of(rows, i, w):
    if len(rows) == 1:
        return lambda rows, i, w: dot(rows[0][i], w)
    return lambda rows, i, w: sparse_dot(rows[2], rows[1], rows[0][i], rows[0][i + 1], w)


def add_rounded(rows, i, factor, sums):
    """Add row i times a factor, every entry rounded to an integer, to the sums."""


@overload(add_rounded, jit_options=_OPTIONS)
def _add_rounded(rows, i, factor, sums):
    def of_table(rows, i, factor, sums):
        row = rows[0][i]
        for j in range(sums.size):
            sums[j] += np.rint(factor * row[j])

    def of_compressed(rows, i, factor, sums):
        starts, columns, values = rows
        for q in range(starts[i], starts[i + 1]):
            sums[columns[q]] += np.rint(factor * values[q])

    return of_table if len(rows) == 1 else of_compressed
