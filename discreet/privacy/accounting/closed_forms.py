"""Gaussian, zero-concentrated and Renyi differential privacy in closed form: their costs in epsilon and delta.

A release is mu-GDP when telling two neighbouring tables apart is no easier than telling N(0, 1) from
N(mu, 1). With s = epsilon / mu - mu / 2 and the Mills ratio R(x) = (1 - Phi(x)) / phi(x), its privacy
profile is

    delta(epsilon) = Phi(-s) - e^epsilon Phi(-s - mu) = phi(s) (R(s) - R(s + mu)).

The second form never subtracts e^epsilon times a tiny tail, so it keeps its digits for delta = 1e-300 and
for epsilon = 1e4. Every function rounds to the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import mul

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from discreet.privacy.accounting.pairs import Array

_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_SMALLEST = 5e-324
_NODES = np.polynomial.legendre.leggauss(12)[0]
_WEIGHTS = np.polynomial.legendre.leggauss(12)[1].tolist()
# Beyond this point 1 - x R(x) would cancel, and its asymptotic series has 14 digits.
_SERIES_FROM = 12.0


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the smallest delta for which mu-GDP implies (epsilon, delta)-DP, rounded up.

    Guarantee: the value is an upper bound on Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
    """
    if mu == 0.0 or epsilon == math.inf:
        return 0.0
    if mu == math.inf:
        return 1.0
    log_delta = log_gaussian_delta(epsilon, mu)
    return min(1.0, math.exp(log_delta) + _SMALLEST)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the smallest epsilon >= 0 for which mu-GDP implies (epsilon, delta)-DP, rounded up."""
    if mu == 0.0 or delta >= 1.0:
        return 0.0
    if delta <= 0.0 or mu == math.inf:
        return math.inf
    target = math.log(delta)
    if log_gaussian_delta(0.0, mu) <= target:
        return 0.0
    spread = math.sqrt(max(0.0, -2.0 * math.log(2.0 * delta)))
    upper = mu * (spread + 0.5 * mu) * (1 + 1e-9) + 1e-300
    if upper == math.inf:
        return math.inf

    def excess_and_slope(epsilon: float) -> tuple[float, float]:
        s = epsilon / mu - 0.5 * mu
        log_delta = log_gaussian_delta(epsilon, mu)
        return log_delta - target, -math.exp(min(700.0, _log_phi_mills(s, s + mu) - log_delta))

    root = _bracketed_newton(excess_and_slope, 0.0, upper, start=upper)
    return _nudge(root, lambda epsilon: log_gaussian_delta(epsilon, mu) <= target, upwards=True)


@lru_cache(maxsize=256)  # a plan asks for that of its budget a dozen times
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down.

    Guarantee: any release that is mu-GDP at the returned mu is (epsilon, delta)-DP.
    """
    if delta >= 1.0 or epsilon == math.inf:
        return math.inf
    if delta <= 0.0:
        return 0.0
    target = math.log(delta)
    spread = math.sqrt(max(0.0, -2.0 * math.log(2.0 * delta)))
    lower = max(2.0 * epsilon / (spread + math.sqrt(spread * spread + 2.0 * epsilon)) if epsilon else 0.0, delta)
    upper = 2.0 * lower
    while log_gaussian_delta(epsilon, upper) <= target:
        lower, upper = upper, 2.0 * upper

    def excess_and_slope(mu: float) -> tuple[float, float]:
        s = epsilon / mu - 0.5 * mu
        log_delta = log_gaussian_delta(epsilon, mu)
        return target - log_delta, -math.exp(min(700.0, -0.5 * s * s - _LOG_ROOT_TWO_PI - log_delta))

    root = _bracketed_newton(excess_and_slope, lower, upper, start=lower)
    return _nudge(root, lambda mu: log_gaussian_delta(epsilon, mu) <= target, upwards=False)


def log_gaussian_delta(epsilon: float, mu: float) -> float:
    """Return an upper bound on the logarithm of `gaussian_delta`, for finite epsilon and 0 < mu < inf."""
    s = epsilon / mu - 0.5 * mu
    # The first term covers the special functions, the second the rounding of s itself.
    slack = 1e-12 + 2e-15 * (abs(epsilon) / mu + 0.5 * mu) * (1.0 + abs(s))
    if s > 1e100:  # its square may be too large for a number; Phi(-s) < e^(-s^2 / 2), and s is right to one half
        return -1e199 if s == math.inf or 2e-15 * (epsilon / mu + 0.5 * mu) < 0.1 * s else 0.0
    if s < -5.0:
        value = 0.5 * math.erfc(s * _ROOT_HALF) - math.exp(_log_phi_mills(s, s + mu))
        return min(0.0, math.log(max(value, 0.5)) + slack)
    return min(0.0, -0.5 * s * s - _LOG_ROOT_TWO_PI + math.log(_mills_gap(s, mu)) + slack)


def _log_phi_mills(s: float, x: float) -> float:
    """Return log(phi(s) R(x)) for x > -5, which is epsilon + log Phi(-x) when s and x belong together."""
    return -0.5 * s * s - _LOG_ROOT_TWO_PI + math.log(_mills(x))


