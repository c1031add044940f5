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

from discreet.accounting.dots import LossLaw, connect_dots, reach_of
from discreet.accounting.fourier import LEVEL_ERROR, log_transform
from discreet.accounting.pairs import Array, Pair

Parts = list[tuple[Pair, int]]
Laws = list[tuple[LossLaw, int]]

# How much of epsilon the grid may add.
_TOLERANCE = 2e-4
_FEWEST_POINTS, _MOST_POINTS = 2**14, 2**21
# Multiples of the step near zero that are all used, and the most that are used far from it.
_CORE, _MOST_EVEN = 4096, 2**15
_LEAST_DELTA = 1e-280
_TILTED_TAIL = math.log(1e-10)
# Share of the target delta that truncated tails may take.
_TRUNCATION = 1e-5


@dataclass(frozen=True)
class Window:
    """The part of the loss axis to compute on, and the tilt that makes it the likely part.

    `centre` is the tilted mean, and `tail_order` the Chernoff order for the mass above the window.
    """

    tilt: float
    start: float
    stop: float
    centre: float
    tail_order: float


@dataclass(frozen=True)
class ComposedLoss:
    """The law of the total loss on the points (first + i) * step, with what the window left out.

    `log_scale` and `tilt` undo the tilting: mass i is tilted_i * exp(log_scale - tilt * step * i).
    """

    first: int
    step: float
    tilted: Array
    tilt: float
    log_scale: float
    point_error: float
    outside: float
    shift: float

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """For each point, the masses of P and of Q (times e^start) strictly above it, largest point first."""
        steps = self.step * np.arange(self.tilted.size, dtype=np.float64)
        p = self.tilted * self._untilting(steps)
        above = np.cumsum(p[::-1])[::-1]
        lower = np.cumsum((p * np.exp(-steps))[::-1])[::-1]
        return np.append(above[1:], 0.0), np.append(lower[1:], 0.0)

    def delta(self, epsilons: Array) -> Array:
        """Return an upper bound on delta at each epsilon: 1 below the window."""
        offset = np.asarray(epsilons) - self.shift - self.first * self.step
        index = np.clip(np.floor(offset / self.step).astype(np.int64), 0, self.tilted.size - 1)
        above, lower = self._sums
        exact = above[index] - _growth(offset) * lower[index]
        bound = np.maximum(exact, 0.0) + self._error(index.astype(np.float64) * self.step) + self.outside
        return np.where(offset < 0.0, 1.0, np.minimum(bound, 1.0))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 whose delta is at most the given one, or infinity."""
        offsets = self.step * np.arange(self.tilted.size, dtype=np.float64)
        above, lower = self._sums
        allowed = delta - self.outside - self._error(offsets)
        too_much = above - _growth(offsets) * lower > allowed
        last = np.flatnonzero(too_much)
        if not last.size:
            return max(0.0, self.first * self.step + self.shift)
        i = int(last[-1])
        if i + 1 == self.tilted.size:
            return math.inf
        inside = math.log((above[i] - allowed[i]) / lower[i]) if lower[i] > 0.0 else math.inf
        return max(0.0, self.first * self.step + min(inside, float(offsets[i + 1])) + self.shift)

    def rounding_at(self, epsilon: float) -> float:
        """Return the part of delta at epsilon that is an allowance for rounding errors."""
        return float(self._error(np.array([epsilon - self.shift - self.first * self.step]))[0])

    def _error(self, offsets: Array) -> Array:
        """Bound what an error of `point_error` on every tilted point adds to delta."""
        slope = math.expm1(min(700.0, self.tilt * self.step))
        return self.point_error / slope * self._untilting(offsets)

    def _untilting(self, offsets: Array) -> Array:
        # The cap only binds where a true mass would have to exceed one, that is, where all is rounding error.
        return np.exp(np.minimum(self.log_scale - self.tilt * offsets, 500.0))


def _growth(offsets: Array) -> Array:
    """Return e^offset, or less where it would overflow: what it multiplies is subtracted from a bound."""
    return np.exp(np.clip(offsets, 0.0, 600.0))


def compose(parts: Parts, delta: float) -> ComposedLoss:
    """Return the composed loss, tuned to be tight near the given delta.

    Guarantee: `delta` and `epsilon` of the result bound the adaptive composition of all mechanisms that the
    pairs dominate, each taken its number of times.
    """
    rough = _roughly(parts, delta)
    window = _choose_window(rough, delta)
    step = _choose_step(window, rough)
    atom = max(pair.atom for pair, _ in parts)
    if atom:
        step = atom / math.ceil(atom / step)
    negligible = _negligible(parts, delta)
    laws = [(_on_grid(pair, negligible, step, window.tilt), n) for pair, n in parts]
    return _convolve(laws, window, step)


def tightest_epsilon(parts: Parts, delta: float) -> float:
    """Return an upper bound on epsilon at delta, composing again where rounding errors take much of delta."""
    best, guess = math.inf, delta
    for _ in range(4):
        loss = compose(parts, guess)
        best = min(best, loss.epsilon(delta))
        if guess >= 0.1 or loss.rounding_at(best) <= 0.01 * delta:
            break
        guess *= 10.0
    return best


def tightest_delta(parts: Parts, epsilon: float) -> float:
    """Return an upper bound on delta at epsilon, composing again until it is tuned to the answer."""
    best, guess = 1.0, _rough_delta(parts, epsilon)
    for _ in range(6):
        bound = float(compose(parts, guess).delta(np.array([epsilon]))[0])
        best = min(best, bound)
        # Tuning to a delta that is a little too large hardly matters; one too small lets rounding errors in.
        if 0.1 * guess <= bound <= guess or bound < _LEAST_DELTA:
            break
        guess = math.sqrt(guess) if bound == 1.0 else min(2.0 * bound, 0.9)
    return best


def _rough_delta(parts: Parts, epsilon: float) -> float:
    """Return the delta at which the Renyi bound gives this epsilon, to begin with; it proves nothing."""
    low, high = math.log(_LEAST_DELTA), -1e-3
    for _ in range(7):
        middle = 0.5 * (low + high)
        laws = _roughly(parts, math.exp(middle))
        if _renyi_epsilon(laws, _best_tilt(laws, math.exp(middle)), math.exp(middle)) > epsilon:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _negligible(parts: Parts, delta: float) -> float:
    return _TRUNCATION * delta / sum(times for _, times in parts)


def _roughly(parts: Parts, delta: float) -> Laws:
    """Put each pair on a coarse grid, geometric on both sides of zero."""
    laws: Laws = []
    for pair, times in parts:
        down, up = reach_of(pair, _negligible(parts, delta))
        grid = np.geomspace(1e-10, 1.0, 1200)
        laws.append((connect_dots(pair, np.concatenate([-down * grid[::-1], [0.0], up * grid])), times))
    return laws


def _choose_step(window: Window, laws: Laws) -> float:
    """Choose the largest step whose effect on epsilon, growth of the variance * (tilt + 1) / 2, is tolerable.

    Splitting a loss between the ends of a cell adds step^2 / 6 to the variance on average, or loss * step
    when the loss is much smaller than the step.
    """
    width = window.stop - window.start
    steps = width / np.geomspace(_FEWEST_POINTS, _MOST_POINTS, 41)
    growth = np.zeros(steps.shape)
    for law, times in laws:
        each = np.minimum(steps[:, None] ** 2 / 6.0, steps[:, None] * np.abs(law.losses))
        growth += times * (each @ law.tilted(window.tilt))
    fine = 0.5 * (window.tilt + 1.0) * growth <= _TOLERANCE * max(window.centre, 1e-9)
    return float(steps[np.argmax(fine)] if fine.any() else steps[-1])


def _on_grid(pair: Pair, negligible: float, step: float, tilt: float) -> LossLaw:
    """Discretise on multiples of the step: all of them near zero, fewer of them further out.

    Far from zero the spacing is a thousandth of the loss, which moves its square by a millionth. Upwards it
    stays below a tenth of 1 / tilt, the scale on which the tilted loss varies.
    """
    down, up = reach_of(pair, negligible)
    last = math.ceil(up / step) + 1
    widest = max(1, math.floor(0.1 / ((1.0 + tilt) * step)), last // _MOST_EVEN)
    turn = min(last, max(_CORE, 1024 * widest))
    even = np.arange(turn, last + widest, widest, dtype=np.float64)
    atoms = [math.floor(pair.atom / step), math.ceil(pair.atom / step)] if pair.atom >= step else []
    upwards = np.unique(np.concatenate([_growing(turn), even, atoms]))
    downwards = _growing(math.ceil(down / step) + 1)
    return connect_dots(pair, step * np.concatenate([-downwards[::-1], [0.0], upwards]))


def _growing(last: int) -> Array:
    """Return whole numbers from 1 to last: all of them up to the core, then a geometric selection."""
    core = np.arange(1.0, min(last, _CORE) + 1)
    if last <= _CORE:
        return core
    far = np.geomspace(_CORE, last, 2 + math.ceil(1024 * math.log(last / _CORE)))
    return np.unique(np.ceil(np.concatenate([core, far])))


def _log_moment(laws: Laws, order: float) -> float:
    return sum(times * law.log_moment(order) for law, times in laws)


def _chernoff_epsilon(laws: Laws, order: float, delta: float) -> float:
    return (_log_moment(laws, order) - math.log(delta)) / order


def _renyi_epsilon(laws: Laws, order: float, delta: float) -> float:
    """Return the epsilon of Renyi DP at 1 + order, which is Chernoff's with the best factor on delta."""
    gain = order * math.log1p(1.0 / order) + math.log1p(order)
    return _chernoff_epsilon(laws, order, delta) - gain / order


