"""Adaptive composition of selections and Gaussian releases, exactly but for a small rounding upwards.

The privacy profile is computed backwards, from the last release to the first. V(x) is the largest delta that
the releases still to come can have at epsilon = x. A release whose loss is l turns V into the mean of
V(x - l); a selection of bounded range e lets the tables choose, knowing the past, any of the two-point losses
t and t - e with probabilities p_t and 1 - p_t, p_t = (1 - e^(t - e)) / (1 - e^-e), so V becomes the largest
mean.

V is convex in a = e^x. It is kept on a grid and joined by chords in a, which lie above it; between two grid
points the mean above is then const - |B| u - |C| / u in u = e^-t, so its maximum is known in closed form.
See docs/guarantees/accounting.md, "Selections".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.pairs import Array, Atoms, SampledGaussianPair
from discreet.privacy.accounting.pld.discretisation import LossLaw, connect_dots, loss_range
from discreet.privacy.accounting.releases import GaussianNoise, Release, Selection

Runs = Sequence[tuple[Release, int]]

# Cells visited by all selections together; one visit takes about 3 ns.
_MOST_WORK = 4e7
_FINEST, _COARSEST = 64, 4
_WIDEST = 300.0
# Rounding of one step, relative to V.
_STEP_ERROR = 1e-13


@dataclass(frozen=True)
class Profile:
    """An upper bound on the profile of some releases: V at x = -reach, ..., reach, chords in e^x between.

    `front` is the mu of the Gaussian releases that come first; they are added when the profile is read.
    """

    step: float
    values: Array
    front: float

    def delta(self, epsilons: Array) -> Array:
        """Return delta at each epsilon."""
        if self.front == 0.0:
            return self._read(np.asarray(epsilons))
        law = _gaussian_law(self.front, None, float(self.values[-1]) + 1e-300)
        means = [float(np.sum(law.masses * self._read(epsilon - law.losses))) + law.infinity for epsilon in epsilons]
        return np.minimum(np.array(means) * (1.0 + 1e-12), 1.0)

    def _read(self, x: Array) -> Array:
        start = -0.5 * self.step * (self.values.size - 1)
        place = np.clip((x - start) / self.step, -1.0, self.values.size)
        cell = np.clip(np.floor(place).astype(np.int64), 0, self.values.size - 2)
        share = np.expm1(self.step * (place - cell)) / math.expm1(self.step)
        chord = self.values[cell] + share * (self.values[cell + 1] - self.values[cell])
        low = 1.0 + (self.values[0] - 1.0) * np.exp(np.minimum(x - start, 0.0))
        return np.where(place < 0.0, low, np.where(place >= self.values.size - 1, self.values[-1], chord))

    def as_pair(self) -> Atoms:
        """Return a pair with this profile without the front, to compose with other kinds of release."""
        a = np.exp(self.step * (np.arange(self.values.size) - 0.5 * (self.values.size - 1)))
        slopes = np.diff(self.values) / np.diff(a)
        intercepts = np.minimum.accumulate(self.values[1:] - slopes * a[1:]) * (1.0 + 1e-9)
        p_above = np.concatenate([[1.0 + 1e-9], intercepts, [self.values[-1]]])
        masses = np.maximum(-np.diff(p_above), 0.0)
        return Atoms(np.log(a), masses, float(self.values[-1]))


def profile(runs: Runs, reach: float) -> Profile | None:
    """Return the profile of runs of Gaussian and selection releases in the order executed.

    Guarantee: the result bounds the delta of the adaptive composition at every epsilon, whatever the number
    of candidates of the selections. None if the runs are too many for the work allowed.
    """
    ranges = [release.epsilon for release, _ in runs if isinstance(release, Selection)]
    count = sum(times for release, times in runs if isinstance(release, Selection))
    narrowest, widest = min(ranges), max(ranges)
    cells = math.sqrt(_MOST_WORK * narrowest / (2.0 * reach * count * widest / narrowest))
    if cells < _COARSEST or reach > _WIDEST:
        return None
    step = _fitting_step(ranges, narrowest / min(cells, _FINEST))
    half = math.ceil(reach / step)
    front, steps = _move_gaussians_first(runs, 4.0 * step, step * _MOST_WORK / (20.0 * half))
    x = step * np.arange(-half, half + 1, dtype=np.float64)
    values = np.maximum(-np.expm1(x), 0.0)
    for release, times in reversed(steps):
        if isinstance(release, Selection):
            for _ in range(times):
                values = _select(values, x, step, math.ceil(release.epsilon / step * (1.0 - 1e-12)))
        else:
            values = _add_gaussian(values, step, math.sqrt(times) * release.mu())
    return Profile(step, values, front)


def _fitting_step(ranges: list[float], largest: float) -> float:
    """Return a step near `largest` of which the ranges are nearly multiples; they get rounded up to one."""
    kinds = np.unique(ranges)
    trials = kinds[0] / np.arange(math.ceil(kinds[0] / largest), 2 * math.ceil(kinds[0] / largest) + 1)
    waste = [float(np.sum(np.ceil(kinds / h * (1 - 1e-12)) * h / kinds - 1.0)) for h in trials]
    return float(trials[int(np.argmin(np.round(waste, 4)))])


def _move_gaussians_first(runs: Runs, smallest: float, most: float) -> tuple[float, list[tuple[Release, int]]]:
    """Split off the Gaussian releases before the first selection, and those that suit the grid badly.

    Those are the ones with mu below `smallest`, and all of them if their mu add up to more than `most`, the
    work allowed. Moving a Gaussian to the front lets later choices depend on its outcome, so it can only raise
    the bound; there it costs no discretisation.
    """
    sizes = [math.sqrt(n) * release.mu() for release, n in runs if isinstance(release, GaussianNoise)]
    smallest = math.inf if math.fsum(sizes) > most else smallest
    front = 0.0
    kept: list[tuple[Release, int]] = []
    for release, times in runs:
        if isinstance(release, GaussianNoise) and (not kept or release.mu() * math.sqrt(times) < smallest):
            front += times * release.mu() ** 2
        else:
            kept.append((release, times))
    return math.sqrt(front), kept


def _select(values: Array, x: Array, step: float, cells: int) -> Array:
    """Return max over 0 <= t <= e of p_t V(x - t) + (1 - p_t) V(x - t + e), where e = cells * step."""
    from discreet.kernels.selection_profile import best_means  # numba is slow to import

    size, decay = values.size, math.exp(-cells * step)
    padded = _pad(values, step, cells + 1)
    a = np.exp(x)
    padded_a = np.exp(x[0] + step * np.arange(-cells - 1, size + cells + 1))
    slopes = np.diff(padded) / np.diff(padded_a)
    intercepts = padded[1:] - slopes * padded_a[1:]
    bounds = np.array([math.exp(-s * step) for s in range(cells + 1)])
    best = best_means(slopes, intercepts, a, bounds, decay)
    return np.minimum(best * (1.0 + _STEP_ERROR), 1.0)


def _add_gaussian(values: Array, step: float, mu: float) -> Array:
    """Return the mean of V(x - l) over the privacy loss l of a Gaussian release, put on the grid upwards."""
    law = _gaussian_law(mu, step, float(values[-1]) + 1e-300)
    positions = np.rint(law.losses / step).astype(np.int64)
    reach = int(np.max(np.abs(positions)))
    kernel = np.zeros(2 * reach + 1)
    kernel[positions + reach] = law.masses
    means = moving_sums(_pad(values, step, reach), kernel)
    # A sum of n positive terms has a relative error below n units in the last place, in any order.
    return np.minimum(means * (1.0 + _STEP_ERROR + 1.2e-16 * kernel.size) + law.infinity, 1.0)


def moving_sums(values: Array, kernel: Array) -> Array:
    """Return what np.convolve(values, kernel, mode="valid") returns, without BLAS.

    NumPy takes one threaded dot product for each result; on a busy machine the threads wait for each other for
    longer than they compute. A transform would be faster, but its error is relative to the largest result.
    """
    windows = np.lib.stride_tricks.sliding_window_view(values, kernel.size)
    return np.asarray(np.einsum("ij,j->i", windows, kernel[::-1].copy(), optimize=False))


def _pad(values: Array, step: float, width: int) -> Array:
    """Continue V to the left by its chord to V = 1 at a = 0, and to the right as a constant."""
    left = 1.0 + (values[0] - 1.0) * np.exp(-step * np.arange(width, 0, -1))
    return np.concatenate([left, values, np.full(width, values[-1])])


def _gaussian_law(mu: float, step: float | None, negligible: float) -> LossLaw:
    """Return the loss of a Gaussian release on multiples of a step (by default a fine one of its own)."""
    pair = SampledGaussianPair(1.0, mu)
    reach = max(loss_range(pair, min(1e-3, 1e-3 * negligible)))
    step = step or reach / 4000
    last = math.ceil(reach / step)
    return connect_dots(pair, step * np.arange(-last, last + 1, dtype=np.float64))
