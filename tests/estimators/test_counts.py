"""Poisson and Gamma regression: scikit-learn's optimum without noise, useful models with it, and no row that hurts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.metrics import d2_tweedie_score

import discreet
from discreet import GammaRegressor, IncompatibleSolverError, NotPrivateWarning, PoissonRegressor, PublicModel
from discreet.data.rows import Data
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.losses import Gamma, Poisson
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]
KINDS = {PoissonRegressor: linear_model.PoissonRegressor, GammaRegressor: linear_model.GammaRegressor}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def table(kind, rows=4_000, seed=0, unit=1.0):
    """Uneven columns; means that differ by a factor of about 3 in either direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 20.0, 0.1] + [0.0, 50.0, 0.0]
    mean = unit * np.exp(0.5 + X @ [0.5, -0.02, 3.0] + 1.0)
    return X, rng.poisson(mean).astype(float) if kind is PoissonRegressor else rng.gamma(2.0, mean / 2.0)


def without_noise(model, X, y, **metadata):
    with pytest.warns(NotPrivateWarning):
        return model.set_params(epsilon=math.inf).fit(X, y, **metadata)


def gradient(kind, model, X, y):
    """Of the objective that the class states, in standardised columns; 0 at the optimum and nowhere else."""
    mean = np.exp(X @ model.coef_ + model.intercept_)
    slopes = mean - y if kind is PoissonRegressor else 1.0 - y / mean
    return np.append(slopes @ X / len(y) + model.alpha * model.coef_, slopes.mean()) / np.append(X.std(axis=0), 1.0)


@each_kind
@pytest.mark.parametrize("solver", ["auto", "newton", "gd"])
def test_infinite_epsilon_reaches_the_optimum_and_scikit_learns_coefficients(kind, solver):
    X, y = table(kind)
    ours = without_noise(kind(alpha=0.01, solver=solver), X, y)
    assert np.abs(gradient(kind, ours, X, y)).max() < 1e-7 * y.mean()
    theirs = KINDS[kind](alpha=0.01, solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-9)
    other = KINDS[kind](alpha=0.02, solver="newton-cholesky", tol=1e-10).fit(X, y)
    assert np.abs(other.coef_ - ours.coef_).max() > 1e-3  # another penalty would be seen