def _best_tilt(laws: Laws, delta: float) -> float:
    """Return the order that makes the Renyi bound on epsilon least: there it is near the tilted mean."""
    orders = np.geomspace(1e-4, 1e7, 104)
    bounds = np.array([_renyi_epsilon(laws, order, delta) for order in orders])
    least = float(np.min(bounds))
    # A bounded loss can make the best order infinite; the smallest nearly best one serves as well.
    return float(orders[np.flatnonzero(bounds <= least + 1e-3 * abs(least))[0]])


def _choose_window(laws: Laws, delta: float) -> Window:
    """Pick a window that holds nearly all tilted mass, and nearly all that matters for delta."""
    tilt = _best_tilt(laws, delta)
    here = _log_moment(laws, tilt)
    slack = 1e-3 * tilt
    higher, lower = _log_moment(laws, tilt + slack), _log_moment(laws, tilt - slack)
    rounding = 1e-14 * (1.0 + abs(here))
    spread = math.sqrt(max(higher - 2 * here + lower, rounding)) / slack
    turns = np.geomspace(0.3, 100.0, 24) / spread
    start = max((_TILTED_TAIL + here - _log_moment(laws, tilt - turn)) / turn for turn in turns)
    stop = min((_log_moment(laws, tilt + turn) - here - _TILTED_TAIL) / turn for turn in turns)
    tail_order = min(tilt + turns, key=lambda order: _chernoff_epsilon(laws, order, _TRUNCATION * delta))
    stop = max(stop, start + spread, _chernoff_epsilon(laws, tail_order, _TRUNCATION * delta))
    return Window(tilt, start, stop, (higher - lower) / (2 * slack), float(tail_order))


