"""Fair features: equal to the penalty, usable with every solver, and part of a pipeline's guarantee."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from discreet import Budget, LogisticRegression, Problem, Ridge, UtilityWarning, solve
from discreet.fairness import FairFeatures, mean_differences, private_directions
from discreet.preprocessing import check_pipeline, pipeline_guarantee
from discreet.privacy import accounting
from discreet.problem import L2, DirectionalL2, L1Ball, L2Ball, Logistic, Simplex, Squared
from discreet.solvers import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

SCALES = np.array([1.0, 3.0, 0.3])
ALPHA = 1e-2


def table(n=1_500, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    X[:, 0] += 0.5 * (group == "a")
    X[:, 2] -= 0.4 * (group == "b")
    y = np.where(X @ [1.0, 0.5, -1.0] + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X * SCALES, y, group


def directions(X, group):
    return mean_differences(X, group, groups=["a", "b", "c"])


def direct_optimum(X, y, C, beta):
    """Newton steps on the objective as it is printed, with nothing of this package in it."""
    Z = np.column_stack([X, np.ones(len(y))])
    ridge = np.zeros((4, 4))
    ridge[:3, :3] = ALPHA * np.eye(3) + beta * C.T @ C
    w = np.zeros(4)
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(y * (Z @ w)))
        gradient = -Z.T @ (y * p) / len(y) + ridge @ w
        w -= np.linalg.solve(Z.T @ (Z * (p * (1.0 - p))[:, None]) / len(y) + ridge, gradient)
    assert np.abs(gradient).max() <= 1e-13 * (1.0 + beta)
    return w


@pytest.mark.parametrize("strength", [0.0, 1.0, 100.0, 1e4])
def test_ridge_on_fair_features_is_the_penalty_on_the_old_ones(strength):
    X, y, group = table()
    C = directions(X, group)
    wanted = direct_optimum(X, y, C, strength * ALPHA)
    step = FairFeatures(C, strength).fit(X)
    new = Problem(Logistic(), L2(ALPHA)).optimum(step.transform(X), y, tolerance=1e-13)
    np.testing.assert_allclose(step.original_coef(new.coef), wanted[:3], atol=1e-8)
    assert float(new.intercept) == pytest.approx(wanted[3], abs=1e-8)
    old = Problem(Logistic(), DirectionalL2(ALPHA, strength * ALPHA, C)).optimum(X, y, tolerance=1e-12)
    np.testing.assert_allclose(old.coef, wanted[:3], atol=1e-8)
    assert float(old.intercept) == pytest.approx(wanted[3], abs=1e-8)


def test_an_infinite_strength_is_the_constraint_of_equal_mean_scores():
    X, y, group = table()
    C = directions(X, group)
    step = FairFeatures(C).fit(X)
    new = Problem(Logistic(), L2(ALPHA)).optimum(step.transform(X), y, tolerance=1e-13)
    coef = step.original_coef(new.coef)
    np.testing.assert_allclose(C @ coef, 0.0, atol=1e-12)
    means = [(X[group == g] @ coef).mean() for g in "abc"]
    np.testing.assert_allclose(means, means[0], atol=1e-12)
    basis = scipy.linalg.null_space(C)
    inside = Problem(Logistic(), L2(ALPHA)).optimum(X @ basis, y, tolerance=1e-13)
    np.testing.assert_allclose(coef, basis @ inside.coef, atol=1e-8)
    near = direct_optimum(X, y, C, 1e8)
    np.testing.assert_allclose(coef, near[:3], atol=1e-6)


PROBLEMS = {
    "adaptive": Problem(Logistic(), L2(0.1)),
    "frank-wolfe": Problem(Logistic(), constraint=L1Ball(2.0)),
    "mirror-descent": Problem(Logistic(), constraint=Simplex(1.0), fit_intercept=False),
    "exponential": Problem(Logistic(), constraint=L2Ball(1.0), fit_intercept=False),
    "sufficient-statistics": Problem(Squared(), L2(ALPHA)),
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_takes_fair_features(solver):
    """A public map of the rows: no solver can tell, and with two groups no score differs along the direction."""
    X, y, group = table(600)
    X, low, high = X[:, :2], -3.0 * SCALES[:2], 3.0 * SCALES[:2]
    C = mean_differences(X, group, groups=["a", "b"])
    step = FairFeatures(C).fit(X)
    problem = PROBLEMS.get(solver, Problem(Logistic(), L2(0.1), fit_intercept=False))
    settings = {"budget": Budget(5.0, 1e-5), "bounds": step.transformed_bounds((low, high))}
    if problem.loss.name == "squared":
        settings["y_bounds"] = (-1.0, 1.0)
    with warnings.catch_warnings(action="ignore"):
        solution = solve(problem, step.transform(X), y, solver=solver, **settings)
    coef = step.original_coef(solution.coef)
    assert abs(float(C[0] @ coef)) <= 1e-9 * (1.0 + np.abs(coef).max())


@pytest.mark.parametrize("solver", ["newton", "cd", "gd", "output-perturbation", "objective-perturbation", "auto"])
def test_without_noise_solvers_find_the_optimum_of_the_penalty(solver):
    X, y, group = table()
    C = directions(X, group)
    wanted = direct_optimum(X, y, C, 50.0 * ALPHA)
    step = FairFeatures(C, 50.0).fit(X)
    bounds = step.transformed_bounds((-2.0 * SCALES, 2.0 * SCALES))
    model = LogisticRegression(alpha=ALPHA, epsilon=float("inf"), bounds=bounds, classes=[-1.0, 1.0], solver=solver)
    with warnings.catch_warnings(action="ignore"):
        pipeline = make_pipeline(step, model).fit(X, y)
    np.testing.assert_allclose(step.original_coef(pipeline[-1].coef_[0]), wanted[:3], atol=2e-4)


def test_rows_get_shorter_and_the_new_bounds_are_attained():
    rng = np.random.default_rng(0)
    C = rng.standard_normal((2, 4))
    step = FairFeatures(C, 3.0).fit(np.zeros((1, 4)))
    low, high = np.array([-1.0, 0.0, 2.0, -5.0]), np.array([1.0, 1.0, 3.0, 5.0])
    rows = rng.uniform(low, high, (500, 4))
    new = step.transform(rows)
    assert (np.linalg.norm(new, axis=1) <= np.linalg.norm(rows, axis=1)).all()
    new_low, new_high = step.transformed_bounds((low, high))
    assert ((new_low <= new) & (new <= new_high)).all()
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(4, -1).T
    extremes = step.transform(corners)
    np.testing.assert_allclose(extremes.min(axis=0), new_low)
    np.testing.assert_allclose(extremes.max(axis=0), new_high)
    matrix = scipy.linalg.fractional_matrix_power(np.eye(4) + 3.0 * C.T @ C, -0.5)
    np.testing.assert_allclose(new, rows @ matrix)


def test_directions_that_depend_on_each_other_or_vanish():
    rows = np.random.default_rng(0).standard_normal((5, 3))
    one, twice = FairFeatures([[1.0, 0.0, 2.0]]), FairFeatures([[1.0, 0.0, 2.0], [-1.0, 0.0, -2.0]])
    np.testing.assert_allclose(one.fit_transform(rows), twice.fit_transform(rows), atol=1e-15)
    np.testing.assert_array_equal(FairFeatures(np.zeros((1, 3))).fit_transform(rows), rows)
    tiny = FairFeatures([[1e-300, 0.0, 0.0]]).fit_transform(rows)
    np.testing.assert_allclose(tiny, rows * [0.0, 1.0, 1.0], atol=1e-15)


def test_it_is_a_transformer_of_scikit_learn():
    X = pd.DataFrame({"age": [1.0, 2.0], "hours": [3.0, 4.0]})
    step = FairFeatures([[1.0, 1.0]], strength=2.0)
    copy = clone(step)
    assert copy.get_params() == {"directions": [[1.0, 1.0]], "strength": 2.0}
    found = copy.set_output(transform="pandas").fit_transform(X)
    assert list(found.columns) == ["age", "hours"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(step.fit(X))).transform(X), found)
    assert not hasattr(step, "guarantee_")
    with pytest.raises(ValueError, match="feature names"):
        step.transform(X.rename(columns={"age": "years"}))


def test_directions_that_were_paid_for_are_in_the_guarantee_of_the_pipeline():
    X, y, group = table()
    bounds = (-2.0 * SCALES, 2.0 * SCALES)
    paid = private_directions(X, None, group, bounds, 2.0, groups=["a", "b", "c"], random_state=0)
    model = LogisticRegression(epsilon=1.0, classes=[-1.0, 1.0], bounds=(-9.0, 9.0), random_state=0)
    pipeline = make_pipeline(FairFeatures(paid, 10.0), model)
    check_pipeline(pipeline)
    fitted = clone(pipeline).fit(X, y)
    together = pipeline_guarantee(fitted)
    assert together.event == accounting.compose([paid.guarantee.event, fitted[-1].guarantee_.event])
    assert together.epsilon > 2.0
    public = make_pipeline(FairFeatures(paid.values, 10.0), model).fit(X, y)
    assert pipeline_guarantee(public).event == fitted[-1].guarantee_.event


def test_a_subclass_is_not_known_to_learn_nothing():
    class Learns(FairFeatures):
        pass

    with pytest.raises(ValueError, match="not known to treat every row on its own"):
        check_pipeline(make_pipeline(Learns([[1.0]]), Ridge()))


def test_what_does_not_fit_is_refused():
    X = np.zeros((2, 3))
    for settings, reason in (
        ({"directions": [[1.0, 2.0]]}, "2 columns, but X has 3"),
        ({"directions": [[1.0, 2.0, np.nan]]}, "finite"),
        ({"directions": [[1.0, 2.0, 3.0]], "strength": -1.0}, "strength must be a number that is at least 0"),
        ({"directions": [[1.0, 2.0, 3.0]], "strength": float("nan")}, "strength"),
    ):
        with pytest.raises(ValueError, match=reason):
            FairFeatures(**settings).fit(X)
    with pytest.raises(ValueError, match="bounds is missing"):
        FairFeatures([[1.0, 2.0, 3.0]]).fit(X).transformed_bounds(None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("huge", [1e308, -1.7e308])
def test_one_huge_row_neither_stops_a_fit_nor_warns(huge):
    """Estimators clip such a row to their bounds; whether there is a model must not depend on it."""
    X, y, _ = table(200)
    X[0], X[1] = huge, [huge, -huge, huge]
    step = FairFeatures([[1.0, 2.0, 3.0], [1.0, -1.0, 1.0]]).fit(X)
    new = step.transform(X)
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(new[:2], step.transform(np.sign(X[:2]) * 1e100))
    np.testing.assert_array_equal(new[2:], step.transform(X[2:]))
    model = LogisticRegression(epsilon=5.0, classes=[-1.0, 1.0], bounds=step.transformed_bounds((-4.0, 4.0)))
    with warnings.catch_warnings(action="ignore", category=UtilityWarning):
        assert np.isfinite(make_pipeline(step, model).fit(X, y)[-1].coef_).all()


@pytest.mark.parametrize("strength", [0.0, 1.0, 1e6, float("inf")])
def test_no_vertex_of_the_box_leaves_the_new_bounds(strength):
    """Wide and narrow columns far from 0, where rounding is largest beside the width."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        low = rng.standard_normal(4) * 10.0 ** rng.integers(-3, 7, 4)
        high = low + rng.exponential(size=4) * 10.0 ** rng.integers(-3, 3, 4)
        step = FairFeatures(rng.standard_normal((2, 4)), strength).fit(np.zeros((1, 4)))
        new_low, new_high = step.transformed_bounds((low, high))
        corners = step.transform(np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(4, -1).T)
        rounding = 1e-14 * np.abs([low, high]).max()
        assert ((new_low - rounding <= corners) & (corners <= new_high + rounding)).all()


def test_columns_of_which_nothing_is_left_are_constant_not_rounding():
    """Scaled to unit size, the rounding would become a feature."""
    step = FairFeatures([[1.0, 0.3, 0.0], [0.7, -1.0, 0.0]]).fit(np.zeros((1, 3)))
    low, high = step.transformed_bounds((-1.0, [1.0, 2.0, 1e-9]))
    assert (low == high).tolist() == [True, True, False]
    assert high[2] == pytest.approx(1e-9)
