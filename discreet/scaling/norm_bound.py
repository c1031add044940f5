"""How long rows (or gradients) are: a limit that all but a few of them keep, from noisy counts.

Sensitivity and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet._common.types import FloatArray
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation


LOWEST, HIGHEST = -3, 5  # the range of limits, in octaves of the unit
PER_OCTAVE = 3
BLOCK = 1 << 16  # rows
BINS = (HIGHEST - LOWEST) * PER_OCTAVE
CLEAR = 4.5  # deviations of the noise that counts beyond the bulk must exceed to be read


def private_norm_bound(
    sizes: FloatArray,
    weight: FloatArray | None,
    unit: float,
    allowed: float,
    mechanism: Gaussian,
    relation: Relation,
    rng: RandomGenerator,
) -> float:
    """The lowest limit that about `allowed` rows exceed, or as few as the noise lets us see.

    Guarantee: reads the sizes only through one histogram, which costs one event of the mechanism.
    """
    counts = size_counts(sizes, weight, unit)
    sensitivity = mechanisms.one_hot_counts(relation, 1)
    counts += mechanism.noise(rng, sensitivity, BINS)
    counts[_end_of_bulk(counts, mechanism.deviation(sensitivity)) :] = 0.0
    above = np.append(counts[:0:-1].cumsum()[::-1], 0.0)
    return norm_bound_at(int(np.argmax(above <= allowed)), unit)


def _end_of_bulk(counts: FloatArray, deviation: float) -> int:
    """Past the highest bin that stands out of the noise, alone or together with the empty ones before it.

    What lies beyond is not read: among many empty bins one may look full, and it would set an absurd limit.
    """
    end = int(np.argmax(counts)) + 1
    while end < counts.size:
        together = counts[end:].cumsum() / np.sqrt(np.arange(1, counts.size - end + 1))
        clear = np.flatnonzero(together > CLEAR * deviation)
        if clear.size == 0:
            break
        end += int(clear[0]) + 1
    return end


def norm_bound_at(place: int, unit: float) -> float:
    """The upper end of a bin; that of bin 0 is the lowest limit, for when there are too few rows to learn one."""
    return unit * 2.0 ** (LOWEST + (place + 1) / PER_OCTAVE)


def noticeable(mechanism: Gaussian, relation: Relation) -> float:
    """How many rows of one size it takes to be told from none."""
    return CLEAR * mechanism.deviation(mechanisms.one_hot_counts(relation, 1))


def size_counts(sizes: FloatArray, weight: FloatArray | None, unit: float) -> FloatArray:
    """The weighted number of rows in each bin; every row, whatever its size, has exactly one."""
    counts = np.zeros(BINS)
    for start in range(0, sizes.size, BLOCK):  # temporaries of a block, not of the table
        block = slice(start, start + BLOCK)
        part = None if weight is None else weight[block]
        counts += np.bincount(_bins(sizes[block], unit), weights=part, minlength=BINS)
    return counts


def _bins(sizes: FloatArray, unit: float) -> npt.NDArray[np.int64]:
    relative = np.where(np.isfinite(sizes), sizes, np.inf) / unit
    with np.errstate(divide="ignore"):
        place = (np.log2(relative) - LOWEST) * PER_OCTAVE
    return np.clip(np.floor(place), 0, BINS - 1).astype(np.int64)
