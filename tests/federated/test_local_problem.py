"""Proximal steps of a client: certified, also for hostile rows, and no further apart than the theorem says."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import local_problem
from discreet.federated.local_problem import LocalProblem
from discreet.problem import Huber, Logistic, SmoothedHinge, Squared

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.3)]
SHAPES = [(1, 6), (5, 8), (8, 8), (40, 6)]  # fewer rows than columns, as many, and more
TOLERANCE = 1e-8


def rows(shape, seed=0, hostile=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, shape)
    if hostile:  # equal rows, zeros, the corners of the box, tiny numbers
        X[:: max(1, shape[0] // 3)] = 1.0
        X[1::4] = -1.0
        X[2::5] = 0.0
        X[3::7] = 5e-324
    X[:, -1] = 1.0
    return X, np.where(rng.uniform(size=shape[0]) < 0.5, 1.0, -1.0)


def residual(problem, v, gradient):
    """How far a gradient is from being that of the proximal step from v, by fixed-point equations alone."""
    w = v - problem.gamma * gradient
    return float(np.linalg.norm(problem._gradient_at(w) - gradient))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("clip", [None, 0.4])
def test_the_gradient_is_that_of_the_proximal_step(loss, shape, clip):
    for seed in range(4):
        X, y = rows(shape, seed, hostile=seed % 2 == 1)
        for gamma in (0.1, 3.0, 100.0):
            problem = LocalProblem(X, y, None, loss, shape[0], gamma, clip)
            v = 5.0 * np.random.default_rng(seed).standard_normal(shape[1])
            found = problem.gradient(v, TOLERANCE, start=np.zeros(shape[1]))
            # The gradient at w = v - gamma g moves by at most the curvature times gamma times the error of g.
            assert residual(problem, v, found) <= TOLERANCE * (1.0 + gamma * loss.smoothness * shape[1])
            if clip is not None:
                assert np.linalg.norm(found) <= clip


def test_the_steps_for_rows_on_which_newton_fails_reach_the_tolerance(monkeypatch):
    """Newton's steps are cut short, so that the safe steps must do all of it."""
    monkeypatch.setattr(local_problem, "NEWTON_STEPS", 0)
    X, y = rows((40, 6), hostile=True)
    for loss in LOSSES:
        problem = LocalProblem(X, y, None, loss, 40, 50.0, 0.5)
        found = problem.gradient(np.full(6, 3.0), TOLERANCE, start=np.zeros(6))
        assert residual(problem, np.full(6, 3.0), found) <= TOLERANCE * 400.0


def test_a_start_that_is_far_away_changes_nothing_beyond_the_tolerance():
    X, y = rows((12, 5))
    problem, v = LocalProblem(X, y, None, Logistic(), 12, 10.0, 0.5), np.full(5, 0.3)
    near = problem.gradient(v, TOLERANCE, start=v)
    far = problem.gradient(v, TOLERANCE, start=np.full(5, -1e3))
    assert np.linalg.norm(near - far) <= 2.0 * TOLERANCE


def test_a_step_that_cannot_be_certified_is_refused():
    X, y = rows((12, 5))
    problem = LocalProblem(X, y, None, Logistic(), 12, 10.0, 0.5)
    assert problem.reaches(np.full(5, 10.0), TOLERANCE)
    assert not problem.reaches(np.full(5, 1e9), TOLERANCE)
    with pytest.raises(ValueError, match="too large"):
        problem.gradient(np.full(5, 1e9), TOLERANCE, start=np.zeros(5))


def test_a_null_row_is_no_row():
    X, y = rows((12, 5))
    weight = np.append(np.zeros(2), np.ones(10))
    problem = LocalProblem(X, y, weight, Logistic(), 12, 4.0, 0.5)
    without = LocalProblem(X[2:], y[2:], None, Logistic(), 12, 4.0, 0.5)
    v = np.linspace(-1.0, 1.0, 5)
    assert np.allclose(problem.gradient(v, 1e-10, v), without.gradient(v, 1e-10, v), rtol=0.0, atol=2e-10)


def neighbours(seed, relation):
    """A client's rows and weights, and the same with the first row replaced by a hostile one, or null."""
    X, y = rows((6, 4), seed)
    other, labels, weight, null = X.copy(), y.copy(), np.ones(6), np.ones(6)
    if relation == "zero_out":
        null[0] = 0.0
        return (X, y, weight), (X, y, null)
    X[0], y[0] = 1.0, 1.0
    other[0], labels[0] = 1.0, -1.0
    return (X, y, weight), (other, labels, weight)


@pytest.mark.parametrize(("relation", "factor"), [("replace", 2.0), ("zero_out", 1.0)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_one_row_moves_the_gradient_by_no_more_than_the_theorem_says(relation, factor, loss):
    """And nearly as far, so that the bound is not slack: a bound of half the size is broken."""
    clip, largest = 0.3, 0.0
    for seed in range(20):
        pair = neighbours(seed, relation)
        for gamma in (0.01, 1.0, 100.0):
            v = np.random.default_rng(seed).standard_normal(4) * 3.0
            g, h = (LocalProblem(X, y, weight, loss, 6, gamma, clip).gradient(v, TOLERANCE, v) for X, y, weight in pair)
            moved = np.linalg.norm(g - h)
            assert moved <= factor * clip / 6 + 2.0 * TOLERANCE
            largest = max(largest, moved)
    assert largest > 0.6 * factor * clip / 6
