"""The Fourier transform of a probability law on a grid, its logarithm, and a bound on the rounding error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.accounting.pairs import Array

Complex = NDArray[np.complex128]

# Relative error of one level of a fast Fourier transform, in the 2-norm (Higham 2002, theorem 24.2).
LEVEL_ERROR = 1e-15
# Relative error of a complex logarithm, exponential or sum by pairs.
_SCALAR_ERROR = 4e-15
_TINY = 1e-300
# Frequencies are summed one by one if the fast transform's error, over all compositions, exceeds this.
_WORTH_REFINING = 1e-7
_MOST_TERMS = 6e7


def log_transform(positions: NDArray[np.int64], masses: Array, size: int, times: int) -> tuple[Complex, Array]:
    """Return the logarithm of the transform at the frequencies 0 ... size / 2, and how wrong it may be.

    A power of the transform multiplies its error by the number of compositions, so for many compositions the
    few frequencies whose power is not negligible are summed directly.

    Parameters
    ----------
    positions, masses : arrays
        The law: masses that sum to one at whole multiples of the grid's step.
    size : int
        The number of points of the (circular) grid.
    times : int
        The number of compositions.

    Returns
    -------
    logs, errors : arrays
        The exact transform is exp(logs) times a factor within exp(+- errors).
    """
    from scipy.fft import rfft

    folded = np.bincount(positions % size, weights=masses, minlength=size)
    # A large atom at zero has a constant transform; leaving it out keeps the error of the rest small.
    atom, folded[0] = float(folded[0]), 0.0
    transform = rfft(folded) + atom
    levels = math.log2(size) + 1.0
    error = LEVEL_ERROR * levels * math.sqrt(size) * norm(folded.astype(np.float64)) + _SCALAR_ERROR
    modulus = np.maximum(np.abs(transform), _TINY)
    logs = np.log(np.where(modulus > _TINY, transform, _TINY))
    errors = np.log1p(error / modulus)
    strong = np.flatnonzero(times * logs.real > -80.0)
    if times * error > _WORTH_REFINING and strong.size * positions.size < _MOST_TERMS:
        logs[strong], errors[strong] = _sum_directly(positions, masses, size, strong)
    return logs, errors


def norm(values: Array) -> float:
    """Return the 2-norm; without BLAS, whose threads cost more than they save on a busy machine."""
    return math.sqrt(float(np.sum(values * values)))


def _sum_directly(
    positions: NDArray[np.int64], masses: Array, size: int, frequencies: NDArray[np.int64]
) -> tuple[Complex, Array]:
    """Return log(1 + sum of mass * (e^(-i angle) - 1)): its error is relative to the angles, not to one."""
    values = np.empty(frequencies.size, dtype=np.complex128)
    errors = np.empty(frequencies.size)
    for i, frequency in enumerate(frequencies):
        turns = (positions * frequency) % size
        angles = (2.0 * math.pi / size) * np.where(2 * turns > size, turns - size, turns)
        cosine_part = -2.0 * np.sum(masses * np.sin(0.5 * angles) ** 2)
        values[i] = complex(cosine_part, -np.sum(masses * np.sin(angles)))
        errors[i] = _SCALAR_ERROR * float(np.sum(masses * np.abs(angles)))
    logs = np.log1p(values)
    return logs, np.log1p(errors / np.maximum(np.abs(1.0 + values), _TINY)) + _SCALAR_ERROR * np.abs(logs)
