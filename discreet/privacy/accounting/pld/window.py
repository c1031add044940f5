"""Where to compute a composition: a tilt and a window around the epsilon in question, and a grid step.

Nothing here needs to be right for the bound to hold; it decides how tight the bound is and what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair
from discreet.privacy.accounting.pld.discretisation import LossLaw, connect_dots, loss_range

Parts = list[tuple[Pair, int]]
Laws = list[tuple[LossLaw, int]]

# No smaller delta is resolved.
LEAST_DELTA = 1e-280
# How much of epsilon the grid may add.
_TOLERANCE = 2e-4
_FEWEST_POINTS, _MOST_POINTS = 2**14, 2**21
# Multiples of the step near zero that are all used, and the most that are used far from it.
_CORE, _MOST_EVEN = 4096, 2**15
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


def negligible_mass(parts: Parts, delta: float) -> float:
    return _TRUNCATION * delta / sum(times for _, times in parts)


def roughly(parts: Parts, delta: float) -> Laws:
    """Put each pair on a coarse grid, geometric on both sides of zero."""
    laws: Laws = []
    for pair, times in parts:
        down, up = loss_range(pair, negligible_mass(parts, delta))
        grid = np.geomspace(1e-10, 1.0, 1200)
        laws.append((connect_dots(pair, np.concatenate([-down * grid[::-1], [0.0], up * grid])), times))
    return laws


def choose_step(window: Window, laws: Laws) -> float:
    """Choose the largest step whose effect on epsilon, growth of the variance * (tilt + 1) / 2, is tolerable.

    Splitting a loss between the ends of a cell adds step^2 / 6 to the variance on average, or loss * step
    when the loss is much smaller than the step.
    """
    width = window.stop - window.start
    steps = width / np.geomspace(_FEWEST_POINTS, _MOST_POINTS, 41)
    growth = np.zeros(steps.shape)
    for law, times in laws:
        each = np.minimum(steps[:, None] ** 2 / 6.0, steps[:, None] * np.abs(law.losses))
        growth += times * np.sum(each * law.tilted_masses(window.tilt), axis=1)
    fine = 0.5 * (window.tilt + 1.0) * growth <= _TOLERANCE * max(window.centre, 1e-9)
    return float(steps[np.argmax(fine)] if fine.any() else steps[-1])


def on_grid(pair: Pair, negligible: float, step: float, tilt: float) -> LossLaw:
    """Discretise on multiples of the step: all of them near zero, fewer of them further out.

    Far from zero the spacing is a thousandth of the loss, which moves its square by a millionth. Upwards it
    stays below a tenth of 1 / tilt, the scale on which the tilted loss varies.
    """
    down, up = loss_range(pair, negligible)
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


def total_log_moment(laws: Laws, order: float) -> float:
    return sum(times * law.log_moment(order) for law, times in laws)


def _chernoff_epsilon(laws: Laws, order: float, delta: float) -> float:
    return (total_log_moment(laws, order) - math.log(delta)) / order


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


def choose_window(laws: Laws, delta: float) -> Window:
    """Pick a window that holds nearly all tilted mass, and nearly all that matters for delta."""
    tilt = _best_tilt(laws, delta)
    here = total_log_moment(laws, tilt)
    slack = 1e-3 * tilt
    higher, lower = total_log_moment(laws, tilt + slack), total_log_moment(laws, tilt - slack)
    rounding = 1e-14 * (1.0 + abs(here))
    spread = math.sqrt(max(higher - 2 * here + lower, rounding)) / slack
    turns = np.geomspace(0.3, 100.0, 24) / spread
    start = max((_TILTED_TAIL + here - total_log_moment(laws, tilt - turn)) / turn for turn in turns)
    stop = min((total_log_moment(laws, tilt + turn) - here - _TILTED_TAIL) / turn for turn in turns)
    tail_order = min(tilt + turns, key=lambda order: _chernoff_epsilon(laws, order, _TRUNCATION * delta))
    stop = max(stop, start + spread, _chernoff_epsilon(laws, tail_order, _TRUNCATION * delta))
    return Window(tilt, start, stop, (higher - lower) / (2 * slack), float(tail_order))


def rough_delta(parts: Parts, epsilon: float) -> float:
    """Return the delta at which the Renyi bound gives this epsilon, to begin with; it proves nothing."""
    low, high = math.log(LEAST_DELTA), -1e-3
    for _ in range(7):
        middle = 0.5 * (low + high)
        laws = roughly(parts, math.exp(middle))
        if _renyi_epsilon(laws, _best_tilt(laws, math.exp(middle)), math.exp(middle)) > epsilon:
            low = middle
        else:
            high = middle
    return math.exp(high)
