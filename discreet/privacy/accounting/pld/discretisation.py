"""Put a privacy loss on a grid without ever understating it, and the moments and the Renyi bound that follow.

The connect-the-dots rule: the mass that P and Q give to the losses between two neighbouring grid points is moved to
these two points so that both totals are kept. The new pair has the chords of the old profile (as a function of
e^epsilon) for its profile, and a chord of a convex function lies above it: the new pair dominates the old one.

K(t) = log E e^(t * loss), summed over all releases, is t times the Renyi divergence of order 1 + t.

Then where to compute a composition: a tilt and a window around the epsilon in question, and a grid step. Nothing of
these needs to be right for the bound to hold; they decide how tight it is and what it costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Pair

# Above this loss e^loss times a tail of Q is not reliable; rounding every loss up is.
_ROUND_UP_FROM = 600.0


@dataclass(frozen=True)
class LossLaw:
    """A privacy loss with finitely many values: masses under P, and the mass of an infinite loss."""

    losses: Array
    masses: Array
    infinity: float

    def log_moment(self, order: float) -> float:
        """Return log E_P[e^(order * loss)], leaving out the infinite loss."""
        exponents = order * self.losses
        top = float(np.max(exponents))
        return top + float(np.log(np.sum(self.masses * np.exp(exponents - top))))

    def moment_error(self, order: float) -> float:
        """Return a bound on the rounding error of `log_moment`: of its sum, and of the exponents."""
        return 4e-15 + 3e-16 * abs(order) * float(np.max(np.abs(self.losses)))

    def tilted_masses(self, order: float) -> Array:
        """Return the masses multiplied by e^(order * loss) and normalised to sum to one."""
        return np.exp(np.log(self.masses) + order * self.losses - self.log_moment(order))


def connect_dots(pair: Pair, losses: Array) -> LossLaw:
    """Return a law on the given increasing losses, 0 and a negative one among them, that dominates `pair`.

    Guarantee: the hockey-stick divergence of the result is at least that of the pair at every epsilon; losses
    above the grid become infinite, losses below it are raised to its first point, and rounding goes upwards.
    """
    zero = int(np.searchsorted(losses, 0.0))
    p_below, q_below = pair.below(losses[:zero])
    p_above, q_above = pair.above(losses[zero:])
    p_steps, p_error = _steps(p_below, p_above)
    q_steps, q_error = _steps(q_below, q_above)
    growth = np.exp(np.minimum(losses[:-1], _ROUND_UP_FROM))
    share = -np.expm1(-np.diff(losses))
    raised = (p_steps - growth * q_steps + p_error + growth * q_error) / share
    raised = np.where(losses[:-1] > _ROUND_UP_FROM, p_steps, np.clip(raised, 0.0, p_steps))
    masses = np.append(p_steps - raised, 0.0)
    masses[1:] += raised
    masses[0] += p_below[0]
    held = masses > 0.0
    return LossLaw(losses[held], masses[held], float(p_above[-1]))


def _steps(below: Array, above: Array) -> tuple[Array, Array]:
    """Return the mass between neighbouring points and a bound on its rounding error."""
    middle = 1.0 - above[0] - below[-1]
    steps = np.concatenate([np.diff(below), [middle], -np.diff(above)])
    size = np.concatenate([below[1:], [1.0], above[:-1]])
    # exp(-y^2 / 2) loses about y^2 / 2 = -log(size) units in the last place.
    error = size * (2e-15 - 5e-16 * np.log(np.maximum(size, 1e-300)))
    return np.maximum(steps, 0.0), error


def loss_range(pair: Pair, mass: float) -> tuple[float, float]:
    """Return (down, up) such that P puts at most `mass` below -down, and at most `mass` above up."""
    candidates = np.geomspace(1e-12, 1e6, 800)
    return _first_small(pair.below(-candidates)[0], mass), _first_small(pair.above(candidates)[0], mass)


def _first_small(tails: Array, mass: float) -> float:
    too_much = np.flatnonzero(tails > mass)
    return float(np.geomspace(1e-12, 1e6, 800)[min(too_much[-1] + 1, 799)]) if too_much.size else 1e-12


Parts = list[tuple[Pair, int]]
Laws = list[tuple[LossLaw, int]]

# Share of the target delta that truncated tails may take.
TRUNCATION = 1e-5


def negligible_mass(parts: Parts, delta: float) -> float:
    """Return the tail of one release that may be counted as an infinite loss."""
    return TRUNCATION * delta / sum(times for _, times in parts)


def roughly(parts: Parts, delta: float) -> Laws:
    """Put each pair on a coarse grid, geometric on both sides of zero."""
    laws: Laws = []
    for pair, times in parts:
        down, up = loss_range(pair, negligible_mass(parts, delta))
        grid = np.geomspace(1e-10, 1.0, 1200)
        laws.append((connect_dots(pair, np.concatenate([-down * grid[::-1], [0.0], up * grid])), times))
    return laws


def log_moment(laws: Laws, order: float) -> float:
    """Return K(order)."""
    return sum(times * law.log_moment(order) for law, times in laws)


def moment_error(laws: Laws, order: float) -> float:
    """Return a bound on the rounding error of K(order)."""
    return sum(times * law.moment_error(order) for law, times in laws)


def log_moments(laws: Laws, orders: Array) -> Array:
    """Return K at many orders, for choices that prove nothing."""
    total = np.zeros(orders.shape)
    for law, times in laws:
        exponents = orders[:, None] * law.losses + np.log(law.masses)
        top = np.max(exponents, axis=1)
        total += times * (top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1)))
    return total


def infinite_mass(laws: Laws) -> float:
    """Return the probability that a loss is infinite."""
    return -math.expm1(sum(times * math.log1p(-law.infinity) for law, times in laws))


def renyi_epsilon(laws: Laws, order: float, delta: float) -> float:
    """Return the epsilon of Renyi DP at 1 + order."""
    return (log_moment(laws, order) - math.log(delta) - _log_gain(order)) / order


def renyi_delta(laws: Laws, order: float, epsilon: float) -> float:
    """Return the logarithm of the delta of Renyi DP at 1 + order."""
    return log_moment(laws, order) - order * epsilon - _log_gain(order)


def _log_gain(order: float) -> float:
    """Return -log of the largest (1 - e^-x) e^(-order x) over x > 0."""
    return order * math.log1p(1.0 / order) + math.log1p(order)


def best_order(laws: Laws, delta: float) -> float:
    """Return the order that makes the Renyi bound on epsilon least; its tilted mean is near that epsilon.

    The search narrows down, because with rare large losses K leaps from nearly 0 to its slope within a few per
    cent of an order. A bounded loss can make the best order infinite; the smallest nearly best one serves as well.
    """
    orders = np.geomspace(1e-4, 1e7, 104)
    for _ in range(4):
        gains = orders * np.log1p(1.0 / orders) + np.log1p(orders)
        bounds = (log_moments(laws, orders) - math.log(delta) - gains) / orders
        least = float(np.min(bounds))
        best = int(np.flatnonzero(bounds <= least + 1e-3 * abs(least))[0])
        order = float(orders[best])
        orders = np.geomspace(orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)], 9)
    return order


def certified_renyi_epsilon(laws: Laws, delta: float) -> float:
    """Return an upper bound on epsilon at delta, rounding errors and infinite losses included."""
    left = delta - infinite_mass(laws)
    if left <= 0.0:
        return math.inf
    order = best_order(laws, left)
    return max(0.0, renyi_epsilon(laws, order, left) + _slack(laws, order) / order)


def certified_renyi_delta(laws: Laws, epsilon: float, order: float) -> float:
    """Return an upper bound on delta at epsilon, rounding errors and infinite losses included."""
    return min(1.0, math.exp(min(0.0, renyi_delta(laws, order, epsilon) + _slack(laws, order))) + infinite_mass(laws))


def _slack(laws: Laws, order: float) -> float:
    """Bound the rounding error of K, of the gain and of their sum."""
    return moment_error(laws, order) + 1e-15 * (abs(log_moment(laws, order)) + order) + 1e-12


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
