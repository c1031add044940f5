"""Histograms of binary exponents: plain counts of rows, before any noise, and what is read off noisy ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.moments import column
from discreet.data.rows import Data

LOWEST_EXPONENT, HIGHEST_EXPONENT = -64, 63


BINS = HIGHEST_EXPONENT - LOWEST_EXPONENT + 2  # the last bin counts the zeros


LARGEST_RADIUS = 2.0 ** (HIGHEST_EXPONENT + 1)  # stands for everything beyond the bins as well


SIGNED_BINS = 2 * BINS - 1  # negative numbers, zero, positive numbers, in the order of the real line


def exponent_counts(data: Data, groups: list[range], origin: FloatArray) -> FloatArray:
    """For each group of columns, the weighted number of rows by the binary exponent of their largest entry.

    Entries count by their distance from the public origin of their column, which is 0 in groups of several columns
    and in sparse tables.

    Every row adds its weight (at most 1) to exactly one bin of each group; exponents beyond the public
    range go to its ends, so that no value, however large, has a bin of its own.
    """
    counts = np.zeros((len(groups), BINS))
    X = sp.csc_array(data.X) if data.sparse else data.X
    for k, group in enumerate(groups):
        bins = _exponent_bins(_largest_per_row(X, data.y, group, origin))
        counts[k] = np.bincount(bins, weights=data.weight, minlength=BINS)
    return counts


def radius_of(noisy_counts: FloatArray, sure: float, doubtful: float = np.inf, tail: float = np.inf) -> float:
    """The upper end of the highest bin that stands out of the noise; 0 if none does.

    Where none does beyond doubt (`sure`), the fullest will do if it passes the lower level `doubtful`. Bins above it,
    without a gap, need to pass the level `tail` only.
    """
    counts = noisy_counts[:-1]
    visible = np.flatnonzero(counts > sure)
    if visible.size == 0:
        visible = np.flatnonzero((counts > doubtful) & (counts == counts.max()))
    if visible.size == 0:
        return 0.0
    beyond = np.append(counts[visible[-1] + 1 :], -np.inf)
    return upper_end(visible[-1] + int(np.argmax(beyond <= tail)))


def upper_end(place: int) -> float:
    """Where the bin at a place ends."""
    return float(2.0 ** (place + LOWEST_EXPONENT + 1))


def upper_octaves(noisy_counts: FloatArray, radius: float) -> float:
    """How many rows lie in the two octaves below the radius."""
    place = _place_of(radius)
    return float(noisy_counts[max(place - 1, 0) : place + 1].sum())


def lend_radii(radii: list[float], noisy_counts: FloatArray) -> list[float]:
    """Columns in which no bin stood out take, of the other columns' radii, the one whose bin is fullest in theirs.

    Most of such columns are indicators of something rare. Where the guess is wrong, entries are clipped or small, but
    never absurd: the radius is that of a column of the same table.
    """
    known = sorted({radius for radius in radii if radius > 0.0})
    if not known:
        return radii
    bins = np.array([_place_of(radius) for radius in known])
    fitting = bins[np.argmax(noisy_counts[:, bins], axis=1)]
    return [radius or upper_end(place) for radius, place in zip(radii, fitting, strict=True)]


def _place_of(radius: float) -> int:
    """The bin that ends at the radius."""
    return int(np.log2(radius)) - 1 - LOWEST_EXPONENT


def signed_exponent_counts(data: Data) -> FloatArray:
    """For each column, the weighted number of rows by the sign and the binary exponent of their entry.

    Every row adds its weight (at most 1) to exactly one bin of each column, as in `exponent_counts`.
    """
    p = data.X.shape[1]
    counts = np.zeros((p, SIGNED_BINS))
    X = sp.csc_array(data.X) if data.sparse else data.X
    for j in range(p):
        values = column(X, j)
        place = _exponent_bins(np.abs(values)) + 1  # 1 for the smallest magnitude, BINS for zero
        bins = np.where(values == 0.0, 0, np.sign(values).astype(np.int64) * place) + BINS - 1
        counts[j] = np.bincount(bins, weights=data.weight, minlength=SIGNED_BINS)
    return counts


def range_of(noisy_counts: FloatArray, threshold: float) -> tuple[float, float]:
    """From the lower end of the first signed bin that stands out of the noise to the upper end of the last.

    (0, 0) if none does.
    """
    visible = np.flatnonzero(noisy_counts > threshold) - (BINS - 1)
    if visible.size == 0:
        return 0.0, 0.0
    return 0.0 - _outer_end(-int(visible[0])), _outer_end(int(visible[-1]))


def _outer_end(place: int) -> float:
    """The end away from minus infinity of the signed bin at a place (0 holds zero, 1 the smallest magnitude)."""
    if place > 0:
        return float(2.0 ** (place + LOWEST_EXPONENT))
    return 0.0 if place == 0 else -float(2.0 ** (-place - 1 + LOWEST_EXPONENT))


def largest(data: Data, groups: list[range], origin: FloatArray) -> list[float]:
    """The largest distance from the origin in each group of columns. Not private: for infinite budgets only."""
    X = sp.csc_array(data.X) if data.sparse else data.X
    return [float(_largest_per_row(X, data.y, group, origin).max(initial=0.0)) for group in groups]


def _largest_per_row(X: Any, y: FloatArray, group: range, origin: FloatArray) -> FloatArray:
    """The distance from the origin of each row's entry in a group of columns: the largest one of several.

    X is dense or in compressed columns.
    """
    p = X.shape[1]
    if group.start >= p:
        return np.abs(y - origin[p])
    if sp.issparse(X):
        if len(group) == p:
            return np.asarray(abs(X).max(axis=1).toarray(), dtype=np.float64).ravel()
        magnitude = np.zeros(X.shape[0])
        stored = slice(X.indptr[group.start], X.indptr[group.start + 1])
        magnitude[X.indices[stored]] = np.abs(X.data[stored])
        return magnitude
    if len(group) == 1:
        return np.abs(X[:, group.start].astype(np.float64) - origin[group.start])
    return np.maximum(X.max(axis=1), -X.min(axis=1)).astype(np.float64)


def _exponent_bins(magnitude: FloatArray) -> npt.NDArray[np.int32]:
    bins = np.frexp(magnitude)[1] - np.int32(1)  # floor(log2) of a positive number
    np.clip(bins, LOWEST_EXPONENT, HIGHEST_EXPONENT, out=bins)  # in place, as this is the peak of the memory
    bins -= LOWEST_EXPONENT
    bins[magnitude == 0.0] = BINS - 1
    return bins
