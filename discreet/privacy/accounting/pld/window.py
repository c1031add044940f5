"""Where to compute a composition: a tilt and a window around the epsilon in question, and a grid step.

Nothing here needs to be right for the bound to hold; it decides how tight the bound is and what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair
from discreet.privacy.accounting.pld.discretisation import (
    TRUNCATION,
    Laws,
    LossLaw,
    Parts,
    best_order,
    connect_dots,
    log_moment,
    log_moments,
    loss_range,
    renyi_epsilon,
    roughly,
)

# No smaller delta is resolved.
LEAST_DELTA = 1e-280
# How much of epsilon the grid may add.
_TOLERANCE = 2e-4
_FEWEST_POINTS, _MANY_POINTS, _MOST_POINTS = 2**14, 2**17, 2**21
# Multiples of the step near zero that are all used, and the most that are used far from it.
_CORE, _MOST_EVEN = 4096, 2**15
# Tilts to try, as parts of the order of the best Renyi bound.
_PARTS_OF_TILT = (0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1)
# When tilts are compared: the rounding expected on a tilted point, and the share of delta that it may take.
_EXPECTED_POINT_ERROR, _ROUNDING_SHARE = 1e-14, 1e-3


@dataclass(frozen=True)
class Target:
    """Where the result is to be tight: at this epsilon, where -d log(delta) / d epsilon is about `slope`."""

    epsilon: float
    slope: float


@dataclass(frozen=True)
class Window:
    """The part of the loss axis to compute on, and the tilt under which nearly all mass lies in it.

    `saddle` is the order with the least Renyi bound, `tail_order` the Chernoff order for the mass above the window.
    """

    tilt: float
    start: float
    stop: float
    target: Target
    saddle: float
    tail_order: float

    @property
    def width(self) -> float:
        return self.stop - self.start


def choose_window(laws: Laws, delta: float, target: Target | None = None, lighter: bool = True) -> Window:
    """Pick a window that holds nearly all tilted mass, and nearly all that matters for delta near an epsilon.

    The order of the best Renyi bound is the natural tilt. Where large losses are rare, a lighter one keeps the
    tilted law from reaching far beyond epsilon: the window is then narrower and its grid finer. It costs digits,
    so it is taken only if rounding errors are expected to stay small against delta.
    """
    saddle = best_order(laws, delta)
    if target is None:
        target = Target(renyi_epsilon(laws, saddle, delta), saddle)
    best = _window_at(laws, delta, target, saddle, saddle)
    fine_enough = best.width <= _MANY_POINTS * choose_step(best, laws)
    for part in () if fine_enough or not lighter else _PARTS_OF_TILT:
        trial = _window_at(laws, delta, target, part * saddle, saddle)
        if trial.width < 0.8 * best.width and _expected_rounding(trial, laws) < math.log(_ROUNDING_SHARE * delta):
            best = trial
    return best


def _expected_rounding(window: Window, laws: Laws) -> float:
    """Return the logarithm of what rounding errors on all tilted points are expected to add to delta."""
    cells = window.tilt * window.width / _MOST_POINTS
    at_epsilon = log_moment(laws, window.tilt) - window.tilt * window.target.epsilon
    return math.log(_EXPECTED_POINT_ERROR) + at_epsilon - math.log(math.expm1(min(cells, 700.0)))


def _window_at(laws: Laws, delta: float, target: Target, tilt: float, saddle: float) -> Window:
    here = log_moment(laws, tilt)
    difference = 1e-3 * tilt
    higher, lower = log_moment(laws, tilt + difference), log_moment(laws, tilt - difference)
    rounding = 1e-14 * (1.0 + abs(here))
    spread = math.sqrt(max(higher - 2 * here + lower, rounding)) / difference
    # Tilted mass outside the window wraps into it; at epsilon it is untilted by at most e^(here - tilt * epsilon).
    log_tail = math.log(TRUNCATION) - max(0.0, here - tilt * target.epsilon - math.log(delta))
    # Some orders near the tilt on the scale of the tilted law, some on that of the tilt: rare large losses, which
    # the spread does not show, make K rise steeply.
    turns = np.unique(np.concatenate([np.geomspace(0.3, 100.0, 24) / spread, np.geomspace(3e-3, 3.0, 24) * tilt]))
    above, below = log_moments(laws, tilt + turns), log_moments(laws, tilt - turns)
    start = float(np.max((log_tail + here - below) / turns))
    tails = (above - math.log(TRUNCATION * delta)) / (tilt + turns)
    stop = max(float(np.min((above - here - log_tail) / turns)), start + spread, float(np.min(tails)))
    return Window(tilt, start, stop, target, saddle, float(tilt + turns[int(np.argmin(tails))]))


def choose_step(window: Window, laws: Laws) -> float:
    """Choose the largest step whose effect on epsilon, growth of the variance * (slope + 1) / 2, is tolerable.

    Splitting a loss between the ends of a cell adds step^2 / 6 to the variance on average, or loss * step
    when the loss is much smaller than the step.
    """
    steps = window.width / np.geomspace(_FEWEST_POINTS, _MOST_POINTS, 41)
    growth = np.zeros(steps.shape)
    mean = 0.0
    for law, times in laws:
        masses = law.tilted_masses(window.saddle)
        each = np.minimum(steps[:, None] ** 2 / 6.0, steps[:, None] * np.abs(law.losses))
        growth += times * np.sum(each * masses, axis=1)
        mean += times * float(np.sum(masses * law.losses))
    scale = max(window.target.epsilon, 0.1 * mean, 1e-9)
    fine = 0.5 * (window.target.slope + 1.0) * growth <= _TOLERANCE * scale
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


def rough_delta(parts: Parts, epsilon: float) -> float:
    """Return the delta at which the Renyi bound gives this epsilon, to begin with; it proves nothing."""
    low, high = math.log(LEAST_DELTA), -1e-3
    for _ in range(7):
        middle = 0.5 * (low + high)
        laws = roughly(parts, math.exp(middle))
        if renyi_epsilon(laws, best_order(laws, math.exp(middle)), math.exp(middle)) > epsilon:
            low = middle
        else:
            high = middle
    return math.exp(high)
