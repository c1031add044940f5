"""Histograms of binary exponents: plain counts of rows, before any noise, and what is read off noisy ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet._common.types import FloatArray
from discreet.data.rows import Data, Rows, column, exact_weights, on_term_grid, piece_slices, takes_tensors
from discreet.kernels.small_rows import is_small

LOWEST_EXPONENT, HIGHEST_EXPONENT = -64, 63  # numbers beyond 5e-20 and 2e19 count as these
BINS = HIGHEST_EXPONENT - LOWEST_EXPONENT + 2  # the last bin counts the zeros
LARGEST_RADIUS = 2.0 ** (HIGHEST_EXPONENT + 1)  # stands for everything beyond the bins as well
SIGNED_BINS = 2 * BINS - 1  # negative numbers, zero, positive numbers, in the order of the real line


def exponent_counts(rows: Rows, groups: list[range], origin: FloatArray) -> FloatArray:
    """For each group of columns, the weighted number of rows by the binary exponent of their largest entry.

    Entries count by their distance from the public origin of their column, which is 0 in groups of several columns
    and in sparse tables. The target counts as one more column, after the last one.

    Every row adds its weight (at most 1) to exactly one bin of each group; exponents beyond the public
    range go to its ends, so that no value, however large, has a bin of its own.
    """
    return rows.sum(partial(_exponent_counts, groups=groups, origin=origin))


@takes_tensors
def _exponent_counts(block: Data, groups: list[range], origin: FloatArray) -> FloatArray:
    if block.on_device:
        return _tensor_counts(block, groups, origin)
    if not block.sparse and not is_small(*block.X.shape) and _one_per_column(groups, block.columns):
        return _column_counts(block, len(groups) > block.columns, origin)
    if not block.sparse:
        return _dense_counts(block, partial(_bins_of_distances, groups=groups, origin=origin), BINS)
    X = sp.csc_array(block.X)  # column by column: a dense copy of all of them may not fit into memory
    found = (exponent_bins(_largest_per_row(X, block.y, group, origin)) for group in groups)
    return np.stack([_counts(bins[:, None], block.weight, BINS)[0] for bins in found])


def _one_per_column(groups: list[range], columns: int) -> bool:
    return groups[:columns] == [range(j, j + 1) for j in range(columns)]


def _column_counts(block: Data, target: bool, origin: FloatArray) -> FloatArray:
    """One histogram for each dense column, compiled, and one for the target."""
    from discreet.kernels.histograms import add_exponents

    p, weight = block.columns, exact_weights(block.weight)
    counts = np.zeros((p + target, BINS))
    weights = np.empty(0) if weight is None else weight
    add_exponents(block.X, origin[:p], weights, LOWEST_EXPONENT, HIGHEST_EXPONENT, counts)
    if target:
        counts[p] = _counts(exponent_bins(np.abs(block.y - origin[p]))[:, None], block.weight, BINS)[0]
    return counts


def _tensor_counts(block: Data, groups: list[range], origin: FloatArray) -> FloatArray:
    """The same on the device on which the columns lie; the target is on the host."""
    from discreet.kernels.tensors import exponent_counts

    inner, weight = [group for group in groups if group.start < block.columns], exact_weights(block.weight)
    counts = exponent_counts(block.X, inner, origin, weight, LOWEST_EXPONENT, HIGHEST_EXPONENT)
    if len(inner) == len(groups):
        return counts
    target = exponent_bins(np.abs(block.y - origin[block.columns]))
    return np.concatenate([counts, _counts(target[:, None], block.weight, BINS)])


def radius_of(noisy_counts: FloatArray, sure: float, windows: Sequence[float] = (), tail: float = np.inf) -> float:
    """The upper end of the highest bin that stands out of the noise; 0 if none does.

    Where none does beyond doubt (`sure`), the clearest run of adjacent bins will do if it passes its level; `windows`
    holds one level for each length. Bins above, without a gap, need to pass the level `tail` only; see `end_of_bulk`.
    """
    counts = noisy_counts[:-1]
    visible = np.flatnonzero(counts > sure)
    last = int(visible[-1]) if visible.size else clearest_window(counts, windows)[2]
    return upper_end(end_of_bulk(counts, last, windows, tail)) if last >= 0 else 0.0


def end_of_bulk(counts: FloatArray, last: int, windows: Sequence[float], tail: float) -> int:
    """The last bin of the bulk, which is lengthened while the next bin passes the level `tail`.

    Or while the next few bins together pass their level of `windows`: a long tail has few rows in each.
    """
    while last + 1 < counts.size:
        sums = np.cumsum(counts[last + 1 : last + 1 + max(len(windows), 1)])
        clear = np.flatnonzero(sums[: len(windows)] > np.asarray(windows[: sums.size]))
        if sums[0] > tail:
            last += 1
        elif clear.size:
            last += int(clear[0]) + 1
        else:
            break
    return last


def clearest_window(counts: FloatArray, levels: Sequence[float]) -> tuple[float, int, int]:
    """The run of adjacent bins whose sum exceeds the level for its length by the largest factor.

    Returns that factor, the first bin and the last; (0, -1, -1) where no run passes its level.
    """
    below = np.concatenate([[0.0], np.cumsum(counts)])
    best = (0.0, -1, -1)
    for length, level in enumerate(levels, 1):
        ratios = (below[length:] - below[:-length]) / level
        first = int(np.argmax(ratios))
        if ratios[first] > max(1.0, best[0]):
            best = (float(ratios[first]), first, first + length - 1)
    return best


def upper_end(place: int) -> float:
    """Where the bin at a place ends."""
    return float(2.0 ** (place + LOWEST_EXPONENT + 1))


def upper_octaves(noisy_counts: FloatArray, radius: float) -> float:
    """How many rows lie in the two octaves below the radius."""
    place = _place_of(radius)
    return float(noisy_counts[max(place - 1, 0) : place + 1].sum())


def nearest(noisy_counts: FloatArray, radius: float, level: float, zeros: float) -> float:
    """The lower end of the lowest bin that passes the level, of those below the two octaves below the radius.

    0 if the bin of zeros passes a level of its own; infinite if none passes.
    """
    if noisy_counts[-1] > zeros:
        return 0.0
    visible = np.flatnonzero(noisy_counts[: max(_place_of(radius) - 1, 0)] > level)
    return 0.5 * upper_end(int(visible[0])) if visible.size else math.inf


def fill_missing_radii(radii: list[float], noisy_counts: FloatArray) -> list[float]:
    """Columns in which no bin stood out take, of the other columns' radii, the one whose bin is fullest in theirs.

    Most of such columns are indicators of something rare. Where the guess is wrong, entries are clipped or small, but
    never out of proportion: the radius is that of a column of the same table.
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


