"""The best of a random number of trials: its privacy profile from that of one trial.

Let one trial have the profile delta(e). With the law of the number of trials there are shifts c_i and weights t_i,
which sum to the expected number of trials, such that the best trial has the profile sum_i t_i delta(e - c_i).
Theorem and proof: docs/guarantees/private-search.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.privacy.accounting.certificates import certify_composition, deltas_of
from discreet.privacy.accounting.closed_forms import UP, gaussian_delta
from discreet.privacy.accounting.pairs import Array, Atoms
from discreet.privacy.accounting.releases import Composition, TrialsLaw

_CELLS = 6_000  # of the probability that a trial is better; a cell is rounded to the safe side
_SHIFTS = 300
_LOWEST_SHIFT = 14.0  # below the largest one; a chord goes from there to w = 0
_EPSILONS = 700
_FURTHEST = 500.0
_MIRRORED = 20.0  # up to this epsilon a bound is also used at -epsilon, where 1 - e^-epsilon has digits left
_SLACK = 1.0 + 1e-9  # for the rounding of slopes and sums
_TAILS = (1e-20, 1e-15, 1e-10, 1e-6)  # deltas at which the profile of one trial may end


@dataclass(frozen=True, eq=False)
class TrialProfile:
    """The profile of one trial: delta on a grid of epsilons from 0, and the test errors that it allows.

    `mu` is given if the trial is Gaussian, for which everything is known in closed form.
    """

    epsilons: Array
    values: Array
    mu: float | None = None

    @classmethod
    def of(cls, trials: tuple[Composition, ...]) -> TrialProfile:
        """The profile of a trial that costs one of several compositions, it is not said which: the largest."""
        if all(trial.only_gaussian for trial in trials):
            mu = max(trial.gaussian_mu for trial in trials)
            grid = _grid(max(_end(trial) for trial in trials), 1_500)
            return cls(grid, np.array([gaussian_delta(float(e), mu) for e in grid]), mu)
        grid = _grid(max(_end(trial) for trial in trials), 400)
        return cls(grid, np.max([deltas_of(trial, grid) for trial in trials], axis=0))

    def delta(self, epsilons: Array) -> Array:
        """An upper bound on delta at epsilons of either sign: chords in e^epsilon, as the profile is convex in it."""
        size = np.abs(epsilons)
        found = UP * np.interp(np.exp(np.minimum(size, self.epsilons[-1])), np.exp(self.epsilons), self.values)
        mirrored = -np.expm1(-size) + np.exp(-size) * found
        return np.minimum(1.0, np.where(epsilons >= 0.0, found, UP * mirrored))

    def largest(self, probabilities: Array) -> Array:
        """The most that an event of such a probability can have under the neighbouring table."""
        if self.mu is not None:
            return np.minimum(1.0, _SLACK * ndtr(ndtri(probabilities) + self.mu))
        best = np.ones(probabilities.shape)
        for epsilon, delta in zip(self.epsilons, self.values, strict=True):
            rising = math.exp(epsilon) * probabilities + delta
            best = np.minimum(best, np.minimum(rising, 1.0 - math.exp(-epsilon) * (1.0 - probabilities - delta)))
        return np.minimum(1.0, UP * best)


def _end(trial: Composition) -> float:
    """The last epsilon of the grid: a pure cost, or where delta has become negligible."""
    if not trial.totals:
        return 0.0
    certified = (certify_composition(trial, delta).epsilon for delta in _TAILS)
    return min(_FURTHEST, trial.pure_epsilon(), next((end for end in certified if end < math.inf), _FURTHEST))


def _grid(end: float, points: int) -> Array:
    return np.linspace(0.0, max(end, 1e-9), points)


def shifts_and_weights(law: TrialsLaw, largest: Callable[[Array], Array]) -> tuple[Array, Array]:
    """The shifts c_i, in decreasing order, and the weights t_i of the theorem.

    With g = law.rate and h = largest, max over u of (g(u) - w g(h(u))) is a convex function of w; its chords between
    the points w_i = e^(c_i) have their corners there, and t_i is w_i times the change of slope.
    """
    u = np.expm1(np.linspace(math.log(law.gamma), 0.0, _CELLS + 1) - math.log(law.gamma)) * law.gamma / (1 - law.gamma)
    u[0], u[-1] = 0.0, 1.0
    top = law.rate(u[:-1]) * UP  # each cell: g at its left end, g(h) at its right end
    bottom = law.rate(largest(u[1:])) / UP
    last = int(np.argmax(top / bottom))  # beyond it both g and the ratio are smaller
    top, bottom = top[: last + 1], bottom[: last + 1]
    most = float(top[last] / bottom[last])
    w = most * np.exp(-np.concatenate([[0.0], np.geomspace(1e-4, _LOWEST_SHIFT, _SHIFTS)]))
    heights = np.array([float(np.max(top - bottom * point)) for point in w[1:]])
    slopes = -np.diff(np.concatenate([[0.0], heights, [float(top[0])]])) / np.diff(np.append(w, 0.0))
    changes = np.diff(np.concatenate([[0.0], slopes]))
    return np.log(w), np.maximum(changes, 0.0) * w


@lru_cache(maxsize=64)
def best_profile(trials: tuple[Composition, ...], law: TrialsLaw) -> tuple[Array, Array]:
    """Epsilons from 0, and for each an upper bound on the delta of the best of K trials."""
    one = TrialProfile.of(trials)
    shifts, weights = shifts_and_weights(law, one.largest)
    epsilons = np.linspace(0.0, min(float(one.epsilons[-1] + shifts[0]), _FURTHEST), _EPSILONS)
    summed = np.sum(weights * one.delta(epsilons[:, None] - shifts), axis=1)
    # The same with the largest shift for all, and at most one event of its kind in all trials.
    once = law.any_of(one.delta(epsilons - shifts[0]))
    return epsilons, np.minimum(1.0, _SLACK * np.minimum(summed, once))


@lru_cache(maxsize=64)
def best_pair(trials: tuple[Composition, ...], law: TrialsLaw) -> Atoms:
    """A pair, the same for both orders of the tables, that dominates the best of K trials."""
    epsilons, deltas = best_profile(trials, law)
    x = np.exp(epsilons)
    # What holds for both orders of the tables holds at 1/x as well; and the largest convex function below is a bound.
    near = (epsilons > 0.0) & (epsilons <= _MIRRORED)
    mirrored = (1.0 - 1.0 / x[near] + deltas[near] / x[near])[::-1]
    points = np.concatenate([[0.0], 1.0 / x[near][::-1], x]), np.concatenate([[1.0], mirrored, deltas])
    corners = _lower_hull(*points)
    x, height = points[0][corners], points[1][corners]
    slopes = np.append(np.diff(height) / np.diff(x), 0.0)
    masses = x[1:] * np.diff(slopes)
    return Atoms(np.log(x[1:]), np.maximum(masses, 0.0), infinity=float(height[-1]))


def _lower_hull(x: Array, y: Array) -> list[int]:
    """The corners of the largest convex function below some points, x increasing."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            j, k = kept[-2], kept[-1]
            if (y[k] - y[j]) * (x[i] - x[j]) <= (y[i] - y[j]) * (x[k] - x[j]):
                break
            kept.pop()
        kept.append(i)
    return kept


def pure_cost(epsilon: float, law: TrialsLaw) -> float:
    """The pure epsilon of the best of K trials that are epsilon-DP each: epsilon and the largest shift."""
    if epsilon == math.inf:
        return math.inf
    # Two coins are the worst case: u = 1 / (1 + e^epsilon) against 1 - u.
    rare = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    mixed = law.gamma + (1.0 - law.gamma) * np.array([1.0 - rare, rare])
    return (epsilon + (law.eta + 1.0) * math.log(mixed[0] / mixed[1])) * UP
