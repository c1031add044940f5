"""Compose dominating pairs by one Fourier transform of tilted losses, with the rounding error added.

The losses of a composition add up, so their law is a convolution power. A Fourier transform in double
precision has an absolute error near 1e-16 times the number of compositions, hopeless for delta = 1e-10.
Tilting cures it: each law is multiplied by e^(tilt * loss) and normalised, which moves its mean to the
epsilon in question; the transform then works on masses of order one, and untilting shrinks the error as much
as the answer.
See docs/guarantees/accounting.md, "Composition on a grid".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet._common.types import IntArray
from discreet.privacy.accounting.pairs import Array
from discreet.privacy.accounting.pld import discretisation as grids
from discreet.privacy.accounting.pld.discretisation import Laws, Parts, Target, Window

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


@dataclass(frozen=True)
class ComposedLoss:
    """The law of the total loss on the points (first + i) * step, with what the window left out.

    `log_scale` and `tilt` undo the tilting: mass i is tilted_masses[i] * exp(log_scale - tilt * step * i).
    `target` is what the window was chosen.
    """

    first: int
    step: float
    tilted_masses: Array
    tilt: float
    log_scale: float
    point_error: float
    outside: float
    shift: float
    target: Target

    @property
    def start(self) -> float:
        """The least loss of the window."""
        return self.first * self.step

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """For each point, the masses of P and of Q (times e^start) strictly above it, largest point first."""
        steps = self.step * np.arange(self.tilted_masses.size, dtype=np.float64)
        p = self.tilted_masses * self._untilting(steps)
        above = np.cumsum(p[::-1])[::-1]
        lower = np.cumsum((p * np.exp(-steps))[::-1])[::-1]
        return np.append(above[1:], 0.0), np.append(lower[1:], 0.0)

    def delta(self, epsilons: Array) -> Array:
        """Return an upper bound on delta at each epsilon: 1 below the window."""
        offset = np.asarray(epsilons) - self.shift - self.first * self.step
        index = np.clip(np.floor(offset / self.step).astype(np.int64), 0, self.tilted_masses.size - 1)
        above, lower = self._sums
        exact = above[index] - _growth(offset) * lower[index]
        rounding = self._error(index.astype(np.float64) * self.step) + self._sum_error(above[index])
        bound = np.maximum(exact, 0.0) + rounding + self.outside
        return np.where(offset < 0.0, 1.0, np.minimum(bound, 1.0))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 whose delta is at most the given one, or infinity."""
        offsets = self.step * np.arange(self.tilted_masses.size, dtype=np.float64)
        above, lower = self._sums
        allowed = delta - self.outside - self._error(offsets) - self._sum_error(above)
        too_much = above - _growth(offsets) * lower > allowed
        last = np.flatnonzero(too_much)
        if not last.size:
            return max(0.0, self.first * self.step + self.shift)
        i = int(last[-1])
        if i + 1 == self.tilted_masses.size:
            return math.inf
        inside = math.log((above[i] - allowed[i]) / lower[i]) if lower[i] > 0.0 else math.inf
        return max(0.0, self.first * self.step + min(inside, float(offsets[i + 1])) + self.shift)

    def rounding_at(self, epsilon: float) -> float:
        """Return the part of delta at epsilon that is an allowance for rounding errors."""
        return float(self._error(np.array([epsilon - self.shift - self.first * self.step]))[0])

    def slope(self, epsilon: float, delta: float) -> float:
        """Return -d log(delta) / d epsilon, about; it proves nothing."""
        offset = epsilon - self.shift - self.start
        index = min(max(math.floor(offset / self.step), 0), self.tilted_masses.size - 1)
        return float(_growth(np.array([offset]))[0] * self._sums[1][index]) / delta

    def suits(self, epsilon: float, delta: float) -> bool:
        """Whether the answer is about the one for which window and step were chosen, and inside the window."""
        near = epsilon > 0.6 * self.target.epsilon and self.slope(epsilon, delta) < 1.7 * (1.0 + self.target.slope)
        return near and epsilon > self.start + 2.0 * self.step

    def _error(self, offsets: Array) -> Array:
        """Bound what an error of `point_error` on every tilted point adds to delta."""
        slope = math.expm1(min(700.0, self.tilt * self.step))
        return self.point_error / slope * self._untilting(offsets)

    def _sum_error(self, above: Array) -> Array:
        """Bound the rounding of the running sums: one unit in the last place for each term and sum."""
        return 5e-16 * self.tilted_masses.size * np.abs(above)

    def _untilting(self, offsets: Array) -> Array:
        # The cap only binds where a true mass would have to exceed one, that is, where all is rounding error.
        return np.exp(np.minimum(self.log_scale - self.tilt * offsets, 500.0))


def _growth(offsets: Array) -> Array:
    """Return e^offset, or less where it would overflow: what it multiplies is subtracted from a bound."""
    return np.exp(np.clip(offsets, 0.0, 600.0))