def _mills(x: float) -> float:
    return _ROOT_HALF_PI * float(erfcx(x * _ROOT_HALF))


def _mills_gap(s: float, mu: float) -> float:
    """Return R(s) - R(s + mu) to full relative precision: by difference if large, else by quadrature."""
    if mu > 0.05 * max(1.0, s):
        return _mills(s) - _mills(s + mu)
    half = 0.5 * mu
    points = (s + half * (1.0 + _NODES)).tolist()
    return half * sum(map(mul, _WEIGHTS, map(_mills_descent, points)))


def _mills_descent(x: float) -> float:
    """Return -R'(x) = 1 - x R(x), which is positive and falls like 1 / x^2."""
    if x < _SERIES_FROM:
        return 1.0 - x * (_ROOT_HALF_PI * float(erfcx(x * _ROOT_HALF)))
    inverse_square = 1.0 / (x * x)
    term = total = inverse_square
    for odd in range(3, 31, 2):
        term *= -odd * inverse_square
        total += term
    return total


def _bracketed_newton(
    excess_and_slope: Callable[[float], tuple[float, float]], low: float, high: float, start: float
) -> float:
    """Return a root of a decreasing function: Newton steps, with bisection where they leave the bracket."""
    x = start
    for _ in range(200):
        excess, slope = excess_and_slope(x)
        if excess > 0.0:
            low = x
        else:
            high = x
        step = x - excess / slope if slope != 0.0 else math.nan
        new = step if low <= step <= high else 0.5 * (low + high)
        if abs(new - x) <= 1e-15 * abs(new) or high - low <= 1e-15 * high:
            return new
        x = new
    return x


def _nudge(x: float, is_safe: Callable[[float], bool], upwards: bool) -> float:
    """Move x by relative steps of 1e-15, 2e-15, ... to the nearest point found safe."""
    step = 1e-15
    while not is_safe(x):
        x *= (1.0 + step) if upwards else (1.0 - step)
        step *= 2.0
    return x


_HALVINGS = 44  # to 1e-13; what is returned is on the safe side of the answer
_ROUNDING = 1e-12


def epsilon_bound(b: Array, cost: Array, log_delta: float) -> Array:
    """Return, for each order 1 + b with this Renyi cost, an epsilon that holds with delta."""
    return cost - np.log1p(1 / b) - (log_delta + np.log1p(b)) / b


def log_delta_bound(b: Array, cost: Array, epsilon: float) -> Array:
    """Return, for each order 1 + b with this Renyi cost, the logarithm of a delta that holds with epsilon."""
    with np.errstate(over="ignore"):
        return np.maximum(b * (cost - epsilon - np.log1p(1 / b)) - np.log1p(b), -1e300)


def renyi_epsilon(order: float, cost: float, delta: float) -> float:
    """Return an epsilon for which (order, cost)-Renyi DP implies (epsilon, delta)-DP.

    Guarantee: never below the least such epsilon.
    """
    if delta >= 1.0 or cost == 0.0:
        return 0.0
    if delta <= 0.0 or cost == math.inf:
        return math.inf
    b = np.array([order - 1.0])
    found = float(epsilon_bound(b, np.array([cost]), math.log(delta))[0])
    return max(0.0, found + _ROUNDING * (abs(found) + cost))


def renyi_delta(order: float, cost: float, epsilon: float) -> float:
    """Return a delta for which (order, cost)-Renyi DP implies (epsilon, delta)-DP.

    Guarantee: never below the least such delta.
    """
    if cost == 0.0 or epsilon == math.inf:
        return 0.0
    if cost == math.inf:
        return 1.0
    exponent = float(log_delta_bound(np.array([order - 1.0]), np.array([cost]), epsilon)[0])
    return math.exp(min(0.0, exponent + _ROUNDING * (1.0 + abs(exponent)))) + 5e-324


def renyi_false_negatives(false_positives: Array, b: Array, cost: Array) -> Array:
    """Return the least false negatives of any test, given the Renyi divergences of both orders of the tables.

    A test turns the two laws into two coins, whose divergences are no larger; conversely two such coins are a release
    that keeps the promise. So the least error is found by bisection among coins, and more orders only raise it.

    Guarantee: no test has fewer false negatives at these false positives.
    """
    low = np.zeros(false_positives.shape)
    high = 1.0 - false_positives
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        possible = _coins_allowed(false_positives, middle, b, cost)
        low, high = np.where(possible, low, middle), np.where(possible, middle, high)
    return np.where(false_positives == 0.0, 1.0, low)  # nobody who never accuses finds anybody: a finite divergence


