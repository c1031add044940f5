"""The privacy profile of a composition by another way than the package's: inversion of a Laplace transform.

With the loss l of a pair (P, Q) and K(s) the sum of log E_P e^(s l) over all releases, for any t > 0,

    delta(epsilon) = 1/(2 pi) * integral over w of e^(K(s) - s epsilon) / (s (s + 1)),   s = t + i w

(the transform of (1 - e^-x)_+ is 1 / (s (s + 1))). Losses are never put on a grid: moments are closed forms or
Gauss-Legendre quadratures over the output of the mechanism, written as log(1 + E(e^(s l) - 1)) so that a power of a
million keeps its digits. With t at the saddle point the integrand has no cancellation beyond a few digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

Moment = Callable[[np.ndarray], np.ndarray]  # s -> log E_P e^(s l)


def gaussian_moment(mu: float) -> Moment:
    return lambda s: 0.5 * mu * mu * s * (s + 1.0)


def laplace_moment(epsilon: float) -> Moment:
    """Laplace noise of scale 1 / epsilon: atoms at both ends, a density between them."""

    def log_moment(s: np.ndarray) -> np.ndarray:
        middle = (np.exp((s + 0.5) * epsilon) - np.exp(-(s + 0.5) * epsilon)) / (s + 0.5)
        ends = np.exp(s * epsilon) + np.exp(-(s + 1.0) * epsilon)
        return np.log(0.5 * ends + 0.25 * math.exp(-0.5 * epsilon) * middle)

    return log_moment


def bounded_range_moment(epsilon: float) -> Moment:
    """The worst selection of bounded range epsilon: density proportional to e^(x / 2) on [-epsilon, epsilon]."""
    scale = 0.5 * math.exp(-0.5 * epsilon) / -math.expm1(-epsilon)
    return lambda s: np.log(scale * (np.exp((s + 0.5) * epsilon) - np.exp(-(s + 0.5) * epsilon)) / (s + 0.5))


def mixture_moments(shifts: Sequence[float], weights: Sequence[float]) -> tuple[Moment, Moment]:
    """sum of w_i N(shift_i, 1) against N(0, 1), and the reverse."""
    y, log_null = _outputs(max(shifts))
    loss = _log_mixture(y, shifts, weights)
    return _moment(loss, log_null + loss), _moment(-loss, log_null)


def poisson_moments(rate: float, shift: float) -> tuple[Moment, Moment]:
    """A record that takes part with probability `rate`, against its absence, and the reverse."""
    return mixture_moments((0.0, shift), (1.0 - rate, rate))


def poisson_replace_moment(rate: float, shift: float) -> Moment:
    y, log_null = _outputs(shift)
    here = _log_mixture(y, (0.0, shift), (1.0 - rate, rate))
    return _moment(here - _log_mixture(y, (0.0, -shift), (1.0 - rate, rate)), log_null + here)


def fixed_size_moment(rate: float, shift: float) -> Moment:
    """The sampled pair where its loss is positive, mirrored below zero; the rest of the mass has no loss."""
    # The loss is positive from y = shift / 2 on.
    y, log_null = _outputs(shift, start=0.5 * shift)
    loss = _log_mixture(y, (0.0, shift), (1.0 - rate, rate))
    masses = log_null + loss
    return _moment(np.concatenate([loss, -loss]), np.concatenate([masses, masses - loss]))


def _outputs(shift: float, start: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Nodes over the outputs and the logarithm of the standard normal mass of each."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-14.0 if start is None else start, 14.0 + 12.0 * shift, 300)
    half = 0.5 * np.diff(edges)
    y = (0.5 * (edges[1:] + edges[:-1])[:, None] + half[:, None] * nodes).ravel()
    return y, np.log((half[:, None] * weights).ravel()) - 0.5 * y * y - 0.5 * math.log(2.0 * math.pi)


def _log_mixture(y: np.ndarray, shifts: Sequence[float], weights: Sequence[float]) -> np.ndarray:
    """log of the sum of w_i e^(shift_i y - shift_i^2 / 2), exact near zero."""
    small = sum(w * np.expm1(np.minimum(s * y - 0.5 * s * s, 500.0)) for s, w in zip(shifts, weights, strict=True))
    parts = [math.log(w) + s * y - 0.5 * s * s for s, w in zip(shifts, weights, strict=True)]
    return np.where(small < 1.0, np.log1p(np.minimum(small, 1.0)), np.logaddexp.reduce(parts, axis=0))


def _moment(losses: np.ndarray, log_masses: np.ndarray) -> Moment:
    """log(1 + sum of p (e^(s l) - 1)) for nodes with losses l and masses p; e^(s l) - 1 is written in real terms."""

    def at(t: float, w: np.ndarray) -> np.ndarray:
        grown = np.exp(log_masses + t * losses)
        gained = np.where(t * losses > 1.0, grown - np.exp(log_masses), np.exp(log_masses) * np.expm1(t * losses))
        held = (grown > 1e-40) | (np.abs(gained) > 1e-40)
        values = np.empty(w.size, dtype=complex)
        for i in range(0, w.size, 256):
            angles = np.outer(w[i : i + 256], losses[held])
            half = np.sin(0.5 * angles)
            real = np.sum(gained[held] - 2.0 * grown[held] * half * half, axis=1)
            values[i : i + 256] = real + 1j * np.sum(grown[held] * np.sin(angles), axis=1)
        return np.log1p(values)

    def log_moment(s: np.ndarray) -> np.ndarray:
        s = np.asarray(s, dtype=complex)
        if np.all(s.real == s.real[0]):
            return at(float(s.real[0]), s.imag)
        return np.concatenate([at(float(x.real), np.array([x.imag])) for x in s])

    return log_moment


@dataclass(frozen=True)
class Profile:
    """The profile of a composition of (moment, times), tuned to one epsilon or delta."""

    parts: tuple[tuple[Moment, int], ...]

    def log_moment(self, s: np.ndarray) -> np.ndarray:
        return np.asarray(sum(times * moment(np.asarray(s, dtype=complex)) for moment, times in self.parts))

    def epsilon(self, delta: float, points: int = 4000) -> float:
        """The epsilon at delta, to about five digits if there are enough points."""
        saddle, bound = self._saddle(delta)
        found = bound
        for _ in range(2):  # the second time the contour is placed for the epsilon that the first time found
            found = self._solve(delta, self._transform(delta, saddle, found, points), bound)
        return found

    def _solve(self, delta: float, transform: Callable[[float], float], bound: float) -> float:
        """The largest epsilon with that delta; far below it the transform has no digits left."""
        high = bound
        low = high
        while transform(low) <= delta:
            high, low = low, low - bound / 400
            if low < 0.0:
                return 0.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if transform(middle) > delta else (low, middle)
        return high

    def _transform(self, delta: float, saddle: float, near: float, points: int) -> Callable[[float], float]:
        """delta as a function of epsilon, good near `near`.

        The trapezoidal rule with period T computes the sum over m of delta(epsilon + m T) e^(t m T). Chernoff's
        bound at an order above t makes the terms m > 0 small, t T >= 60 those with m < 0. Of the t that leave
        nine digits of delta (or most digits), the one with the least period is taken. The integral is cut off smoothly.
        """
        orders = saddle * np.geomspace(0.1, 4.0, 60)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments = np.array([float(self.log_moment(np.array([order])).real[0]) for order in orders])
        lost = moments - orders * near - math.log(delta)
        most = max(math.log(1e7), float(np.nanmin(lost)) + 1.0)
        contours = []
        for i in range(orders.size - 1):
            if lost[i] < most:
                reach = (moments[i + 1 :] - math.log(delta) - orders[i] * near + 35.0) / (orders[i + 1 :] - orders[i])
                contours.append((near + max(60.0 / orders[i], float(np.nanmin(reach))), i))
        period, best = min(contours)
        t, top = float(orders[best]), float(moments[best])
        w = (2.0 * math.pi / period) * np.arange(points)
        s = t + 1j * w
        late = np.clip(2.0 * w / w[-1] - 1.0, 0.0, 1.0 - 1e-9)
        exponents = self.log_moment(s) - top - np.log(s * (s + 1.0)) + 1.0 - 1.0 / (1.0 - late * late)
        weights = np.where(np.arange(points) == 0, 0.5, 1.0) * 2.0 / period

        def inverse(epsilon: float) -> float:
            values = np.exp(exponents - 1j * w * epsilon).real * weights
            return float(np.sum(values)) * math.exp(top - t * epsilon)

        return inverse

    def _saddle(self, delta: float) -> tuple[float, float]:
        """The order with the least Renyi bound on epsilon, and that bound."""
        orders = np.geomspace(1e-2, 1e5, 60)
        for _ in range(3):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                moments = self.log_moment(orders).real
            bounds = (moments - math.log(delta) - np.log1p(orders)) / orders - np.log1p(1.0 / orders)
            best = int(np.argmin(np.where(np.isfinite(bounds), bounds, np.inf)))
            order, bound = float(orders[best]), float(bounds[best])
            orders = np.geomspace(orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)], 12)
        return order, bound


def attained_delta(rate: float, shift: float, other: float, times: int, epsilon: float) -> float:
    """A delta that an attack attains, in closed form: "was some output above c?", at the best c.

    Each output is N(0, 1), or with probability `rate` N(shift, 1) on one table and N(other, 1) on the other.
    """
    c = np.linspace(0.0, 40.0, 4001)
    unsampled = (1.0 - rate) * ndtr(-c)
    p_never = times * np.log1p(-unsampled - rate * ndtr(shift - c))
    q_never = times * np.log1p(-unsampled - rate * ndtr(other - c))
    return float(np.max(-np.expm1(p_never) + math.exp(epsilon) * np.expm1(q_never)))


def attained_epsilon(rate: float, shift: float, other: float, times: int, delta: float) -> float:
    """An epsilon below which the attack has more than delta, so that no proof can go below it."""
    low, high = 0.0, 700.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        attained = attained_delta(rate, shift, other, times, middle)
        low, high = (middle, high) if attained > delta else (low, middle)
    return low
