"""Summaries say what the model does: coefficients in two units, where columns are clipped, how noisy they are."""

import json

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import HuberRegressor, LogisticRegression, NotPrivateWarning, PrivacyLeakWarning, Ridge
from discreet.estimators.reading.coefficient_noise import noise_growth
from tests.reading_tools import KINDS, NAMES, fitted

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]
WIDTH = 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_summary_has_the_numbers_of_the_model_and_fits_the_page(kind):
    model = fitted(kind)
    found, text = model.summary().to_dict(), str(model.summary())
    low, high = model.ranges_
    per_unit = [output["coef_per_unit"] for output in found["outputs"]]
    np.testing.assert_array_equal(per_unit, np.atleast_2d(model.coef_))
    per_range = [output["coef_per_range"] for output in found["outputs"]]
    np.testing.assert_allclose(per_range, np.atleast_2d(model.coef_) * (high - low))
    assert [output["intercept"] for output in found["outputs"]] == np.atleast_1d(model.intercept_).tolist()
    assert [column["low"] for column in found["columns"]] == low.tolist()
    assert [column["name"] for column in found["columns"]] == NAMES
    assert found["classes"] == (list(model.classes_.tolist()) if hasattr(model, "classes_") else None)
    assert found["privacy"]["epsilon"] == 5.0
    assert found["solver"] == model.plan_.solver.name
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(word in text for word in ("per unit", "per range", found["solver"], "epsilon 5", "chosen because"))
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_of_a_loaded_model_is_the_same(kind, tmp_path):
    model = fitted(kind)
    discreet.save_model(model, tmp_path / "model.json")
    loaded = discreet.load_model(tmp_path / "model.json").summary()
    # The seed is not written to the file, but that the noise came from one is.
    assert loaded.to_dict() == model.summary().to_dict()
    assert str(loaded) == str(model.summary())


def test_the_score_moves_by_per_range_from_end_to_end_and_no_further():
    model = fitted("two classes")
    low, high = model.ranges_
    rows = pd.DataFrame([[low[0], 100.0, 0.0], [high[0], 100.0, 0.0], [high[0] + 50.0, 100.0, 0.0]], columns=NAMES)
    start, end, beyond = model.decision_function(rows)
    np.testing.assert_allclose(end - start, model.summary().to_dict()["outputs"][0]["coef_per_range"][0])
    assert beyond == end