@each_kind
def test_infinite_epsilon_with_weights_sparse_columns_and_no_intercept(kind):
    X, y = table(kind)
    weight = np.random.default_rng(1).uniform(0.2, 1.0, len(y))
    theirs = KINDS[kind](alpha=0.0, solver="newton-cholesky", tol=1e-10).fit(X, y, sample_weight=weight)
    ours = without_noise(kind(alpha=0.0), X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    X = X / [1.0, 50.0, 0.1]
    theirs = KINDS[kind](alpha=0.01, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(X, y)
    for rows in (X, sp.csr_array(X)):
        ours = without_noise(kind(alpha=0.01, fit_intercept=False), rows, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    with pytest.raises(ValueError, match=r"needs fit_intercept=True: the mean of y"):
        kind(fit_intercept=False).fit(X, y)


@each_kind
@pytest.mark.parametrize("declared", [{}, {"y_bounds": (0.0, 500.0)}], ids=["nothing declared", "loose y_bounds"])
def test_private_models_come_close_to_the_optimum(kind, declared):
    X, y = table(kind, rows=8_000)
    best = without_noise(kind(), X, y).score(X, y)
    scores = [kind(epsilon=1.0, random_state=seed, **declared).fit(X, y).score(X, y) for seed in range(3)]
    assert best > 0.4
    assert min(scores) > 0.9 * best
    noisy = [kind(epsilon=0.01, random_state=seed, **declared).fit(X, y) for seed in range(3)]
    assert max(model.score(X, y) for model in noisy) < 0.9 * best  # so much noise would be seen
    assert all(np.isfinite(model.predict(X)).all() and (model.predict(X) > 0.0).all() for model in noisy)


@each_kind
@pytest.mark.parametrize("solver", ["newton", "gd"])
def test_the_unit_of_the_target_changes_nothing_but_the_intercept(kind, solver):
    """The noise that finds the range of the target differs, as other bins are counted; all other noise is the same."""
    X, y = table(kind)
    options = {"epsilon": 2.0, "alpha": 0.0, "solver": solver, "random_state": 0}
    one, other = (kind(**options).fit(X, unit * y) for unit in (1.0, 1024.0))
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0.05)
    assert other.intercept_ - one.intercept_ == pytest.approx(math.log(1024.0), abs=0.1)


HOSTILE = {
    "huge targets": lambda X, y: (X, np.where(np.arange(len(y)) < 5, 1e308, y)),
    "negative targets": lambda X, y: (X, np.where(np.arange(len(y)) < 5, -1e308, y)),
    "only huge targets": lambda X, y: (X, np.full(len(y), 1.7e308)),
    "only zeros": lambda X, y: (X, np.zeros(len(y))),
    "only negative targets": lambda X, y: (X, -y - 1.0),
    "tiny targets": lambda X, y: (X, np.full(len(y), 5e-324)),
    "huge rows": lambda X, y: (np.where(np.arange(len(y))[:, None] < 5, 1e308, X), y),
    "mirrored huge rows": lambda X, y: (np.where(np.arange(len(y))[:, None] % 2, 1e308, -1e308) + 0.0 * X, y),
}


@each_kind
@pytest.mark.parametrize("solver", ["newton", "gd", "ftrl"])
def test_no_row_makes_a_model_that_is_not_finite_or_an_error(kind, solver):
    X, y = table(kind, rows=300)
    for spoil in HOSTILE.values():
        for epsilon in (0.5, 9.0):
            with np.errstate(all="raise", under="ignore"):
                options = {"epsilon": epsilon, "delta": 1e-4, "solver": solver, "random_state": 0}
                model = kind(**options).fit(*spoil(X, y))
            predicted = model.predict(X)
            assert np.isfinite(model.coef_).all()
            assert math.isfinite(model.intercept_)
            assert np.isfinite(predicted).all()
            assert (predicted > 0.0).all()


@pytest.mark.parametrize("loss", [Poisson(), Gamma()], ids=lambda loss: loss.name)
def test_one_row_moves_a_clipped_gradient_by_no_more_than_its_sensitivity(loss):
    """Whatever its target and wherever the weights are; without clipping it moves it by any amount."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.poisson(2.0, 50).astype(float)
    problem, clip, unclipped = Problem(loss, L2(0.1)), 0.7, 0.0
    for target in (0.0, -3.0, 5.0, 1e150, 1e308):
        other, changed = X.copy(), y.copy()
        other[0], changed[0] = rng.normal(size=3) * 100.0, target
        for w in rng.normal(size=(5, 4)) * np.array([0.1, 1.0, 10.0, 100.0, 1e5])[:, None]:
            blocks = [
                scale_problem(problem, Data(rows, targets), identity_scaling(3), 50, "C").blocks()[0]
                for rows, targets in ((X, y), (other, changed))
            ]
            for limit in (clip, math.inf):
                sums = [block.gradient_sum(w, block.norms, limit) for block in blocks]
                if limit == clip:
                    assert np.linalg.norm(sums[1] - sums[0]) <= 2.0 * clip * (1.0 + 1e-9)
                else:
                    unclipped = max(unclipped, float(np.abs(sums[1]).max()))
    assert unclipped > 1e3 * clip


@each_kind
def test_solvers_that_cannot_take_the_loss_name_those_that_can(kind):
    with pytest.raises(IncompatibleSolverError, match=r"use one of .*'gd'.*'newton'"):
        kind(solver="cd").plan(1_000, 3)
    with pytest.raises(IncompatibleSolverError, match=r"has no bound"):
        kind(solver="output-perturbation").plan(1_000, 3)
    assert kind(delta=0.0).plan(1_000, 3).solver.name == "gd"


@each_kind
def test_many_columns_a_pure_budget_a_public_start_and_streams(kind):
    X, y = table(kind, rows=2_000)
    wide = np.hstack([X, np.random.default_rng(1).normal(size=(2_000, 40))])
    for options, rows in (
        ({"solver": "screened"}, wide),
        ({"delta": 0.0}, X),
        ({"start": PublicModel(np.array([0.5, -0.02, 3.0]), 1.5)}, X),
    ):
        model = kind(epsilon=3.0, random_state=0, **options).fit(rows, y)
        assert model.scaling_.log_target
        assert 0.05 < model.predict(rows).mean() / y.mean() < 20.0
    bounds = {"bounds": ([-4.0, -50.0, -0.5], [4.0, 150.0, 0.5]), "y_bounds": (0.0, 60.0), "public_n": 2_000}
    stream = kind(epsilon=3.0, random_state=0, **bounds)
    assert 0.05 < stream.partial_fit(X, y).predict(X).mean() / y.mean() < 20.0


@each_kind
def test_too_few_rows_give_the_private_mean_and_say_so(kind):
    X, y = table(kind, rows=100)
    with pytest.warns(discreet.UtilityWarning, match="mean of the target"):
        model = kind(epsilon=0.5, y_bounds=(0.0, 60.0), random_state=0).fit(X, y)
    assert not model.coef_.any()
    assert 0.0 < model.predict(X)[0] < 60.0


def test_the_score_is_that_of_scikit_learn():
    X, y = table(PoissonRegressor)
    model = PoissonRegressor(epsilon=1.0, random_state=0).fit(X, y)
    weight = np.random.default_rng(0).uniform(size=len(y))
    assert model.score(X, y, weight) == d2_tweedie_score(y, model.predict(X), power=1, sample_weight=weight)


def test_a_summary_tells_rate_ratios():
    X, y = table(PoissonRegressor)
    summary = PoissonRegressor(epsilon=1.0, random_state=0).fit(X, y).summary()
    assert "exp(per unit) is the rate ratio per unit" in " ".join(str(summary).split())
    output = summary.to_dict()["outputs"][0]
    np.testing.assert_allclose(output["rate_ratio_per_unit"], np.exp(output["coef_per_unit"]))


def test_two_targets_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"y has 2 columns: fit one model for each of them, with epsilon / 2"):
        discreet.Ridge().fit(np.ones((10, 2)), np.ones((10, 2)))
