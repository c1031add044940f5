"""Logistic regression on categories from noisy two-way marginals: a method that was tried out.

A prototype: noise comes from NumPy, nothing is planned or booked. It is not part of the package. Under `replace` one
table of counts moves by sqrt(2) in the Euclidean norm, and all K (K - 1) / 2 tables of pairs of K features (the label
is one) together by sqrt(K (K - 1)). A gradient clipped to norm C moves by 2 C.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from datasets.categories import Categories
from framework import Method
from scipy.special import expit

from discreet import Budget, Problem
from discreet.data.public import Public
from discreet.problem.losses import Logistic
from discreet.solvers._shared.descents import GRADIENT_CLIP
from discreet.solvers.newton.planning import default_steps

MOMENT_SHARE = 0.4  # of the budget, in mu^2; the rest is divided equally between the gradient steps
LEAST_CURVATURE = 0.15  # of the logistic loss, in the step length
DAMPING = 0.8


def marginal_model(table: Categories, mu: float, rng, steps: int, moment: str = "pairs") -> tuple[np.ndarray, float]:
    """Coefficients of the one-hot columns and the intercept; mu-GDP under `replace`, given the number of rows.

    `moment="rows"` releases the sum of outer products of the whole 0/1 rows instead of the tables of counts.
    """
    share = MOMENT_SHARE if steps else 1.0
    counts, deviation, groups = released_counts(table, mu * math.sqrt(share), rng, moment)
    start, whitening = least_squares(counts / len(table.y), groups, deviation / len(table.y))
    weights, means, _rate = start
    if steps:
        weights = gradient_steps(table, start, whitening, mu * math.sqrt((1.0 - share) / steps), steps, rng)
    return weights[:-1], float(weights[-1] - means @ weights[:-1])


def released_counts(table: Categories, mu: float, rng, moment: str):
    """The matrix of all pairs of 0/1 columns, the two of the label last, with noise; made non-negative."""
    rows, features = len(table.y), len(table.levels) + 1
    Z = np.column_stack([table.one_hot(), 1 - table.y, table.y])
    ends = np.cumsum([0, *table.levels, 2])
    groups = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    counts = Z.T @ Z
    if moment == "pairs":
        deviation = math.sqrt(features * (features - 1)) / mu
        noise = np.triu(rng.normal(size=counts.shape), 1) * deviation
        counts = counts + noise + noise.T
        sizes = [_sizes_from_pairs(counts, groups, k) for k in range(features)]
    else:  # rows of squared norm `features`: the sum moves by sqrt(2) times that; symmetric noise
        deviation = math.sqrt(2.0) * features / mu / math.sqrt(2.0)
        noise = rng.normal(size=counts.shape) * deviation * math.sqrt(2.0)
        counts = counts + (noise + noise.T) / 2.0
        sizes = [np.diag(counts)[group] for group in groups]
    for k, one in enumerate(groups):
        counts[np.ix_(one, one)] = np.diag(_with_total(sizes[k], rows))
        for other in groups[:k]:
            pair = counts[np.ix_(one, other)]
            counts[np.ix_(one, other)] = _with_total(pair.ravel(), rows).reshape(pair.shape)
            counts[np.ix_(other, one)] = counts[np.ix_(one, other)].T
    return counts, deviation, groups


def _sizes_from_pairs(counts, groups, k):
    """How often each level occurs: the mean over all tables that hold the feature, weighted by their noise."""
    sums = [counts[np.ix_(groups[k], other)].sum(axis=1) / other.size for j, other in enumerate(groups) if j != k]
    return np.sum(sums, axis=0) / sum(1.0 / other.size for j, other in enumerate(groups) if j != k)


def _with_total(values, total):
    """The nearest non-negative numbers that sum to the public number of rows."""
    ordered = np.sort(values)[::-1]
    cuts = (np.cumsum(ordered) - total) / np.arange(1, values.size + 1)
    return np.maximum(values - cuts[np.flatnonzero(ordered > cuts)[-1]], 0.0)


def least_squares(moments, groups, deviation):
    """Weights (the intercept of centred columns last), means and label rate; and the map that whitens the columns.

    At the constant model the logistic loss has the gradient -cov(x, y) and the Hessian rate (1 - rate) cov(x).
    """
    columns, label = np.concatenate(groups[:-1]), groups[-1][1]
    means, rate = np.diag(moments)[columns], float(np.clip(moments[label, label], 1e-3, 1.0 - 1e-3))
    covariance = moments[np.ix_(columns, columns)] - np.outer(means, means)
    values, vectors = np.linalg.eigh(covariance)
    lifted = np.maximum(values, 0.0) + math.sqrt(columns.size) * deviation  # by half the edge of the noise
    whitening = vectors / np.sqrt(lifted)
    gradient = moments[columns, label] - means * rate
    weights = whitening @ (whitening.T @ gradient) / (rate * (1.0 - rate))
    return (np.append(weights, math.log(rate / (1.0 - rate))), means, rate), whitening


def gradient_steps(table, start, whitening, mu, steps, rng):
    """Noisy gradient steps of cost mu each in the whitened columns; the mean of the second half."""
    weights, means, rate = start
    rows, variance = len(table.y), rate * (1.0 - rate)
    Z = np.column_stack([(table.one_hot() - means) @ whitening, np.ones(rows)])
    norms, columns = np.linalg.norm(Z, axis=1), Z.shape[1]
    u = np.append(np.linalg.lstsq(whitening, weights[:-1], rcond=None)[0], weights[-1])
    clip, path = GRADIENT_CLIP.at(2.0 / (mu * rows)) * math.sqrt(columns * variance), []
    for _ in range(steps):
        slopes = expit(Z @ u) - table.y
        factors = np.minimum(1.0, clip / np.maximum(np.abs(slopes) * norms, 1e-300))
        gradient = (Z.T @ (factors * slopes) + rng.normal(size=columns) * 2.0 * clip / mu) / rows
        u = u - DAMPING * gradient / max(variance, LEAST_CURVATURE)
        path.append(u)
    u = np.mean(path[steps // 2 :], axis=0)
    return np.append(whitening @ u[:-1], u[-1])


def by_marginals(steps: bool, moment: str = "pairs"):
    """The `run` of a method: as many steps as `newton` makes, or none."""

    def run(race, setting, seed):
        table, mu, rng = race.train, race.mu(setting["epsilon"]), race.rng(seed)
        columns, budget = sum(table.levels), Budget.gdp(mu)
        public = Public.of(len(table.y), columns)
        count = default_steps(Problem(Logistic()), budget, public, columns + 1) if steps else 0
        coef, intercept = marginal_model(table, mu, rng, count, moment)
        return race.judged(expit(race.X @ coef + intercept))

    return run


methods = [
    Method("one-hot: marginals alone", "all two-way counts and one Newton step", by_marginals(False), ("one_hot",)),
    Method("one-hot: marginals, then steps", "two-way counts, then gradients", by_marginals(True), ("one_hot",)),
    Method(
        "one-hot: second moment, then steps",
        "outer products of the rows, then gradients",
        by_marginals(True, "rows"),
        ("one_hot",),
    ),
]
