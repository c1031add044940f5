"""The Fourier transform of a probability law on a grid, its logarithm, and a bound on the rounding error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet._common.types import IntArray
from discreet.privacy.accounting.pairs import Array

Complex = NDArray[np.complex128]

# Relative error of one level of a fast Fourier transform, in the 2-norm (Higham 2002, theorem 24.2).
LEVEL_ERROR = 1e-15
# Relative error of a complex logarithm, exponential or sum by pairs.
_SCALAR_ERROR = 4e-15
_TINY = 1e-300
# Losses of at most so many grid steps are summed apart if the fast transform's error, over all compositions, exceeds
# the second number; if it still does, frequencies are summed one by one.
_NEAR, _WORTH_REFINING = 4, 1e-9
_MOST_TERMS = 6e7
# Frequencies whose power is below e^-45 = 3e-20 do not matter.
_STRONG = -45.0


def log_transform(positions: IntArray, masses: Array, size: int, times: int) -> tuple[Complex, Array]:
    """Return the logarithm of the transform at the frequencies 0 ... size / 2, and how wrong it may be.

    A power of the transform multiplies its error by the number of compositions, so for many compositions the
    losses next to zero, which have nearly all the mass, are summed directly; if that is not enough, all losses are,
    for the few frequencies whose power is not negligible.

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
    values, error = _fast_sums(positions, masses, size, near=0)
    if times * float(np.max(error)) > _WORTH_REFINING:
        values, error = _fast_sums(positions, masses, size, near=_NEAR)
    logs, errors = _logarithm(values, error)
    strong = np.flatnonzero(times * logs.real > _STRONG)
    worst = float(np.max(error[strong], initial=0.0))
    if times * worst > _WORTH_REFINING and strong.size * positions.size < _MOST_TERMS:
        logs[strong], errors[strong] = _logarithm(*_direct_sums(positions, masses, size, strong))
    return logs, errors


def norm(values: Array) -> float:
    """Return the 2-norm; without BLAS, whose threads cost more than they save on a busy machine."""
    return math.sqrt(float(np.sum(values * values)))


def _logarithm(values: Complex, errors: Array) -> tuple[Complex, Array]:
    """Return log(1 + values) and its error, given that of the values."""
    modulus = np.abs(1.0 + values)
    there = modulus > _TINY  # losses of equal mass half a turn apart cancel
    logs = np.where(there, np.log1p(np.where(there, values, 0.0)), math.log(_TINY))
    return logs, np.log1p(errors / np.maximum(modulus, _TINY)) + _SCALAR_ERROR * np.abs(logs)


def _fast_sums(positions: IntArray, masses: Array, size: int, near: int) -> tuple[Complex, Array]:
    """Return the sum of mass * (e^(-i angle) - 1) at all frequencies, and its error.

    Positions up to `near` are summed term by term. The rest goes through the fast transform, whose error is
    relative to the rest alone.
    """
    from scipy.fft import rfft

    close = np.abs(positions) <= near
    rest = np.bincount(positions[~close] % size, weights=masses[~close], minlength=size).astype(np.float64)
    total = float(np.sum(rest))
    values = rfft(rest) - total
    levels = math.log2(size) + 1.0
    error = LEVEL_ERROR * levels * math.sqrt(size) * norm(rest) + _SCALAR_ERROR * total
    errors = np.full(values.size, error)
    frequencies = np.arange(values.size, dtype=np.float64)
    for position, mass in zip(positions[close], masses[close], strict=True):
        if position != 0:
            half = _half_angles(float(position) * frequencies, size)
            values += mass * _turned(half)
            errors += 2.0 * _SCALAR_ERROR * mass * np.abs(half)
    return values, errors


def _direct_sums(positions: IntArray, masses: Array, size: int, frequencies: IntArray) -> tuple[Complex, Array]:
    """Return what `_fast_sums` returns at some frequencies, all terms summed: the error is relative to the angles."""
    values = np.empty(frequencies.size, dtype=np.complex128)
    errors = np.empty(frequencies.size)
    places = positions.astype(np.float64)
    for i, frequency in enumerate(frequencies):
        half = _half_angles(places * float(frequency), size)
        values[i] = np.sum(masses * _turned(half))
        errors[i] = 2.0 * _SCALAR_ERROR * float(np.sum(masses * np.abs(half)))
    return values, errors


def _half_angles(turns: Array, size: int) -> Array:
    """Return pi * turns / size, reduced to at most about pi / 2; whole numbers below 2^53 are reduced exactly."""
    return (math.pi / size) * (turns - size * np.rint(turns / size))


def _turned(half: Array) -> Complex:
    """Return e^(-2 i half) - 1, exact for small angles."""
    sine, cosine = np.sin(half), np.cos(half)
    turned = np.empty(half.shape, dtype=np.complex128)
    turned.real = -2.0 * sine * sine
    turned.imag = -2.0 * sine * cosine
    return turned
