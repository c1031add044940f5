"""What a noisy iteration asks the rows, and the usual question: a sum over the rows, each of them clipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet._common.checks import LARGEST_THRESHOLD, SMALLEST_THRESHOLD, number_in
from discreet._common.types import FloatArray, IntArray

Terms = Callable[[FloatArray, IntArray], FloatArray]


class Query(Protocol):
    """The part of an operator that reads the rows.

    It may keep a memory of each row, such as the dual variables of ADMM, if the memory of a row is a function of that
    row and of the iterates alone.
    """

    def __call__(self, u: FloatArray, entries: IntArray, step: float) -> FloatArray:
        """Return the exact answer for some entries of the state, in their order.

        Parameters
        ----------
        u : ndarray of shape (size,)
            The current iterate, which has been released.
        entries : ndarray of int
            The entries of the active blocks, block after block.
        step : float
            The answer is released as a multiple of this number. A sum over rows is exact in any order if each row's
            term is rounded to a multiple first; 0: no noise, and nothing is rounded.
        """
        ...


def clipped_rows(terms: Terms, clip: float) -> Query:
    """Return the query that sums the terms of the rows, each clipped to a Euclidean norm and rounded to the grid.

    Parameters
    ----------
    terms : callable
        terms(u, entries) returns an array of shape (rows, number of entries), the term of each row. A row's term must
        depend on that row and on u alone.
    clip : float
        The norm; an iteration that declares a smaller `contribution` refuses the query.

    Guarantee: a row adds a vector of norm at most `clip`, before it is rounded, whatever its term is; one that is not
    finite adds nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.solvers.fixed_point import clipped_rows
    >>> X = np.array([[3.0, 4.0], [0.3, 0.4]])
    >>> query = clipped_rows(lambda u, entries: X[:, entries], clip=1.0)
    >>> query(np.zeros(2), np.array([0, 1]), 0.0).round(2).tolist()
    [0.9, 1.2]
    """
    return ClippedRows(terms, number_in("clip", clip, SMALLEST_THRESHOLD, LARGEST_THRESHOLD))


@dataclass(frozen=True)
class ClippedRows:
    """The query that `clipped_rows` returns."""

    terms: Terms
    clip: float

    def __call__(self, u: FloatArray, entries: IntArray, step: float) -> FloatArray:
        each, clip = np.array(self.terms(u, entries), dtype=np.float64), self.clip
        if each.ndim != 2 or each.shape[1] != entries.size:
            raise ValueError(f"terms must return one row of {entries.size} numbers per row, got shape {each.shape}.")
        each[~np.isfinite(each).all(axis=1)] = 0.0
        largest = np.abs(each).max(axis=1, initial=0.0)  # squares of tiny or huge numbers would leave the range
        each *= (np.minimum(largest, clip) / np.where(largest > 0.0, largest, 1.0))[:, None]
        each *= (clip / np.fmax(np.linalg.norm(each, axis=1), clip))[:, None]
        return (np.rint(each / step) * step if step > 0.0 else each).sum(axis=0)