def relative_counts(rows: Rows, origin: FloatArray, unit: FloatArray) -> FloatArray:
    """The weighted number of rows by the binary exponent of their largest distance from the origin, in units.

    Each column has its own public unit; a column of infinite unit takes no part. One histogram, of shape (1, bins);
    every row adds its weight to exactly one bin, as in `exponent_counts`.
    """
    return rows.sum(partial(_relative_counts, origin=origin, unit=unit))


def _relative_counts(block: Data, origin: FloatArray, unit: FloatArray) -> FloatArray:
    if not block.sparse:

        def bins_of(X: Any, _: FloatArray) -> npt.NDArray[np.int32]:
            with np.errstate(over="ignore"):
                distances = np.abs(X.astype(np.float64) - origin[: unit.size]) / unit
            return exponent_bins(np.minimum(distances.max(axis=1, initial=0.0), LARGEST_RADIUS))[:, None]

        return _dense_counts(block, bins_of, BINS)
    with np.errstate(over="ignore"):
        relative = sp.csr_array(abs(sp.csr_array(block.X, dtype=np.float64)).multiply(1.0 / unit[None, :]))
    farthest = np.asarray(relative.max(axis=1).toarray()).ravel()
    return _counts(exponent_bins(np.minimum(farthest, LARGEST_RADIUS))[:, None], block.weight, BINS)


def signed_target_counts(rows: Rows) -> FloatArray:
    """The weighted number of rows by the sign and the binary exponent of their target, of shape (1, bins)."""
    return rows.sum(_signed_target_counts)


@takes_tensors
def _signed_target_counts(block: Data) -> FloatArray:
    return _counts(signed_bins(block.y[:, None]), block.weight, SIGNED_BINS)


