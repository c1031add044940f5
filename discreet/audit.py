"""Empirical lower bounds on epsilon: what an attacker could show from many runs on two neighbouring tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def epsilon_lower_bound(
    first: FloatArray, second: FloatArray, delta: float, confidence: float = 1.0 - 1e-6
) -> float:
    """A lower bound on epsilon that any (epsilon, delta)-DP mechanism exceeds only by chance.

    `first` and `second` are scalar outputs on two neighbouring tables. Half of the runs choose the best
    threshold test, the other half measures it with Clopper-Pearson bounds, so that the choice is not paid for
    twice.

    Guarantee: if the mechanism is (epsilon, delta)-DP, the result exceeds epsilon with probability at most
    1 - confidence.
    """
    training = np.asarray(first)[::2], np.asarray(second)[::2]
    held_out = np.asarray(first)[1::2], np.asarray(second)[1::2]
    if np.median(training[0]) < np.median(training[1]):
        training, held_out = training[::-1], held_out[::-1]
    cut = _best_cut(*training, delta)
    above = int((held_out[0] > cut).sum()), int((held_out[1] > cut).sum())
    sizes = held_out[0].size, held_out[1].size
    failure = (1.0 - confidence) / 4.0
    bounds = [
        _bound(*_interval(above[0], sizes[0], failure), *_interval(above[1], sizes[1], failure), delta),
        _bound(
            *_interval(sizes[1] - above[1], sizes[1], failure), *_interval(sizes[0] - above[0], sizes[0], failure), delta
        ),
    ]
    return max(0.0, *bounds)


def _best_cut(high: FloatArray, low: FloatArray, delta: float) -> float:
    """The threshold whose empirical ratio, after delta and a margin for chance, is largest."""
    cuts = np.quantile(np.concatenate([high, low]), np.linspace(0.01, 0.99, 99))
    scores = []
    for cut in cuts:
        right = (high > cut).mean(), (low > cut).mean()
        left = (low <= cut).mean(), (high <= cut).mean()
        margin = 5.0 / high.size
        scores.append(max((p - delta) / (q + margin) for p, q in (right, left)))
    return float(cuts[int(np.argmax(scores))])


def _interval(hits: int, trials: int, failure: float) -> tuple[float, float]:
    """Clopper-Pearson limits, each missed with probability at most `failure`."""
    from scipy.stats import beta

    lower = 0.0 if hits == 0 else float(beta.ppf(failure, hits, trials - hits + 1))
    upper = 1.0 if hits == trials else float(beta.ppf(1.0 - failure, hits + 1, trials - hits))
    return lower, upper


def _bound(p_low: float, p_high: float, q_low: float, q_high: float, delta: float) -> float:
    """P(S) <= e^epsilon Q(S) + delta, with P as small and Q as large as the data allow."""
    gain: Any = p_low - delta
    return math.log(gain / q_high) if gain > 0.0 and q_high > 0.0 else 0.0