def table(rows=4_000):
    """Uncorrelated columns of very different units, and a weak signal: what the prediction of noise assumes."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(rows, 3))
    return Z, Z * [1.0, 20.0, 0.1] + [0.0, 50.0, 0.0]


def measured_over_predicted(make, X, y, seeds=24):
    """The spread of coefficients and intercept over seeds, over what the first model predicts of it."""
    models = [make(seed).fit(X, y) for seed in range(seeds)]
    found = np.array([np.append(np.ravel(model.coef_), model.intercept_) for model in models])
    noise = models[0].summary().noise
    assert noise.kind == "predicted"
    return found.std(axis=0, ddof=1) / np.append(noise.per_unit, noise.intercept)


BOUNDS = ([-5.0, -100.0, -1.0], [5.0, 200.0, 1.0])


@pytest.mark.parametrize("solver", ["newton", "gd", "cd"])
def test_the_predicted_noise_is_that_of_runs_in_the_units_of_the_columns(solver):
    """Within a factor of 3; a deviation over 24 runs is off by a factor of 1.6 once in 10,000 times.

    A column's unit is at least 20 times another's, so noise in other units than its own would be found.
    """
    Z, X = table()
    y = 10.0 * (3.0 + Z @ [0.5, 0.5, 0.0] + np.random.default_rng(1).normal(size=len(Z)))
    settings = {"bounds": BOUNDS, "y_bounds": (-80.0, 140.0), "epsilon": 3.0, "solver": solver}
    ratio = measured_over_predicted(lambda seed: Ridge(random_state=seed, **settings), X, y)
    assert ((ratio > 1 / 3.0) & (ratio < 3.0)).all()
    planted = ratio * [1.0, 20.0, 0.1, 1.0]  # the noise of scaled columns, given as that of the user's
    assert not ((planted > 1 / 3.0) & (planted < 3.0)).all()


@pytest.mark.parametrize(("solver", "signal"), [("newton", 0.3), ("newton", 4.0), ("gd", 4.0)])
def test_the_predicted_noise_of_log_odds_is_that_of_runs(solver, signal):
    """Within a factor of 3, whether labels are hard or easy to tell; the plan alone would be far off for easy ones."""
    Z, X = table(8_000)
    y = (signal * Z[:, 0] + np.random.default_rng(1).logistic(size=len(Z)) > 0).astype(int)
    settings = {"bounds": BOUNDS, "classes": [0, 1], "epsilon": 3.0, "solver": solver}
    ratio = measured_over_predicted(lambda seed: LogisticRegression(random_state=seed, **settings), X, y)
    assert ((ratio > 1 / 3.0) & (ratio < 3.0)).all()
    if signal > 1.0:
        model = LogisticRegression(random_state=0, **settings).fit(X, y)
        plan_alone = model.plan_.standard_error / (model.scaling_.scale * model.summary().noise.per_unit)
        assert (ratio[:3] / plan_alone)[0] > 3.0


def hessian_by_sampling(weights, intercept, rows=400_000):
    Z = np.column_stack([np.random.default_rng(5).normal(size=(rows, weights.size)), np.ones(rows)])
    scores = Z @ np.append(weights, intercept)
    return (Z * (0.25 / np.cosh(scores / 2.0) ** 2)[:, None]).T @ Z / rows


@pytest.mark.parametrize("intercept", [0.0, -2.0])
def test_noise_grows_as_the_inverse_hessian_says(intercept):
    """Against a Hessian sampled from normal rows; its entries are known to about 0.5 %."""
    weights = np.array([2.0, -1.0, 0.0])
    inverse = np.linalg.inv(4.0 * hessian_by_sampling(weights, intercept))
    wanted = np.sqrt(np.diag(inverse @ inverse))
    np.testing.assert_allclose(noise_growth(weights, intercept, True), wanted, rtol=0.05)
    assert not np.allclose(noise_growth(weights[::-1], intercept, True), wanted, rtol=0.05)
    np.testing.assert_allclose(noise_growth(np.zeros(3), 0.0, True), 1.0)
    for hopeless in (np.array([1e9]), np.array([np.nan])):
        assert np.isinf(noise_growth(hopeless, 0.0, True)).all()
    assert np.isinf(noise_growth(weights, 1e6, True)).all()


def test_noise_that_is_not_known_is_said_to_be_so():
    Z, X = table(1_000)
    y = Z[:, 0]
    known = {"bounds": BOUNDS, "y_bounds": (-5.0, 5.0), "random_state": 0}
    sgd = Ridge(solver="sgd", **known).fit(X, y)
    assert "the solver sgd is not predicted" in sgd.summary().noise.why
    tiny = Ridge(epsilon=0.05, bounds=BOUNDS, random_state=0).fit(X, y)
    assert "too few for more than a constant" in tiny.summary().noise.why
    screened = Ridge(solver="screened", **known).fit(X, y)
    assert "columns were chosen with noise" in screened.summary().noise.why
    several = fitted("softmax")
    assert "several classes" in several.summary().noise.why
    for model in (sgd, tiny, screened, several):
        assert model.summary().noise.kind == "not known"
        assert "not known: " in str(model.summary())
        assert model.summary().to_dict()["noise"]["coef_per_unit"] is None


def test_a_target_scale_that_was_read_from_the_rows_is_not_shown():
    _, X = table(1_000)
    with pytest.warns(PrivacyLeakWarning):
        model = Ridge(bounds=BOUNDS, y_bounds="data", random_state=0).fit(X, X[:, 0])
    noise = model.summary().noise
    assert noise.kind == "not known"
    assert "guarantee does not cover it" in noise.why
    assert "ATTENTION" in str(model.summary())


def test_without_noise_the_noise_is_zero_and_the_model_is_called_unprotected():
    _, X = table(300)
    with pytest.warns(NotPrivateWarning):
        model = HuberRegressor(epsilon=float("inf")).fit(X, X[:, 0])
    found = model.summary()
    assert found.noise.kind == "none"
    assert "computed without privacy protection" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_model_file_without_a_plan_is_shown_all_the_same(tmp_path):
    model = fitted("regression")
    path = tmp_path / "model.json"
    discreet.save_model(model, path)
    content = json.loads(path.read_text()) | {"plan": None, "scaling": None}
    path.write_text(json.dumps(content))
    found = discreet.load_model(path).summary()
    assert found.solver == "not known"
    assert found.noise.kind == "not known"
    assert max(map(len, str(found).splitlines())) <= WIDTH


def test_of_many_columns_those_that_matter_are_shown():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (200, 60)), columns=[f"column {j} " + "x" * 50 for j in range(60)])
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), solver="gd", random_state=0).fit(X, X.iloc[:, 0])
    largest = int(np.argmax(np.abs(model.coef_)))
    text = model.summary().text(columns=3)
    assert f"column {largest} " in text
    assert "57 columns that can move it less" in text
    assert text.count("xxx...") == 3
    assert "more" not in model.summary().text(columns=60).split("low, high")[1].split("per unit")[0]
    assert max(map(len, text.splitlines())) <= WIDTH


def test_names_that_pass_for_lines_or_commands_of_a_terminal_are_made_harmless():
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1.0, 1.0, (300, 1)), columns=["a\n\x1b[2Jprivacy: none"])
    model = Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0), random_state=0).fit(X, X.iloc[:, 0])
    text = str(model.summary())
    assert "\x1b" not in text
    assert "a \\x1b[2Jprivacy: none" in text


def test_scales_and_ranges_of_a_file_that_are_out_of_range_do_no_harm(tmp_path):
    model = fitted("regression")
    path = tmp_path / "model.json"
    discreet.save_model(model, path)
    content = json.loads(path.read_text())
    content["scaling"]["scale"] = [1e-300] * 3
    content["scaling"]["target_scale"] = 1e300
    content["ranges"] = {"low": [-1e290, "-inf", -1e100], "high": [1e290, "inf", 1e100]}
    path.write_text(json.dumps(content))
    found = discreet.load_model(path).summary()
    assert "out of range" in found.noise.why
    assert found.to_dict()["outputs"][0]["coef_per_range"] == [None, None, None]
    assert str(found).count("none") == 6
    json.dumps(found.to_dict(), allow_nan=False)