def signed_exponent_counts(rows: Rows, columns: list[int] | None = None) -> FloatArray:
    """For each of these columns (None: all), the weighted number of rows by sign and binary exponent of their entry.

    Every row adds its weight (at most 1) to exactly one bin of each column, as in `exponent_counts`.
    """
    return rows.sum(partial(_signed_counts, columns=columns))


def _signed_counts(block: Data, columns: list[int] | None) -> FloatArray:
    which = slice(None) if columns is None else columns
    if not block.sparse:
        return _dense_counts(block, lambda X, _: signed_bins(X[:, which].astype(np.float64)), SIGNED_BINS)
    X = sp.csc_array(block.X)
    found = (signed_bins(column(X, j)[:, None]) for j in (range(block.columns) if columns is None else columns))
    return np.concatenate([_counts(bins, block.weight, SIGNED_BINS) for bins in found])


def signed_bins(values: FloatArray) -> npt.NDArray[np.int64]:
    """The bin of each number by its sign and its binary exponent, in the order of the real line."""
    place = exponent_bins(np.abs(values)) + 1  # 1 for the smallest magnitude, BINS for zero
    return np.where(values == 0.0, 0, np.sign(values).astype(np.int64) * place) + BINS - 1


def signed_ends() -> FloatArray:
    """The ends of the signed bins; that of zero lies between the two smallest numbers."""
    positive = 2.0 ** np.arange(LOWEST_EXPONENT, HIGHEST_EXPONENT + 2)
    return np.concatenate([-positive[::-1], positive])


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


def largest(rows: Rows, groups: list[range], origin: FloatArray) -> list[float]:
    """The largest distance from the origin in each group of columns. Not private: for infinite budgets only."""
    return [float(each) for each in rows.max(partial(_largest_per_group, groups=groups, origin=origin))]


def _largest_per_group(block: Data, groups: list[range], origin: FloatArray) -> FloatArray:
    X = sp.csc_array(block.X) if block.sparse else block.X
    return np.array([_largest_per_row(X, block.y, group, origin).max(initial=0.0) for group in groups])


def _bins_of_distances(X: Any, y: FloatArray, groups: list[range], origin: FloatArray) -> npt.NDArray[np.int32]:
    """The bin of each row's distance from the origin in each group of columns, dense: (rows, groups)."""
    distances = map(partial(_largest_per_row, X, y, origin=origin), groups)
    return exponent_bins(np.column_stack(list(distances)))


def _largest_per_row(X: Any, y: FloatArray, group: range, origin: FloatArray) -> FloatArray:
    """The same for one group, the largest of several entries; X is dense or in compressed columns."""
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


def _dense_counts(block: Data, bins_of: Callable[[Any, FloatArray], npt.NDArray[Any]], size: int) -> FloatArray:
    """The counts of a dense block, piece by piece, as bin numbers take several times the memory of the entries."""
    total: Any = 0.0
    for part in piece_slices(block.rows, block.columns):
        weight = None if block.weight is None else block.weight[part]
        total = total + _counts(bins_of(block.X[part], block.y[part]), weight, size)
    return np.asarray(total)


def _counts(bins: npt.NDArray[Any], weight: FloatArray | None, size: int) -> FloatArray:
    """For each column of bin numbers, the weighted number of rows in each of `size` bins: exact sums."""
    columns = bins.shape[1]
    places = (bins + size * np.arange(columns, dtype=np.int64)).ravel()  # one row of bins after the other
    each = None if weight is None else np.repeat(on_term_grid(weight), columns)
    return np.bincount(places, weights=each, minlength=columns * size).astype(np.float64).reshape(columns, size)


def exponent_bins(magnitude: FloatArray) -> npt.NDArray[np.int32]:
    """The bin of each number by its binary exponent; zeros are in the last one."""
    bins = np.frexp(magnitude)[1] - np.int32(1)  # floor(log2) of a positive number
    np.clip(bins, LOWEST_EXPONENT, HIGHEST_EXPONENT, out=bins)  # in place, as this is the peak of the memory
    bins -= LOWEST_EXPONENT
    bins[magnitude == 0.0] = BINS - 1
    return bins
