"""Two laws on few outcomes, and their divergences, errors and odds computed by definition."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def hockey_stick(p, q, epsilon):
    """The least delta that goes with epsilon for these two laws, in the worse of the two orders."""
    growth = np.exp(epsilon)
    return max(np.maximum(p - growth * q, 0.0).sum(), np.maximum(q - growth * p, 0.0).sum())


def renyi(p, q, order):
    """The larger Renyi divergence of the two orders of the laws."""
    with np.errstate(divide="ignore"):
        logs = np.log(p), np.log(q)
    sums = (logsumexp(order * x + (1.0 - order) * y) for x, y in (logs, logs[::-1]))
    return max(float(total) / (order - 1.0) for total in sums)


def errors(p, q):
    """False positives and false negatives of the best tests: outcomes in the order of their likelihood ratio."""
    order = np.argsort(-np.log(p) + np.log(q))
    accused = np.concatenate([[0.0], np.cumsum(q[order])])
    found = np.concatenate([[0.0], np.cumsum(p[order])])
    return accused, 1.0 - found


def best_false_negative(p, q, false_positive):
    """The curve between the errors of the best tests, where one tosses a coin between two of them."""
    return np.interp(false_positive, *errors(p, q))


def randomised_response(epsilon, delta=0.0):
    """The worst pair that (epsilon, delta)-DP allows: the truth is published with probability delta."""
    likely = (1.0 - delta) / (1.0 + np.exp(-epsilon))
    rare = likely * np.exp(-epsilon)
    tiny = 1e-300  # instead of 0, so that logarithms are finite
    return np.array([max(delta, tiny), likely, rare, tiny]), np.array([tiny, rare, likely, max(delta, tiny)])


def random_pair(seed, outcomes=4, spread=1.0):
    """Two laws with likelihood ratios of moderate size."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(outcomes))
    q = p * np.exp(spread * rng.normal(size=outcomes))
    return p, q / q.sum()