def _convolve(laws: Laws, window: Window, step: float) -> ComposedLoss:
    from scipy.fft import irfft, next_fast_len

    size = next_fast_len(math.ceil((window.stop - window.start) / step) + 1, real=True)
    log_power = np.zeros(size // 2 + 1, dtype=np.complex128)
    log_error = np.zeros(size // 2 + 1)
    for law, times in laws:
        positions = np.rint(law.losses / step).astype(np.int64)
        logs, errors = log_transform(positions, law.tilted(window.tilt), size, times)
        log_power += times * logs
        log_error += times * errors
    spectrum = np.exp(log_power)
    spectrum_error = 2.0 / size * float(np.sum(np.abs(spectrum) * np.expm1(np.minimum(log_error, 700.0))))
    composed = irfft(spectrum, size)
    first = math.floor(window.start / step)
    count = sum(times for _, times in laws)
    log_moment = _log_moment(laws, window.tilt)
    return ComposedLoss(
        first=first,
        step=step,
        tilted=np.roll(composed, -(first % size)),
        tilt=window.tilt,
        # The last term covers the rounding of the log moments: a few units in the last place each.
        log_scale=log_moment - window.tilt * first * step + 4e-15 * (count + abs(log_moment)),
        point_error=spectrum_error + LEVEL_ERROR * (math.log2(size) + 1) * float(np.linalg.norm(composed)),
        outside=_outside(laws, window, (first + size - 1) * step),
        shift=1e-15 * count,
    )


def _outside(laws: Laws, window: Window, stop: float) -> float:
    """Bound the mass above the window (Chernoff) and the mass of an infinite loss."""
    log_tail = min(_log_moment(laws, order) - order * stop for order in (window.tilt, window.tail_order))
    log_finite = sum(times * math.log1p(-law.infinity) for law, times in laws)
    return math.exp(min(0.0, log_tail)) - math.expm1(log_finite)
