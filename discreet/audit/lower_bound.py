"""Empirical lower bounds on epsilon: what an attacker could show from many runs on two neighbouring tables."""

from __future__ import annotations

import numpy as np

from discreet._common.types import FloatArray, IntArray


def epsilon_lower_bound(first: FloatArray, second: FloatArray, delta: float, confidence: float = 1.0 - 1e-6) -> float:
    """A lower bound on epsilon that any (epsilon, delta)-DP mechanism exceeds only by chance.

    `first` and `second` are scalar outputs on two neighbouring tables. Half of the runs choose the best
    threshold test, the other half measures it with Clopper-Pearson bounds, so that the choice is free.

    Guarantee: if the mechanism is (epsilon, delta)-DP, the result exceeds epsilon with probability at most
    1 - confidence.
    """
    failure = (1.0 - confidence) / 4.0  # two tests, two one-sided limits each
    training = np.asarray(first)[::2], np.asarray(second)[::2]
    held_out = np.asarray(first)[1::2], np.asarray(second)[1::2]
    if np.median(training[0]) < np.median(training[1]):
        training, held_out = training[::-1], held_out[::-1]
    cuts = np.quantile(np.concatenate(training), np.linspace(0.002, 0.998, 250))
    best = cuts[int(np.argmax(_bounds(*training, cuts, delta, failure)))]
    return float(_bounds(*held_out, np.array([best]), delta, failure)[0])


def _bounds(high: FloatArray, low: FloatArray, cuts: FloatArray, delta: float, failure: float) -> FloatArray:
    """The better of the two one-sided tests at each cut."""
    above_high, above_low = ((sample[None, :] > cuts[:, None]).sum(axis=1) for sample in (high, low))
    right = _log_ratio(above_high, high.size, above_low, low.size, delta, failure)
    left = _log_ratio(low.size - above_low, low.size, high.size - above_high, high.size, delta, failure)
    return np.maximum(np.maximum(right, left), 0.0)


def _log_ratio(
    hits: IntArray, trials: int, false_hits: IntArray, false_trials: int, delta: float, failure: float
) -> FloatArray:
    """P(S) <= e^epsilon Q(S) + delta, with P as small and Q as large as the counts allow."""
    from scipy.stats import beta

    lower = beta.ppf(failure, np.maximum(hits, 1e-9), trials - hits + 1)
    upper = np.where(
        false_hits == false_trials,
        1.0,
        beta.ppf(1.0 - failure, false_hits + 1, np.maximum(false_trials - false_hits, 1e-9)),
    )
    gain = np.maximum(np.where(hits == 0, 0.0, lower) - delta, 1e-300)
    return np.log(gain / upper)
