"""Measured errors beside bounds: simple loops that do exactly what a theorem is about, many runs at once."""

from __future__ import annotations

import math

import numpy as np

STANDARD_ERRORS = 4.5  # of a mean over the runs: a false alarm has probability below 1e-5


def mean_under(errors, bound):
    """Whether the mean of the errors is below a bound on their expectation, as far as so many runs can tell."""
    errors = np.asarray(errors)
    return bool(errors.mean() <= bound.value + STANDARD_ERRORS * errors.std() / math.sqrt(errors.size))


def mean_over(errors, bound):
    """Whether the errors refute a bound on their expectation."""
    errors = np.asarray(errors)
    return bool(errors.mean() > bound.value + STANDARD_ERRORS * errors.std() / math.sqrt(errors.size))


def seldom_over(errors, bound):
    """Whether the errors exceed a bound as seldom as its probability says."""
    failure = 1.0 - bound.probability
    allowed = failure + STANDARD_ERRORS * math.sqrt(failure * (1.0 - failure) / len(errors))
    return bool((np.asarray(errors) > bound.value).mean() <= allowed)


def quadratic(rng, columns, least=0.05):
    """A positive definite matrix whose eigenvalues are at least the least times the largest, and its diagonal."""
    directions = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    matrix = (directions * np.geomspace(least, 1.0, columns)) @ directions.T
    return matrix, np.diag(matrix).copy()


def gumbel_choice(rng, scores, scale):
    """A row of candidates in each row of scores: the index with the largest noisy score."""
    return np.argmax(scores + scale * rng.gumbel(size=scores.shape), axis=1)


def greedy_excesses(rng, matrix, start, steps, scale, deviation, runs):
    """f(w_T) for f(w) = w'Aw / 2 after greedy coordinate descent with Gumbel and normal noise, from one start."""
    smooth = np.diag(matrix)
    w = np.tile(start, (runs, 1))
    for _ in range(steps):
        gradient = w @ matrix
        j = gumbel_choice(rng, np.abs(gradient) / np.sqrt(smooth), scale)
        noise = deviation * np.sqrt(smooth[j]) * rng.normal(size=runs)
        w[np.arange(runs), j] -= (gradient[np.arange(runs), j] + noise) / smooth[j]
    return 0.5 * ((w @ matrix) * w).sum(axis=1)


def frank_wolfe_points(rng, gradient_of, vertices, steps, scale, runs, shares):
    """The points after steps of Frank-Wolfe from the first vertex, with Gumbel noise in the choices."""
    w = np.tile(vertices[0], (runs, 1))
    for t in range(steps):
        chosen = gumbel_choice(rng, -gradient_of(w) @ vertices.T, scale)
        w += shares(t) * (vertices[chosen] - w)
    return w
