"""Rates without noise hold on random problems; the slips of the printed ones are found out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.theory import (
    greedy_coordinate_descent_bound,
    proximal_coordinate_descent_bound,
    proximal_gradient_bound,
    proximal_sgd_bound,
)
from tests.bound_tools import greedy_excesses, mean_under, quadratic


def soft(v, level):
    return np.sign(v) * np.maximum(np.abs(v) - level, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_proximal_gradient_descent(seed):
    """f(w) = w'Aw/2 - b'w plus an l1 penalty; the optimum from many steps."""
    rng, level = np.random.default_rng(seed), 0.1
    matrix, _ = quadratic(rng, 6)
    slope = rng.normal(size=6)

    def value(w):
        return 0.5 * w @ matrix @ w - slope @ w + level * np.abs(w).sum()

    def after(w, steps, step):
        for _ in range(steps):
            w = soft(w - step * (matrix @ w - slope), step * level)
        return w

    best = after(np.zeros(6), 5_000, 1.0)
    for start in (np.zeros(6), 3.0 * rng.normal(size=6)):
        away = float(np.linalg.norm(start - best))
        for steps, step in [(1, 1.0), (10, 0.5), (40, 1.0)]:
            w = after(start, steps, step)
            known = {"step": step, "smoothness": 1.0, "distance": away}
            assert value(w) - value(best) <= proximal_gradient_bound(steps, **known).value + 1e-12
            strong = proximal_gradient_bound(steps, convexity=0.05, **known)
            assert np.linalg.norm(w - best) ** 2 <= strong.value <= strong.settings["printed"]


@pytest.mark.parametrize("seed", range(2))
def test_proximal_sgd(seed):
    """Least squares of single rows."""
    rng, runs, rows = np.random.default_rng(seed), 400, 30
    X = rng.normal(size=(rows, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.normal(size=rows)
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    value = lambda w: 0.5 * ((w @ X.T - y) ** 2).mean(axis=1)  # noqa: E731
    variance = float((((X @ best - y)[:, None] * X) ** 2).sum(axis=1).mean())
    start = best + 2.0
    known = {"smoothness": 1.0, "distance": 2.0 * math.sqrt(3.0), "variance": variance}
    least, mu = float(value(best[None])[0]), float(np.linalg.eigvalsh(X.T @ X / rows).min())
    for step, convexity in [(0.125, None), (0.5, mu)]:
        w, total = np.tile(start, (runs, 1)), 0.0
        for _ in range(60):
            total = total + w
            i = rng.integers(0, rows, runs)
            w = w - step * ((w * X[i]).sum(axis=1) - y[i])[:, None] * X[i]
        if convexity is None:
            gap = float(value(start[None])[0]) - least
            assert mean_under(value(total / 60) - least, proximal_sgd_bound(60, step=step, gap=gap, **known))
        else:
            bound = proximal_sgd_bound(60, step=step, convexity=convexity, **known)
            assert mean_under(((w - best) ** 2).sum(axis=1), bound)


@pytest.mark.parametrize("seed", range(3))
def test_coordinate_descent_random_and_greedy(seed):
    rng, columns, runs = np.random.default_rng(seed), 5, 400
    matrix, smooth = quadratic(rng, columns)
    start = rng.normal(size=columns)
    gap, away = 0.5 * float(start @ matrix @ start), float(np.sqrt((smooth * start**2).sum()))
    root = np.sqrt(smooth)
    mu = float(np.linalg.eigvalsh(matrix / np.outer(root, root)).min())
    radius = math.sqrt(columns * 2.0 * gap / mu)
    for steps in (1, 8, 50):
        w = np.tile(start, (runs, 1))
        for _ in range(steps):
            j = rng.integers(0, columns, runs)
            w[np.arange(runs), j] -= (w @ matrix)[np.arange(runs), j] / smooth[j]
        excess = 0.5 * ((w @ matrix) * w).sum(axis=1)
        plain = proximal_coordinate_descent_bound(steps, columns, gap=gap, distance=away)
        assert mean_under(excess, plain)
        assert plain.value <= plain.settings["printed"]
        assert mean_under(excess, proximal_coordinate_descent_bound(steps, columns, gap=gap, convexity=mu))
        greedy = greedy_excesses(rng, matrix, start, steps, 0.0, 0.0, 1)[0]
        assert greedy <= greedy_coordinate_descent_bound(steps, radius=radius).value
        assert greedy <= greedy_coordinate_descent_bound(steps, gap=gap, radius=radius).value
        assert greedy <= greedy_coordinate_descent_bound(steps, gap=gap, l1_convexity=mu / columns).value


def test_greedy_descent_on_a_loss_that_is_linear_far_out():
    """Huber losses of many coordinates, which bend only near the optimum: a rate of 1/t, within 8 times."""
    columns, curvature = 5, 40.0
    slope = lambda w: np.clip(curvature * w, -1.0, 1.0)  # noqa: E731
    w, radius = np.ones(columns), math.sqrt(curvature) * columns
    for steps in range(1, 150):
        j = int(np.argmax(np.abs(slope(w))))
        w[j] -= slope(w)[j] / curvature
        excess = float(np.where(np.abs(w) < 1.0 / curvature, 0.5 * curvature * w**2, np.abs(w) - 0.5 / curvature).sum())
        bound = greedy_coordinate_descent_bound(steps, radius=radius, gap=columns).value
        assert excess <= bound
        assert steps > 100 or excess > bound / 8.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: proximal_gradient_bound(5, step=1.1, smoothness=1.0, distance=1.0), "step"),
        (lambda: proximal_sgd_bound(5, step=0.2, smoothness=1.0, distance=1.0, variance=0.0, gap=1.0), "step"),
        (lambda: proximal_sgd_bound(5, step=0.1, smoothness=1.0, distance=1.0, variance=0.0), "gap"),
        (lambda: proximal_coordinate_descent_bound(5, 2, gap=1.0), "distance"),
        (lambda: proximal_coordinate_descent_bound(5, 2, gap=1.0, convexity=1.5), "convexity"),
        (lambda: greedy_coordinate_descent_bound(5, gap=1.0), "radius"),
        (lambda: greedy_coordinate_descent_bound(5, l1_convexity=0.5), "gap"),
    ],
)
def test_assumptions_are_checked(call, words):
    with pytest.raises(ValueError, match=words):
        call()
