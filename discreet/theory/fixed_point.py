"""How close a noisy fixed-point iteration comes to its fixed point, in expected squared distance; noisy ADMM is one.

Theorem and proof: docs/guarantees/fixed-point.md. The assumptions are the caller's: nothing here reads rows, and a
contraction factor that was measured on private rows is not public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet._common.checks import number_in, whole
from discreet.theory.bound import Bound

GRID_POINTS = 400  # step sizes that are tried at first, from the smallest to 1, at equal ratios
LARGEST_COUNT = 10**307  # of steps: still a double
SMALLEST_STEP_SIZE = 1e-6  # below it an iteration hardly moves in a million steps


@dataclass(frozen=True)
class NoisyContraction:
    """The iteration u_b <- u_b + lam (R_b(u) + error + noise - u_b) of active blocks b, for a contraction R.

    Proved for: R with Lipschitz constant `contraction` < 1; noise of mean zero that is independent of the past and of
    the error; every block active with probability `frequency`, independently of the past, of noise and error. A
    non-expansive map after each step, acting on each block alone, changes nothing if u* is the fixed point of both
    together.

    Parameters
    ----------
    contraction : float
        tau, in [0, 1).
    noise : float
        Expected squared norm of the noise on the whole vector R(u): p sigma^2 for deviation sigma on p entries.
    step_size : float, default=1
        lam, in (0, 1].
    frequency : float, default=1
        q, in (0, 1].
    error : float, default=0
        zeta: the expected squared norm of the errors of the whole vector R(u) is at most zeta^2, whatever happened
        before.

    Examples
    --------
    >>> from discreet.theory.fixed_point import NoisyContraction
    >>> run = NoisyContraction(contraction=0.5, noise=0.03)
    >>> round(run.after(10, start=4.0), 5), round(run.limit, 5)
    (0.04, 0.04)
    >>> run.steps_to(0.05, start=4.0)
    5
    >>> run.with_best_step_size(10, start=4.0).step_size < 1.0
    True
    """

    contraction: float
    noise: float
    step_size: float = 1.0
    frequency: float = 1.0
    error: float = 0.0

    def __post_init__(self) -> None:
        tau = number_in("contraction", self.contraction, 0.0, 1.0)
        if tau == 1.0:
            raise ValueError("contraction must be below 1: an operator that is only non-expansive has no such bound.")
        number_in("noise", self.noise, 0.0)
        number_in("step_size", self.step_size, 0.0, 1.0, above=True)
        number_in("frequency", self.frequency, 0.0, 1.0, above=True)
        number_in("error", self.error, 0.0)

    @property
    def _lost(self) -> float:
        """Which part of the expected squared distance an active step takes away: 1 - c^2, or 1 - c with errors."""
        away = self.step_size * (1.0 - self.contraction)  # 1 - c
        return away if self.error > 0.0 else away * (2.0 - away)

    @property
    def factor(self) -> float:
        """By what the bound on the expected squared distance is multiplied in a step."""
        return 1.0 - self.frequency * self._lost

    @property
    def added(self) -> float:
        """What noise and errors add to the bound in a step."""
        return self.frequency * self._lost * self.limit

    @property
    def limit(self) -> float:
        """The bound after infinitely many steps."""
        size, away = self.step_size, 1.0 - self.contraction
        if self.error > 0.0:  # lam^2 (zeta^2 / (1 - c) + N) / (1 - c), 1 - c = lam (1 - tau)
            ratio = self.error / away
            return ratio * ratio + size * self.noise / away
        return size * self.noise / (away * (2.0 - size * away))

    def after(self, steps: int, start: float) -> float:
        """Return the bound on E |u_steps - u*|^2 from E |u_0 - u*|^2 <= start."""
        steps, start = whole("steps", steps, least=0), number_in("start", start, 0.0)
        left, gone = self._left_and_gone(steps)
        return left * start + (gone * self.limit if gone > 0.0 else 0.0)

    def _left_and_gone(self, steps: int) -> tuple[float, float]:
        """factor^steps and 1 - factor^steps, both with all their digits: the limit may be large and `gone` small."""
        lost = self.frequency * self._lost
        if steps == 0 or lost >= 1.0:
            return (1.0, 0.0) if steps == 0 else (0.0, 1.0)
        power = float(min(steps, LARGEST_COUNT)) * math.log1p(-lost)
        return math.exp(power), -math.expm1(power)

    def steps_to(self, target: float, start: float) -> int:
        """Return the fewest steps after which the bound is at most `target`."""
        target, start = number_in("target", target, 0.0, above=True), number_in("start", start, 0.0)
        if start <= target:
            return 0
        if target <= self.limit:
            raise ValueError(
                f"no number of steps brings the bound below {self.limit:g}, and target is {target:g}; "
                "use a smaller step size, less noise, or a larger target."
            )
        enough = 1
        while self.after(enough, start) > target:
            enough *= 2
            if enough > LARGEST_COUNT:
                raise ValueError(f"more than {LARGEST_COUNT:g} steps are needed.")
        few = enough // 2  # too few; the bound does not rise with the steps, as start > target > limit
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if self.after(middle, start) <= target else (middle, enough)
        return enough

    def with_best_step_size(self, steps: int, start: float) -> NoisyContraction:
        """Return the same iteration with the constant step size for which the bound after so many steps is least."""
        steps, start = whole("steps", steps, least=1), number_in("start", start, 0.0)

        def bound(size: float) -> float:
            return replace(self, step_size=size).after(steps, start)

        low, high = SMALLEST_STEP_SIZE, 1.0
        for _ in range(4):  # each round is finer by the number of points
            sizes = np.minimum(np.geomspace(low, high, GRID_POINTS), 1.0)
            best = int(np.argmin([bound(float(size)) for size in sizes]))
            low, high = float(sizes[max(best - 1, 0)]), float(sizes[min(best + 1, GRID_POINTS - 1)])
        found = replace(self, step_size=float(sizes[best]))
        return found if found.after(steps, start) < self.after(steps, start) else self


def fixed_point_bound(
    steps: int,
    *,
    start: float,
    contraction: float,
    noise: float,
    step_size: float = 1.0,
    frequency: float = 1.0,
    error: float = 0.0,
) -> Bound:
    """Return `NoisyContraction(...).after(steps, start)` with what it is about.

    Parameters
    ----------
    steps : int
    start : float
        At least E |u_0 - u*|^2.
    contraction, noise, step_size, frequency, error : as for `NoisyContraction`

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import fixed_point_bound
    >>> round(fixed_point_bound(10, start=4.0, contraction=0.5, noise=0.03).value, 5)
    0.04
    """
    run = NoisyContraction(contraction, noise, step_size, frequency, error)
    return Bound(
        run.after(steps, start),
        "expected squared distance from the fixed point, in the norm in which the operator contracts",
        "docs/guarantees/fixed-point.md",
        True,
        ("noise of mean zero, independent of the past and of the errors", "blocks are drawn independently of the past"),
        {"steps": float(steps), "limit": run.limit},
    )


def printed_rate(steps: int, start: float, contraction: float, noise: float, frequency: float, error: float) -> Bound:
    """Return equation 2 of Bellet's slides (2024), after Cyffers, Bellet and Basu (2023), as printed.

    Order only. It adds the norm of the noise to its square, numbers of different units, and speaks of a step size
    without saying which. `NoisyContraction` has exact constants and is smaller.
    """
    run = NoisyContraction(contraction, noise, 1.0, frequency, error)
    steps, start = whole("steps", steps, least=0), number_in("start", start, 0.0)
    away, q = 1.0 - run.contraction, run.frequency
    fading = (1.0 - q**2 * away / 8.0) ** steps * start
    first = (math.sqrt(noise) + error) / (math.sqrt(q) * away)
    second = (noise + error * error) / (q * away) / (q * away) / (q * away)  # a power would raise an error for inf
    return Bound(
        fading + 8.0 * (first + second),
        "expected squared distance from the fixed point",
        "Bellet's slides (2024), equation 2; it adds numbers of different units, a distance and its square",
        proved=False,
    )


def admm_bound(
    steps: int,
    *,
    start: float,
    noise: float,
    prox_step: float,
    strong_convexity: float,
    smoothness: float,
    relaxation: float = 0.5,
    frequency: float = 1.0,
) -> Bound:
    """Return how close the dual variables u come to their fixed point.

    The iteration u <- u + 2 relaxation (prox_f(2 z - u) - z + noise / 2) with z = prox_r(u), for any closed convex r:
    u <- u + relaxation (R(u) + noise - u), R = (2 prox_f - 1)(2 prox_r - 1). For consensus ADMM, f is the sum of the
    functions of all participants, each of its own copy of the weights.

    Parameters
    ----------
    steps : int
    start : float
        At least E |u_0 - u*|^2.
    noise : float
        Expected squared norm of the noise on all of u in a step (before it is multiplied by `relaxation`).
    prox_step : float
        Length of the proximal steps.
    strong_convexity, smoothness : float
        Of f: of every participant's function, not of their mean.
    relaxation : float, default=0.5
        Above 0, at most 1; 1/2 is plain ADMM.
    frequency : float, default=1
        Probability with which each participant is active in a step.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from discreet.theory import admm_bound
    >>> bound = admm_bound(50, start=4.0, noise=0.03, prox_step=1.0, strong_convexity=1.0, smoothness=1.0)
    >>> round(bound.value, 4)
    0.01
    """
    gamma = number_in("prox_step", prox_step, 0.0, above=True)
    low = number_in("strong_convexity", strong_convexity, 0.0, above=True)
    high = number_in("smoothness", smoothness, 0.0)
    if high < low:
        raise ValueError("smoothness cannot be below strong_convexity.")
    contraction = max(abs(1.0 - gamma * low) / (1.0 + gamma * low), abs(gamma * high - 1.0) / (gamma * high + 1.0))
    run = NoisyContraction(contraction, noise, number_in("relaxation", relaxation, 0.0, 1.0, above=True), frequency)
    return Bound(
        run.after(steps, start),
        "expected squared Euclidean distance of the dual variables from their fixed point",
        "docs/guarantees/fixed-point.md, with the contraction of Giselsson and Boyd (2017)",
        True,
        (
            "every participant's function has the strong convexity and the smoothness given",
            "exact proximal maps; noise of mean zero, independent of the past",
        ),
        {"contraction": contraction, "steps": float(steps)},
    )
