"""Empirical lower bounds on epsilon and mu: what many runs or selections on two neighbouring tables show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet._common.types import FloatArray, IntArray
from discreet.privacy.mechanisms import Sensitivity
from discreet.privacy.random.generator import RandomGenerator, secure_generator

CONFIDENCE = 1.0 - 1e-6  # that a bound is not above the truth
GAP = 5.0  # by how much the candidate that is watched lies below the others, in units of the sensitivity
CUTS = 250  # thresholds from which the best one is chosen

# (hits, trials, false hits, false trials) at each threshold -> the bound at each threshold
Bound = Callable[[IntArray, int, IntArray, int], FloatArray]


def epsilon_lower_bound(first: FloatArray, second: FloatArray, delta: float, confidence: float = CONFIDENCE) -> float:
    """A lower bound on epsilon that any (epsilon, delta)-DP mechanism exceeds only by chance.

    Half of the runs choose the best threshold test, the other half measures it with Clopper-Pearson limits, so that the
    choice is free.

    Parameters
    ----------
    first, second : ndarray of shape (runs,)
        What an attacker computed from the outputs of independent runs on two neighbouring tables, one number for each.
    delta : float
        The delta of the promise.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    float
        At least 0.

    Guarantee: if the mechanism is (epsilon, delta)-DP, the result exceeds epsilon with probability at most
    1 - confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.audit import epsilon_lower_bound
    >>> rng = np.random.default_rng(0)
    >>> bound = epsilon_lower_bound(rng.normal(1.0, 1.0, 10_000), rng.normal(0.0, 1.0, 10_000), delta=0.1)
    >>> bool(0.7 < bound < 1.19)  # two normal laws one deviation apart have epsilon = 1.19 at this delta
    True
    """
    failure = (1.0 - confidence) / 4.0  # two tests, two one-sided limits each

    def bound(hits: IntArray, trials: int, false_hits: IntArray, false_trials: int) -> FloatArray:
        gain = np.maximum(at_least(hits, trials, failure) - delta, 1e-300)
        return np.log(gain / at_most(false_hits, false_trials, failure))

    return _best_threshold(first, second, bound)


def mu_lower_bound(first: FloatArray, second: FloatArray, confidence: float = CONFIDENCE) -> float:
    """A lower bound on mu that any mu-Gaussian-DP mechanism exceeds only by chance.

    Like `epsilon_lower_bound`, with the errors of a test translated into the distance of two normal laws. Where the
    mechanism is Gaussian it uses all of the trade-off curve and needs far fewer runs. `LowerBounds.gaussian_epsilon`
    turns it into an epsilon at any delta, which says something about promises of Gaussian DP only.

    Parameters
    ----------
    first, second : ndarray of shape (runs,)
        What an attacker computed from the outputs of independent runs on two neighbouring tables, one number for each.
    confidence : float
        Probability that the bound holds.

    Returns
    -------
    float
        At least 0.

    Guarantee: if the mechanism is mu-GDP, the result exceeds mu with probability at most 1 - confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.audit import mu_lower_bound
    >>> rng = np.random.default_rng(0)
    >>> bound = mu_lower_bound(rng.normal(1.0, 1.0, 10_000), rng.normal(0.0, 1.0, 10_000))
    >>> bool(0.7 < bound < 1.0)
    True
    """
    from scipy.special import ndtri

    failure = (1.0 - confidence) / 4.0

    def bound(hits: IntArray, trials: int, false_hits: IntArray, false_trials: int) -> FloatArray:
        power, size = at_least(hits, trials, failure), at_most(false_hits, false_trials, failure)
        return np.where((power > 0.0) & (size < 1.0), ndtri(np.maximum(power, 1e-300)) - ndtri(size), 0.0)

    return _best_threshold(first, second, bound)


def _best_threshold(first: FloatArray, second: FloatArray, bound: Bound) -> float:
    """The bound of the threshold that is best on half of the runs, measured on the other half."""
    training = np.asarray(first)[::2], np.asarray(second)[::2]
    held_out = np.asarray(first)[1::2], np.asarray(second)[1::2]
    if min(len(sample) for sample in held_out) == 0:
        raise ValueError("a lower bound needs at least two runs on each table.")
    if np.median(training[0]) < np.median(training[1]):
        training, held_out = training[::-1], held_out[::-1]
    cuts = np.quantile(np.concatenate(training), np.linspace(0.002, 0.998, CUTS))
    best = cuts[int(np.argmax(_either_side(*training, cuts, bound)))]
    return float(_either_side(*held_out, np.array([best]), bound)[0])


def _either_side(high: FloatArray, low: FloatArray, cuts: FloatArray, bound: Bound) -> FloatArray:
    """The better of the two one-sided tests at each cut."""
    above_high, above_low = ((sample[None, :] > cuts[:, None]).sum(axis=1) for sample in (high, low))
    right = bound(above_high, high.size, above_low, low.size)
    left = bound(low.size - above_low, low.size, high.size - above_high, high.size)
    return np.maximum(np.maximum(right, left), 0.0)


def at_least(hits: IntArray, trials: int, failure: float) -> FloatArray:
    """The lower Clopper-Pearson limit of a probability."""
    from scipy.stats import beta

    return np.where(hits == 0, 0.0, beta.ppf(failure, np.maximum(hits, 1e-9), trials - hits + 1))


def at_most(hits: IntArray, trials: int, failure: float) -> FloatArray:
    """The upper Clopper-Pearson limit of a probability."""
    from scipy.stats import beta

    return np.where(hits == trials, 1.0, beta.ppf(1.0 - failure, hits + 1, np.maximum(trials - hits, 1e-9)))


def selection_lower_bound(
    mechanism: Any, candidates: int = 3, runs: int = 60_000, gap: float = GAP, rng: RandomGenerator | None = None
) -> float:
    """A lower bound on the epsilon of one selection, on the neighbours that are worst for noisy maxima.

    The score of one candidate rises by the sensitivity and those of all others fall by it, from well below them: noise
    with heavy tails then hides less than it does when all scores move alike.

    Parameters
    ----------
    mechanism : object with choose(rng, scores, sensitivity)
        Such as `GumbelGreedy`.
    candidates : int
    runs : int
        Selections on each table.
    gap : float
        How far the candidate lies below the others, in sensitivities.
    rng : RandomGenerator, optional

    Returns
    -------
    float

    Guarantee: exceeds the epsilon of the selection with probability at most 1e-6.
    """
    generator, unit = rng or secure_generator(), Sensitivity(1.0, 1.0)
    low = np.zeros(candidates)
    low[0] = -gap
    high = low - 1.0
    high[0] = low[0] + 1.0
    wins = [sum(mechanism.choose(generator, scores, unit) == 0 for _ in range(runs)) for scores in (high, low)]
    failure = 0.5 * (1.0 - CONFIDENCE)
    lower, upper = at_least(np.array(wins[0]), runs, failure), at_most(np.array(wins[1]), runs, failure)
    return float(max(0.0, np.log(max(float(lower), 1e-300) / float(upper))))
