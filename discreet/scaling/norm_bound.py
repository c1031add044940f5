"""A private bound on norms: one that all but a few rows (or gradients) keep, from noisy counts.

Sensitivity and proof: docs/guarantees/newton.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet._common.types import FloatArray
from discreet.data.rows import exact_weights
from discreet.privacy import mechanisms

if TYPE_CHECKING:
    from discreet.privacy.mechanisms import Gaussian
    from discreet.privacy.random.generator import RandomGenerator
    from discreet.privacy.relation import Relation

LOWEST, USUAL_HIGHEST, HIGHEST = -3, 5, 12  # the range of bounds, in octaves of the unit
PER_OCTAVE = 3  # bins: a bound is at most 26 % larger than it must be
USUAL_BINS = (USUAL_HIGHEST - LOWEST) * PER_OCTAVE  # over the usual range
BINS = (HIGHEST - LOWEST) * PER_OCTAVE  # over the whole range
FEW_ROWS = 1e-3  # of the rows: where so few stand out of the noise, sizes far beyond the usual ones are told apart
FEW_NORMS = 20_000  # which NumPy counts in a millisecond, in the same bins
CLEAR = 4.5  # deviations of the noise that counts beyond the bulk must exceed to be read: 8e-5 of false alarms


def private_norm_bound(
    counts: FloatArray, unit: float, allowed: float, mechanism: Gaussian, relation: Relation, rng: RandomGenerator,
    rows: int,
) -> float:  # fmt: skip
    """The lowest bound that about `allowed` rows exceed, or as few as the noise lets us see.

    Parameters
    ----------
    counts : array
        The number of rows in each bin, from `norm_counts`, summed over all rows.
    unit : float
        A public number: a typical norm. The same as for the counts.
    allowed : float
        How many rows may exceed the bound.
    rows : int
        The public number of rows, which decides with the noise how many bins are told apart.

    Guarantee: reads the norms only through one histogram, which costs one event of the mechanism.
    """
    sensitivity = mechanisms.one_hot_counts(relation, 1)
    if noticeable(mechanism, relation) > FEW_ROWS * rows:
        counts = np.append(counts[: USUAL_BINS - 1], counts[USUAL_BINS - 1 :].sum())
    noisy = mechanism.release(rng, counts, sensitivity)
    noisy[_end_of_bulk(noisy, mechanism.deviation(sensitivity)) :] = 0.0
    above = np.append(noisy[:0:-1].cumsum()[::-1], 0.0)
    return norm_bound_at(int(np.argmax(above <= allowed)), unit)


def _end_of_bulk(counts: FloatArray, deviation: float) -> int:
    """Past the highest bin that stands out of the noise, alone or together with the empty ones before it.

    What lies beyond is not read: among many empty bins one may look full, and the bound would be far too large.
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
    """The upper end of a bin; that of bin 0 is the lowest bound, for when there are too few rows to learn one."""
    return unit * 2.0 ** (LOWEST + (place + 1) / PER_OCTAVE)


def noticeable(mechanism: Gaussian, relation: Relation) -> float:
    """How many rows of one norm it takes to be told from none."""
    return CLEAR * mechanism.deviation(mechanisms.one_hot_counts(relation, 1))


def norm_counts(norms: FloatArray, weight: FloatArray | None, unit: float) -> FloatArray:
    """The weighted number of rows in each bin; every row, whatever its norm, has exactly one."""
    if norms.size > FEW_NORMS:
        from discreet.kernels.norm_counts import add_norms
    else:
        from discreet.kernels.small_rows import add_norms

    counts, weights = np.zeros(BINS), exact_weights(weight)
    edges = 2.0 ** (np.arange(1, PER_OCTAVE) / PER_OCTAVE)
    none = np.empty(0)
    add_norms(np.asarray(norms), none if weights is None else weights, float(unit), LOWEST, edges, counts)
    return counts
