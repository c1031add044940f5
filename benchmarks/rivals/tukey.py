"""TukeyEM: private least squares that needs no bounds (Amin, Joseph, Ribero and Vassilvitskii, 2022); our own code.

Rows are dealt at random to m parts and each part is fitted by least squares. A replaced row moves one of the m vectors
of coefficients. The depth of a point is the least number of these vectors on either side of it in any coordinate, so
that one row changes every depth by at most 1; the points of depth at least i are a box of volume V_i, and
V_{i+1}(D) <= V_i(D') <= V_{i-1}(D) for neighbours D, D'. Half of epsilon pays for a test, half (e below) for a draw.

The draw has the density exp(e depth / 2) on the box of depth t = m / 4. Let A_k(D) be the least value over g >= 1 of
exp(-e g / 2) V_{t-1-k}(D) / V_{t+g+k}(D). Points of the box of D' outside that of D have the depth t - 1 in D;
the mass of such points is at most V_{t-1} exp(e (t-1) / 2), that of all at least V_{t+g} exp(e (t+g) / 2). Likewise the
box of D has points outside that of D' only where the depth in D is t. This gives, for all S,
P_D(S) <= exp(e) P_D'(S) + (1 + exp(e / 2)) A_0(D). As A_0(D') <= A_1(D), the draw is private between D and all its
neighbours, in both directions, where A_1(D) <= delta / (1 + exp(e / 2)).

The test draws only where K + Laplace(1 / e) >= log(1 / (2 delta)) / e, where K is the largest k >= 1 with
A_k <= delta / (1 + exp(e / 2)), or 0. K changes by at most 1, since A_k(D') <= A_{k+1}(D). If K is 0 for both
neighbours, a draw happens with probability at most delta for either; else the draw is private as said. So the whole is
(epsilon, delta)-DP for replaced rows: the paper's proof with other constants.
"""

from __future__ import annotations

import math

import numpy as np

MOST_MODELS = 1000  # the paper's number of parts


class RefusedError(Exception):
    """No model is given, which the private test decided, or public facts: too few rows."""


def coefficients(X: np.ndarray, y: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator) -> np.ndarray:
    """Private coefficients of least squares; `RefusedError` where the test finds the fits too far apart.

    Guarantee: (epsilon, delta)-differential privacy for replaced rows, whether or not a model is given.
    """
    half, models = 0.5 * epsilon, number_of_models(*X.shape)
    threshold = math.log(0.5 / delta) / half
    if models // 4 - 2 < threshold:
        raise RefusedError(f"{models} models are too few to pass the test: {4 * math.ceil(threshold + 2)} are needed")
    ends = np.sort(fits(X, y, models, rng), axis=0)
    volumes = log_volumes(ends)
    if distance(volumes, half, delta) + rng.laplace(scale=1.0 / half) < threshold:
        raise RefusedError("the private test found the fits of the parts too far apart")
    return draw(ends, volumes, half, rng)


def number_of_models(rows: int, columns: int) -> int:
    """As many as have a row for each coefficient, 1,000 at most: from public facts alone."""
    return min(MOST_MODELS, rows // columns)


def fits(X: np.ndarray, y: np.ndarray, models: int, rng: np.random.Generator) -> np.ndarray:
    """Least squares on each part, one row of coefficients for each; zeros where a part gives nothing finite."""
    parts = np.array_split(rng.permutation(len(y)), models)
    found = np.array([_least_squares(X[part], y[part]) for part in parts])
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)


def _least_squares(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.lstsq(X, y, rcond=None)[0]
    except np.linalg.LinAlgError:  # one row must not stop the whole
        return np.zeros(X.shape[1])


def log_volumes(ends: np.ndarray) -> np.ndarray:
    """The log-volume of the box of depth at least i, for i = 1, ..., m // 2 (the first entry is that of depth 1)."""
    half = len(ends) // 2
    with np.errstate(divide="ignore"):
        return np.log(ends[::-1][:half] - ends[:half]).sum(axis=1)


def distance(volumes: np.ndarray, epsilon: float, delta: float) -> int:
    """K of the proof: by how many replaced models the table is at least away from one with an unsafe draw."""
    t, limit = len(volumes) // 2, math.log(delta) - np.logaddexp(0.0, 0.5 * epsilon)
    for k in range(t - 2, 0, -1):
        if log_tail(volumes, t, k, epsilon) <= limit:
            return k
    return 0


def log_tail(volumes: np.ndarray, t: int, k: int, epsilon: float) -> float:
    """log A_k of the proof; depths count from 1, entries of `volumes` from 0."""
    inner = volumes[t + k :]  # of the depths t + k + 1, t + k + 2, ...: g = 1, 2, ...
    if not inner.size or not np.isfinite(inner[0]):
        return math.inf
    return float(volumes[t - 2 - k] + np.min(-0.5 * epsilon * np.arange(1, inner.size + 1) - inner))


def draw(ends: np.ndarray, volumes: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """A point of the box of depth t, with the density exp(epsilon depth / 2)."""
    t = len(volumes) // 2
    depths = np.arange(t, len(volumes) + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shells = volumes[t - 1 :] + np.log1p(-np.exp(np.append(volumes[t:], -np.inf) - volumes[t - 1 :]))
    shells = np.where(np.isfinite(volumes[t - 1 :]), shells, -np.inf)
    depth = int(depths[np.argmax(0.5 * epsilon * depths + shells + rng.gumbel(size=depths.size))])
    low, high = ends[depth - 1], ends[-depth]
    if depth == len(volumes):
        return rng.uniform(low, high)
    return _between(low, high, ends[depth], ends[-depth - 1], rng)


def _between(low: np.ndarray, high: np.ndarray, inner_low: np.ndarray, inner_high: np.ndarray, rng) -> np.ndarray:
    """A uniform point of a box outside an inner one: first the first coordinate in which it is outside."""
    outer, inner = high - low, inner_high - inner_low
    with np.errstate(divide="ignore"):
        before = np.concatenate([[0.0], np.cumsum(np.log(inner))[:-1]])
        after = np.concatenate([np.cumsum(np.log(outer)[::-1])[::-1][1:], [0.0]])
        weights = before + np.log(np.maximum(outer - inner, 0.0)) + after
    first = int(np.argmax(weights + rng.gumbel(size=weights.size)))
    point = rng.uniform(low, high)
    point[:first] = rng.uniform(inner_low[:first], inner_high[:first])
    step = rng.uniform(0.0, outer[first] - inner[first])
    left = inner_low[first] - low[first]
    point[first] = low[first] + step if step < left else inner_high[first] + (step - left)
    return point


def scores(cell, epsilon: float) -> np.ndarray:
    """Predictions for the held-out rows; for numbers to predict only. Nothing is told: it needs no ranges."""
    if cell.classes:
        raise RefusedError("for numbers to predict only")
    rng = np.random.default_rng(cell.seed)
    X, held_out = (np.column_stack([part, np.ones(len(part))]) for part in (cell.X, cell.held_out))
    return held_out @ coefficients(X, cell.y, epsilon, cell.delta, rng)
