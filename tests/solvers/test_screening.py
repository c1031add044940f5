"""Screening drops coordinates that released iterates show to have settled, at no cost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from discreet import Budget, NotPrivateWarning, solve
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.accounting import event_to_dict
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.coordinate_state import CoordinateState
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L1, Zero
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import CoordinateDescent
from discreet.solvers.coordinate_descent import NOISE_ALONE, Screening


def sparse_truth(rows=20_000, columns=200, relevant=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, X[:, :relevant].sum(axis=1) + 0.5 * rng.standard_normal(rows)


def sweeps_on(X, y, loss=Squared()):  # noqa: B008
    scaled = scale_problem(Problem(loss, fit_intercept=False), Data(X, y), identity_scaling(X.shape[1]), len(y), "F")
    return CoordinateState(scaled, np.full(X.shape[1], np.inf), np.full(X.shape[1], 0.1))


@pytest.mark.slow
@pytest.mark.parametrize("passes", [5, 20])
def test_it_lowers_the_error_where_few_columns_matter(passes):
    """Seeded; each arm is a mean over four runs whose spread is a tenth of the difference asked for."""
    X, y = sparse_truth()
    problem = Problem(Squared(), L1(0.02))
    best = problem.optimum(X, y).value

    def error(screening):
        found = []
        for seed in range(4):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solver = CoordinateDescent(passes=passes, screening=screening)
                solution = solve(
                    problem, X, y, solver, Budget(1.0, 1e-8), random_state=seed, bounds=(-5, 5), y_bounds=(-8, 8)
                )
            found.append(problem.objective(X, y, solution.w, solution.intercept) / best - 1.0)
        return np.mean(found)

    assert error(1 if passes == 5 else 2) < 0.9 * error(None)


def test_it_changes_neither_the_noise_nor_the_event():
    public, budget = Public(1_000, 5), Budget(1.0, 1e-6)
    plans = [CoordinateDescent(screening=k).plan(Problem(Logistic()), public, budget) for k in (None, 2)]
    assert plans[0].mechanism == plans[1].mechanism
    assert event_to_dict(plans[0].event) == event_to_dict(plans[1].event)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(3)], ids=lambda loss: loss.name)
def test_without_noise_what_still_moves_is_never_dropped(loss):
    """Only weights that did not move at all have settled, so the run is that without screening."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] > 0).astype(float) * (2.0 if loss.outputs == 1 else 1.0) - (1.0 if loss.outputs == 1 else 0.0)
    runs = []
    for screening in (None, 3):
        solver = CoordinateDescent(passes=30, average=False, screening=screening)
        with pytest.warns(NotPrivateWarning):
            runs.append(solve(Problem(loss), X, y, solver, Budget(np.inf, 0.1)).w)
    np.testing.assert_array_equal(*runs)


def test_settled_coordinates_go_back_and_stop():
    X, y = sparse_truth(rows=50, columns=3)
    state = sweeps_on(X, y)
    noise = np.array([0.1, 0.1, 0.1])
    screening = Screening(2, noise)
    screening.restart(state.w)
    far, near = 1.01 * NOISE_ALONE * 0.1 * np.sqrt(2), 0.99 * NOISE_ALONE * 0.1 * np.sqrt(2)
    state.w[:] = [far, near, 0.0]
    screening.watch(np.arange(3), state)
    assert screening.active.tolist() == [0, 1, 2]  # one step is not enough for a test of two
    screening.watch(np.array([0, 1]), state)
    assert screening.active.tolist() == [0, 2]
    np.testing.assert_array_equal(state.w, [far, 0.0, 0.0])
    np.testing.assert_allclose(state.margins, X @ state.w)
    screening.watch(np.array([2, 0]), state)
    screening.watch(np.array([0]), state)  # has not moved since: settled as well, so all begin anew
    assert screening.active.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(state.w, [far, 0.0, 0.0])


@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_placing_coordinates_keeps_margins_and_averages(form):
    X, y = sparse_truth(rows=40, columns=3)
    state = sweeps_on(form(X), y)
    history = []
    for _ in range(3):
        state.run(np.array([0]), np.zeros(1))
        history.append(state.w.copy())
    state.place(np.array([0, 2]), np.array([5.0, -1.0]))
    for _ in range(2):
        state.run(np.array([1]), np.zeros(1))
        history.append(state.w.copy())
    np.testing.assert_allclose(state.margins, X @ state.w, atol=1e-12)
    np.testing.assert_allclose(state.average(), np.mean(history, axis=0), atol=1e-12)


@pytest.mark.parametrize("sampling", ["cyclic", "uniform", "proportional"])
def test_every_order_of_coordinates_can_be_screened(sampling):
    X, y = sparse_truth(rows=500, columns=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver = CoordinateDescent(passes=7.5, sampling=sampling, screening=1)
        solution = solve(Problem(Squared(), Zero()), X, y, solver, Budget(1.0, 1e-4), random_state=0)
    assert solution.iterations == round(7.5 * 7)
    assert np.isfinite(solution.w).all()


def test_wrong_patience_is_refused():
    with pytest.raises(ValueError, match="screening must be a whole number"):
        CoordinateDescent(screening=1.5)