def compose(parts: Parts, delta: float, target: Target | None = None, lighter: bool = True) -> ComposedLoss:
    """Return the composed loss, tuned to be tight near the given delta, at the target if it is known.

    Guarantee: `delta` and `epsilon` of the result bound the adaptive composition of all mechanisms that the
    pairs dominate, each taken its number of times.
    """
    rough = grids.roughly(parts, delta)
    window = grids.choose_window(rough, delta, target, lighter)
    step = grids.choose_step(window, rough)
    atom = max(pair.atom for pair, _ in parts)
    if atom >= step:  # a smaller one is rounded up to the grid like any loss
        step = atom / math.ceil(atom / step)
    negligible = grids.negligible_mass(parts, delta)
    laws = [(grids.on_grid(pair, negligible, step, window.tilt), n) for pair, n in parts]
    return _convolve(laws, window, step)


def tightest_epsilon(parts: Parts, delta: float) -> float:
    """Return an upper bound on epsilon at delta, composing again until the window suits the answer.

    The Renyi bound of the same pairs takes over where no window suits.
    """
    best, guess, lighter = math.inf, delta, True
    target: Target | None = None
    for _ in range(5):
        loss = compose(parts, guess, target, lighter)
        found = loss.epsilon(delta)
        best = min(best, found)
        if found == math.inf or loss.rounding_at(found) > 0.01 * delta:
            if not lighter and guess >= 0.1:
                break
            guess, lighter = (guess, False) if lighter else (10.0 * guess, False)
        elif found > 0.0 and not loss.suits(found, delta):
            target = Target(found, loss.slope(found, delta))
        else:
            return best
    return min(best, grids.certified_renyi_epsilon(grids.roughly(parts, delta), delta))


def tightest_delta(parts: Parts, epsilon: float) -> float:
    """Return an upper bound on delta at epsilon, composing again until it is tuned to the answer."""
    guess = grids.rough_delta(parts, epsilon)
    laws = grids.roughly(parts, guess)
    best = grids.certified_renyi_delta(laws, epsilon, grids.best_order(laws, guess))
    target, lighter = Target(epsilon, grids.best_order(laws, guess)), True
    for _ in range(6):
        loss = compose(parts, guess, target, lighter)
        bound = float(loss.delta(np.array([epsilon]))[0])
        best = min(best, bound)
        if lighter and loss.rounding_at(epsilon) > 0.01 * best:
            lighter = False
            continue
        retarget = 0.0 < bound < 1.0 and not loss.suits(epsilon, bound)
        target = Target(epsilon, loss.slope(epsilon, bound)) if retarget else target
        # Tuning to a delta that is a little too large hardly matters; one too small lets rounding errors in.
        if (0.1 * guess <= bound <= guess and not retarget) or bound < grids.LEAST_DELTA:
            break
        guess = math.sqrt(guess) if bound == 1.0 else min(2.0 * bound, 0.9)
    return best


def _convolve(laws: Laws, window: Window, step: float) -> ComposedLoss:
    from scipy.fft import irfft, next_fast_len

    size = next_fast_len(math.ceil((window.stop - window.start) / step) + 1, real=True)
    log_power = np.zeros(size // 2 + 1, dtype=np.complex128)
    log_error = np.zeros(size // 2 + 1)
    for law, times in laws:
        positions = np.rint(law.losses / step).astype(np.int64)
        logs, errors = log_transform(positions, law.tilted_masses(window.tilt), size, times)
        log_power += times * logs
        log_error += times * errors
    spectrum = np.exp(log_power)
    spectrum_error = 2.0 / size * float(np.sum(np.abs(spectrum) * np.expm1(np.minimum(log_error, 700.0))))
    composed = irfft(spectrum, size)
    first = math.floor(window.start / step)
    count = sum(times for _, times in laws)
    moment = grids.log_moment(laws, window.tilt)
    return ComposedLoss(
        first=first,
        step=step,
        tilted_masses=np.roll(composed, -(first % size)),
        tilt=window.tilt,
        # The last terms cover the rounding of the log moments.
        log_scale=moment - window.tilt * first * step + grids.moment_error(laws, window.tilt) + 4e-15 * abs(moment),
        point_error=spectrum_error + LEVEL_ERROR * (math.log2(size) + 1) * norm(composed),
        outside=_outside(laws, window, (first + size - 1) * step),
        shift=4e-15 * (count + abs(window.stop)),
        target=window.target,
    )


def _outside(laws: Laws, window: Window, stop: float) -> float:
    """Bound the mass above the window (Chernoff) and the mass of an infinite loss."""
    log_tail = min(grids.log_moment(laws, order) - order * stop for order in (window.tilt, window.tail_order))
    return math.exp(min(0.0, log_tail)) + grids.infinite_mass(laws)