def renyi_advantage(b: Array, cost: Array) -> float:
    """Return the most that true minus false positives can be, given the divergences of both orders of the tables.

    The errors that are possible form a convex set, symmetric in the two kinds of error, so that the best attack may be
    taken to have as many of one kind as of the other.

    Guarantee: no test does better.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        error = np.array([0.5 * (1.0 - middle)])
        low, high = (middle, high) if _coins_allowed(error, error, b, cost)[0] else (low, middle)
    return high


def _coins_allowed(false_positives: Array, false_negatives: Array, b: Array, cost: Array) -> Array:
    """Whether coins of heads 1 - false negatives and false positives keep every bound, in both directions."""
    with np.errstate(divide="ignore"):  # each law as the logarithms of its two probabilities
        p = np.log1p(-false_negatives)[:, None], np.log(false_negatives)[:, None]
        q = np.log(false_positives)[:, None], np.log1p(-false_positives)[:, None]
    limit = b * cost * (1.0 + _ROUNDING) + _ROUNDING
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        there, back = (np.logaddexp((1 + b) * x[0] - b * y[0], (1 + b) * x[1] - b * y[1]) for x, y in ((p, q), (q, p)))
    # A comparison with NaN (0 times infinity, at the very ends) is not a proof that the coins are refused.
    return np.asarray(~((there > limit) | (back > limit)).any(axis=1))


_LARGEST_ORDER = 1e150  # any order is valid, and with this one nothing overflows


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon for which rho-zCDP implies (epsilon, delta)-DP.

    Guarantee: for every order a > 1, (a, rho a)-Renyi DP implies the epsilon rho a + log(1 - 1/a) -
    log(delta a) / (a - 1); the best order found is used, and any order is valid.
    """
    if rho == 0.0 or delta >= 1.0:
        return 0.0
    if rho == math.inf or delta <= 0.0:
        return math.inf

    best = min(math.sqrt((1.0 - math.log(delta)) / rho), _LARGEST_ORDER)
    return max(0.0, _smallest(lambda b: epsilon_bound(b, rho * (1 + b), math.log(delta)), best) * (1 + 1e-12))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return a delta for which rho-zCDP implies (epsilon, delta)-DP."""
    if rho == 0.0 or epsilon == math.inf:
        return 0.0
    if rho == math.inf:
        return 1.0

    best = min(max(epsilon - rho, rho) / (2 * rho), _LARGEST_ORDER)
    exponent = _smallest(lambda b: log_delta_bound(b, rho * (1 + b), epsilon), best)
    return math.exp(min(0.0, exponent + 1e-12 * (1 + abs(exponent)))) + 5e-324


def _smallest(bound: Callable[[Array], Array], centre: float) -> float:
    """Return the least value of a bound over a - 1 = b > 0: a wide scan, then a narrow one."""
    wide = centre * np.geomspace(1e-4, 1e4, 400)
    best = int(np.argmin(bound(wide)))
    narrow = np.geomspace(wide[max(best - 1, 0)], wide[min(best + 1, 399)], 200)
    return float(np.min(bound(narrow)))


UP = 1.0 + 1e-12  # covers the rounding of the few operations of a closed form


def product_above(*factors: float) -> float:
    """Return the least double that is not below the product of positive factors, infinite if it is too large."""
    if math.inf in factors:
        return math.inf
    exact = math.prod(map(Fraction, factors))
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def gaussian_false_negatives(false_positives: Array, mu: float) -> Array:
    """Return the least type II errors of tests of N(0, 1) against N(mu, 1): exact."""
    if mu == np.inf:
        return np.zeros(false_positives.shape)
    return np.asarray(ndtr(-ndtri(false_positives) - mu))


def epsilon_grid(largest: float, also_at: tuple[float, ...] = ()) -> Array:
    """Return the epsilons at which a profile is read to draw its curve, from 0 to the largest that matters."""
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 60) * min(largest, 500.0), also_at])
    return np.unique(grid)


def line_false_negatives(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """Return the largest of the lines that proved (epsilon, delta) put under the errors of every test."""
    steep = 1.0 - _rising_lines(false_positives, epsilons, deltas)
    flat = (1.0 - deltas[:, None] - false_positives) * np.exp(-epsilons)[:, None]
    return np.maximum(np.maximum(steep, flat).max(axis=0), 0.0)


def line_true_positives(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """Return the least of the lines that proved (epsilon, delta) put above the true positives of every test.

    For few false positives, of which 1 - `line_false_negatives` has no digit.
    """
    return np.minimum(1.0, _rising_lines(false_positives, epsilons, deltas).min(axis=0) * UP)


def _rising_lines(false_positives: Array, epsilons: Array, deltas: Array) -> Array:
    """delta + e^epsilon times the false positives; e^epsilon alone may be too large for a number."""
    with np.errstate(divide="ignore"):
        growing = np.exp(np.minimum(epsilons[:, None] + np.log(false_positives), 700.0))
    return np.asarray(deltas[:, None] + growing)


_FRACTIONS = 1.0 - np.geomspace(0.01, 0.9, 40)  # of epsilon, at which the deltas are asked for


def excess_bound(deltas: Callable[[Array], Array], epsilon: float, also_at: tuple[float, ...] = ()) -> float:
    """Return the bound of `excess_probability` from a privacy profile, which gives a delta for each epsilon.

    `also_at` are epsilons that are tried as well; only those below `epsilon` tell anything.
    """
    if epsilon <= 0.0:
        return 1.0
    smaller = np.array([*(epsilon * _FRACTIONS), *(e for e in also_at if e < epsilon)])
    return min(1.0, float((deltas(smaller) / -np.expm1(smaller - epsilon)).min()))
