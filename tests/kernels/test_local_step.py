"""Newton's steps for a proximal step: the derivatives are those of the losses, and every step is safe."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.kernels.local_step import derivative_at, proximal_newton, residual_at
from discreet.problem import Huber, Logistic, SmoothedHinge, Squared

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.3)]
named = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def problem(loss, rows=20, columns=4, limit=np.inf, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1.0, 1.0, (rows, columns))
    y = np.where(rng.uniform(size=rows) < 0.5, 1.0, -1.0)
    centre = 3.0 * rng.standard_normal(columns)
    return (A, y, np.full(rows, 1.0 / rows), np.full(rows, limit), loss.code, loss.parameter, 20.0), centre


@named
@pytest.mark.parametrize("limit", [np.inf, 0.2])
def test_residual_and_derivative_are_those_of_the_objective(loss, limit):
    facts, centre = problem(loss, limit=limit)
    A, y, share, limits, _, _, gamma = facts
    a, move = np.linspace(-1.0, 1.0, 4), np.array([0.5, -1.0, 2.0, 0.1])
    margins, residual = np.empty(20), np.empty(4)
    size = residual_at(*facts, centre, a, margins, residual)
    slopes = np.clip(loss.slope(A @ a, y), -limits, limits) * share
    assert np.allclose(residual, A.T @ slopes + (a - centre) / gamma)
    assert size == pytest.approx(np.linalg.norm(residual))
    pull, square = float((a - centre) @ move) / gamma, float(move @ move)
    along = derivative_at(*facts[1:], margins, A @ move, pull, square, 0.0)
    assert along == pytest.approx(residual @ move)


@named
@pytest.mark.parametrize("limit", [np.inf, 0.2])
def test_the_steps_settle_from_far_away(loss, limit):
    for seed in range(10):
        facts, centre = problem(loss, limit=limit, seed=seed)
        found, settled = proximal_newton(*facts, centre, centre + 1e3, 1e-10, 60)
        assert settled
        assert residual_at(*facts, centre, found, np.empty(20), np.empty(4)) <= 1e-10


def test_too_few_steps_are_admitted():
    facts, centre = problem(Logistic())
    assert not proximal_newton(*facts, centre, centre + 1e3, 1e-10, 1)[1]
