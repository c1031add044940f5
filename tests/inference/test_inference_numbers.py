"""Without noise the numbers are those of the textbooks; with noise they fit together."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from pyarrow.dataset import dataset
from scipy import stats
from scipy.special import expit

from discreet import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from discreet.inference.estimate import expected_hessian
from discreet.inference.results import Inference
from discreet.problem.losses import Logistic
from tests.inference_tools import fitted, labels_table, linear_table, sandwich


@pytest.mark.parametrize("kind", [LinearRegression, Ridge])
def test_without_noise_a_linear_fit_has_the_robust_errors_of_least_squares(kind):
    X, y = linear_table(3_000, 0, lambda rng, rows: rng.standard_t(4, size=rows))
    found = fitted(X, y, kind, epsilon=math.inf).inference_
    rows = np.column_stack([X, np.ones(len(X))])
    best = np.linalg.lstsq(rows, y, rcond=None)[0]
    np.testing.assert_allclose(found.params, best, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.cov_params(), sandwich(X, rows @ best - y, np.ones(len(X))), rtol=1e-5, atol=1e-9)
    assert not found.noise.any()


def test_without_noise_weights_enter_as_in_surveys():
    """The weighted coefficients, and the errors of weights that belong to the rows: squared in the middle."""
    X, y = linear_table(3_000, 9)
    weight = np.random.default_rng(1).uniform(0.05, 1.0, len(X))
    found = fitted(X, y, epsilon=math.inf, sample_weight=weight).inference_
    rows, root = np.column_stack([X, np.ones(len(X))]), np.sqrt(weight)
    best = np.linalg.lstsq(rows * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(found.params, best, rtol=1e-6, atol=1e-8)
    wanted = sandwich(X, rows @ best - y, np.ones(len(X)), weight)
    np.testing.assert_allclose(found.cov_params(), wanted, rtol=1e-5, atol=1e-9)
    plain = sandwich(X, rows @ best - y, np.ones(len(X)), root)  # what would be wrong
    assert not np.allclose(found.cov_params(), plain, rtol=0.1)


def test_without_noise_a_logistic_fit_has_the_robust_errors_of_maximum_likelihood():
    X, y = labels_table(3_000, 1)
    model = fitted(X, y, LogisticRegression, epsilon=math.inf, alpha=1e-9)
    found, p = model.inference_, expit(X @ model.coef_[0] + model.intercept_[0])
    np.testing.assert_allclose(found.params, [*model.coef_[0], model.intercept_[0]], atol=1e-3)
    np.testing.assert_allclose(found.cov_params(), sandwich(X, p - y, p * (1.0 - p)), rtol=0.01, atol=1e-8)


def test_without_noise_counts_have_the_robust_errors_of_maximum_likelihood_and_rate_ratios():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1.0, 1.0, (3_000, 3))
    y = rng.poisson(np.exp(0.5 + X @ [0.5, 0.0, -0.3]))
    found = fitted(X, y, PoissonRegressor, epsilon=math.inf, alpha=1e-9).inference_
    mean = np.exp(np.column_stack([X, np.ones(len(X))]) @ found.params)
    np.testing.assert_allclose(np.column_stack([X, np.ones(len(X))]).T @ (y - mean) / len(X), 0.0, atol=1e-4)
    np.testing.assert_allclose(found.cov_params(), sandwich(X, mean - y, mean), rtol=0.01, atol=1e-8)
    np.testing.assert_allclose(found.ratios()[:, 0], np.exp(found.params))


def test_the_numbers_of_a_fit_belong_together():
    X, y = labels_table(20_000, 2)
    found = fitted(X, y, LogisticRegression, random_state=0).inference_
    assert found.valid
    assert found.names == ("x0", "x1", "x2", "(intercept)")
    np.testing.assert_allclose(found.bse, np.sqrt(np.diag(found.cov_params())))
    assert ((found.noise > 0.0) & (found.noise < found.bse)).all()
    np.testing.assert_allclose(found.tvalues, found.params / found.bse)
    np.testing.assert_allclose(found.pvalues, 2.0 * stats.norm.sf(np.abs(found.tvalues)))
    ends = found.conf_int(0.1)
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2.0 * stats.norm.ppf(0.95) * found.bse)
    np.testing.assert_allclose(found.ratios(0.1)[:, 1:], np.exp(ends))
    told = found.to_dict(0.1)
    assert told["terms"][1]["low"] == ends[1, 0]
    assert "of it noise" in str(found)


def test_wald_tests_are_squares_of_z_and_take_names_or_combinations():
    X, y = linear_table(20_000, 3)
    found = fitted(X, y, random_state=1).inference_
    assert found.wald_test("x1").statistic == pytest.approx(found.tvalues[1] ** 2)
    assert found.wald_test("x1").pvalue == pytest.approx(found.pvalues[1])
    both = found.wald_test(["x0", "x2"])
    assert (both.df, both.pvalue < 1e-6) == (2, True)
    truth = found.wald_test([[1.0, 0.0, 1.0, 0.0]], 0.5)  # 1 - 0.5
    assert truth.df == 1
    assert truth.pvalue > 1e-3
    for wrong in (["x9"], [], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"coefficient|number|name"):
            found.wald_test(wrong)
    with pytest.raises(ValueError, match="ratios"):
        found.ratios()


def test_predictions_have_the_errors_of_their_combination_of_coefficients():
    X, y = labels_table(20_000, 4)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    found = fitted(frame, y, LogisticRegression, random_state=2).inference_
    assert found.names[0] == "a"
    at = found.get_prediction([[1.0, 2.0, 3.0]])
    row = np.array([1.0, 2.0, 3.0, 1.0])
    assert at.predicted_mean[0] == pytest.approx(expit(row @ found.params))
    assert at.se_linear[0] == pytest.approx(math.sqrt(row @ found.cov_params() @ row))
    assert at.conf_int()[0, 0] < at.predicted_mean[0] < at.conf_int()[0, 1]
    assert at.se_mean[0] == pytest.approx(at.predicted_mean[0] * (1.0 - at.predicted_mean[0]) * at.se_linear[0])
    with pytest.raises(ValueError, match="columns"):
        found.get_prediction([[1.0]])


def test_the_estimate_is_not_the_shrunk_coefficient_and_needs_no_small_penalty():
    X, y = linear_table(20_000, 5)
    model = fitted(X, y, Ridge, alpha=0.5, random_state=3)
    assert np.abs(model.coef_[0] - 1.0) > 0.2
    assert np.abs(model.inference_.params[0] - 1.0) < 4.0 * model.inference_.bse[0]


def test_units_of_the_columns_are_the_users():
    """The column in other units: the same z up to the noise, which is drawn by the plan alone."""
    X, y = linear_table(5_000, 6)
    one, other = (fitted(X * unit, y, epsilon=math.inf).inference_ for unit in (1.0, 1e-3))
    np.testing.assert_allclose(other.params[:3], 1e3 * one.params[:3], rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(other.bse[:3], 1e3 * one.bse[:3], rtol=1e-5)


def test_the_expected_hessian_of_normal_rows_is_their_mean():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(400_000, 2)) @ [[1.0, 0.6], [0.0, 0.8]] + [0.3, -0.2], np.ones(400_000)])
    w = np.array([1.0, -0.5, 0.4])
    h = Logistic().curvature(rows @ w, np.ones(len(rows)))
    wanted = rows.T @ (rows * h[:, None]) / len(rows)
    found = expected_hessian(rows.T @ rows / len(rows), w, Logistic(), True)
    np.testing.assert_allclose(found, wanted, atol=3e-3)


@pytest.mark.parametrize(
    "parts",
    [
        {"estimate": np.zeros(2)},
        {"reasons": ("No interval.",), "estimate": np.zeros(2), "covariance": np.eye(2), "sampling": np.eye(2)},
        {"estimate": np.zeros(3), "covariance": np.eye(2), "sampling": np.eye(2)},
        {"estimate": np.zeros(2), "covariance": np.eye(2), "sampling": 2.0 * np.eye(2)},
        {"estimate": np.zeros(2), "covariance": np.eye(2), "sampling": -np.eye(2)},
    ],
)
def test_numbers_that_do_not_belong_together_are_refused(parts):
    with pytest.raises(ValueError, match="inference"):
        Inference(("a", "(intercept)"), "identity", False, **parts)


def test_rows_in_a_file_give_the_same_bits(tmp_path):
    X, y = labels_table(5_000, 10)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    one = fitted(frame, y, LogisticRegression, random_state=4).inference_
    other = fitted(dataset(tmp_path), "y", LogisticRegression, random_state=4).inference_
    np.testing.assert_array_equal(one.cov_params(), other.cov_params())
    np.testing.assert_array_equal(one.params, other.params)
