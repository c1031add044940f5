"""Gaussian differential privacy in closed form: mu, epsilon and delta from one another.

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
from functools import lru_cache
from operator import mul

import numpy as np
from scipy.special import erfcx

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
