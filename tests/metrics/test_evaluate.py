"""Private evaluation: without noise it is what scikit-learn says, with noise it costs what it says."""

from __future__ import annotations

import copy
import json
import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import (
    confusion_matrix,
    d2_tweedie_score,
    log_loss,
    mean_squared_error,
    mean_tweedie_deviance,
    r2_score,
    roc_auc_score,
    roc_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, StandardScaler

from discreet import (
    Budget,
    BudgetExceededError,
    GammaRegressor,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from discreet._common.exceptions import DiscreetWarning
from discreet.metrics import evaluate
from discreet.preprocessing import PrivateScaler

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")
ROWS = 1_200


def table(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2))
    return X, (rng.logistic(size=rows) < 4.0 * X[:, 0] - 1.0).astype(int)


@pytest.fixture(scope="module")
def model():
    return fitted(LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=0), *table(1, 4_000))


@pytest.fixture(scope="module")
def regressor():
    X, _ = table(1, 4_000)
    return fitted(Ridge(bounds=(-1.0, 1.0), y_bounds=(-3.0, 3.0), random_state=0), X, 2.0 * X[:, 0])


def fitted(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return estimator.fit(X, y)


def exact(model, X, y, **settings):
    """The evaluation with an infinite budget."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        return evaluate(model, X, y, math.inf, **settings)


def test_without_noise_a_classifier_has_the_figures_of_scikit_learn(model):
    X, y = table()
    found, chances = exact(model, X, y), model.predict_proba(X)
    assert found["accuracy"].value == pytest.approx(model.score(X, y), abs=1e-12)
    clipped = np.maximum(chances[np.arange(ROWS), y], 0.01)
    assert found["log_loss"].value == pytest.approx(-np.log(clipped).mean(), abs=1e-6)
    assert found["log_loss"].value == pytest.approx(log_loss(y, chances), abs=0.01)
    rates = np.bincount(y) / ROWS
    assert found["accuracy_of_constant"].value == pytest.approx(rates.max(), abs=1e-12)
    assert found["log_loss_of_constant"].value == pytest.approx(-rates @ np.log(rates), abs=1e-9)
    for name in ("accuracy", "log_loss"):
        gain = found[f"{name}_of_constant"].value - found[name].value
        assert found[f"{name}_gain"].value == pytest.approx(-gain if name == "accuracy" else gain, abs=1e-6)
    shares = np.array([[cell.value for cell in line] for line in found.confusion])
    np.testing.assert_allclose(shares, confusion_matrix(y, model.predict(X)) / ROWS, atol=1e-9)
    area = roc_auc_score(y, model.decision_function(X))
    assert found["roc_auc"].low < area < found["roc_auc"].high
    assert found["roc_auc"].value == pytest.approx(area, abs=0.02)
    false, true, thresholds = roc_curve(y, model.decision_function(X), drop_intermediate=False)
    for point in found.roc:
        place = np.flatnonzero(thresholds > point.threshold).max()
        rate = point.false_positive_rate.value, point.true_positive_rate.value
        assert rate == pytest.approx((false[place], true[place]), abs=1e-9)
    for each in found.calibration:
        inside = (chances[:, 1] > each.low) & (chances[:, 1] <= each.high)
        assert each.rows == pytest.approx(inside.sum(), abs=1e-6)
        if inside.any():
            assert each.observed.value == pytest.approx(y[inside].mean(), abs=1e-9)
            assert not each.contradicted or inside.sum() > 50
    assert found.beats_constant is True
    assert "NOT PRIVATE" in str(found)


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_without_noise_a_regressor_has_the_figures_of_scikit_learn(regressor, relation):
    X, _ = table()
    y = np.clip(2.0 * X[:, 0] + 0.5 * np.random.default_rng(3).normal(size=ROWS), -3.0, 3.0)
    found = exact(regressor, X, y, relation=relation, public_n=700 if relation == "add_remove" else None)
    predicted = np.clip(regressor.predict(X), -3.0, 3.0)
    assert found["mean_squared_error"].value == pytest.approx(mean_squared_error(y, predicted), abs=1e-5)
    assert found["mean_squared_error_of_constant"].value == pytest.approx(y.var(), abs=1e-5)
    assert found["r2"].value == pytest.approx(r2_score(y, predicted), abs=1e-5)
    assert found.beats_constant is True
    bad = exact(regressor, X, -y, relation=relation, public_n=700 if relation == "add_remove" else None)
    assert bad.beats_constant is False
    clipped = exact(regressor, X, y, largest_error=0.5)
    wanted = np.minimum(np.square(y - predicted), 0.25).mean()
    assert clipped["mean_squared_error"].value == pytest.approx(wanted, abs=1e-5)
    centre = regressor.scaling_.constant_prediction
    constant = np.clip(y, centre - 0.5, centre + 0.5).var()
    assert clipped["mean_squared_error_of_constant"].value == pytest.approx(constant, abs=1e-5)
    assert clipped["r2"].value == pytest.approx(1.0 - wanted / constant, abs=1e-5)
    assert "clipped to: 0.5" in str(clipped)


@pytest.mark.parametrize(("kind", "power"), [(PoissonRegressor, 1), (GammaRegressor, 2)])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_counts_and_amounts_have_the_deviances_of_scikit_learn(kind, power, relation):
    X, _ = table()
    rng, means = np.random.default_rng(4), np.exp(0.5 + X[:, 0])
    y = rng.poisson(means).astype(float) if power == 1 else means * rng.gamma(2.0, 0.5, ROWS)
    model = fitted(kind(bounds=(-1.0, 1.0), y_bounds=(0.0, 50.0), epsilon=5.0, random_state=0), X, y)
    found = exact(model, X, y, relation=relation, public_n=700 if relation == "add_remove" else None)
    predicted = model.predict(X)
    assert found["mean_deviance"].value == pytest.approx(mean_tweedie_deviance(y, predicted, power=power), abs=1e-5)
    constant = mean_tweedie_deviance(y, np.full(ROWS, y.mean()), power=power)
    assert found["mean_deviance_of_constant"].value == pytest.approx(constant, abs=1e-4)
    assert found["d2"].value == pytest.approx(d2_tweedie_score(y, predicted, power=power), abs=1e-4)
    assert found["d2"].value != pytest.approx(r2_score(y, predicted), abs=0.01)  # the planted fault: squared errors
    assert found.beats_constant is True


def test_the_scale_of_errors_is_learned():
    """Limits a hundred times too wide cost next to nothing; without the look R2 would be open.

    Seeds 0 to 4; the intervals are 20 deviations from the bounds asked here.
    """
    X, _ = table(rows=8_000)
    y = 50.0 + X[:, 0] + 0.8 * np.random.default_rng(3).normal(size=8_000)
    model = fitted(Ridge(bounds=(-1.0, 1.0), y_bounds=(0.0, 500.0), epsilon=5.0, random_state=0), X, y)
    for seed in range(5):
        found = evaluate(model, X, y, 0.5, random_state=seed)["r2"]
        assert found.high - found.low < 0.3
        open_ = evaluate(model, X, y, 0.5, random_state=seed, largest_error=499.0)["r2"]
        assert open_.high - open_.low > 0.9


def test_figures_of_the_training_rows_say_so(tmp_path):
    """Known from the ledger: the same data set and as many rows; another number of rows or data set is none."""
    X, y = table()
    ledger = Ledger(tmp_path / "budget.db")
    for name in ("clinic", "other"):
        ledger.open(name, epsilon=9.0, delta=1e-5)
    booked = {"ledger": ledger, "dataset": "clinic"}
    settings = {"bounds": (-1.0, 1.0), "classes": [0, 1], "epsilon": 1.0, "delta": 1e-6}
    model = fitted(LogisticRegression(**settings, **booked), X, y)
    same = evaluate(model, X, y, 0.5, 1e-6, **booked)
    assert same.training_rows
    assert "the figures are too good" in str(same)
    assert same.to_dict()["training_rows"] is True
    for rows, more in ((X[:-1], booked), (X, booked | {"dataset": "other"}), (X, {})):
        other = evaluate(model, rows, y[: len(rows)], 0.5, 1e-6, **more)
        assert not other.training_rows
        assert "too good" not in str(other)
        assert "training_rows" not in other.to_dict()


def test_a_column_is_a_list_of_targets_and_not_a_matrix(model, regressor):
    """With a column, differences would be taken between all pairs of rows, and one row would add to all of them."""
    X, y = table()
    for estimator, target in ((model, y), (regressor, X[:, 0])):
        one, two = exact(estimator, X, target), exact(estimator, X, target[:, None])
        assert one.released.values.tolist() == two.released.values.tolist()


def test_weights_count_rows_in_part(model):
    X, y = table()
    weight = np.random.default_rng(2).random(ROWS)
    found = exact(model, X, y, sample_weight=weight)
    assert found["accuracy"].value == pytest.approx(model.score(X, y, weight), abs=1e-6)
    half = exact(model, X, y, sample_weight=(np.arange(ROWS) < 600).astype(float))
    assert half["accuracy"].value == pytest.approx(model.score(X[:600], y[:600]), abs=1e-9)


def test_several_classes_and_models_without_probabilities():
    X, _ = table(rows=3_000)
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    three = fitted(LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1, 2], random_state=0, epsilon=5.0), X, y)
    found = exact(three, X, y)
    assert found["accuracy"].value == pytest.approx(three.score(X, y), abs=1e-9)
    clipped = np.maximum(three.predict_proba(X)[np.arange(y.size), y], 0.01)
    assert found["log_loss"].value == pytest.approx(-np.log(clipped).mean(), abs=1e-6)
    assert found.roc == found.calibration == ()
    with pytest.raises(ValueError, match="figures must be among accuracy, log_loss for this model; got 'curves'"):
        evaluate(three, X, y, figures=["curves"])
    machine = fitted(LinearSVC(bounds=(-1.0, 1.0), classes=[0, 1], random_state=0), X, (y > 0).astype(int))
    found = exact(machine, X, (y > 0).astype(int))
    assert set(found.figures) == {"accuracy", "accuracy_of_constant", "accuracy_gain", "roc_auc"}
    assert found.calibration == ()
    assert len(found.roc) == 17


def test_the_result_states_its_cost_and_becomes_json(model):
    X, y = table()
    found = evaluate(model, X, y, 0.5, 1e-6, random_state=0)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (0.5, 1e-6)
    assert "differentially private" in found.guarantee.statement()
    assert "epsilon 0.5, delta 1e-06, relation replace" in str(found)
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["figures"]["accuracy"]["noise_std"] == found["accuracy"].noise_std > 0.0
    assert again["released"]["confusion"]["values"] == found.released.of("confusion").tolist()
    assert evaluate(model, X, y, 0.5, 0.0, random_state=0).guarantee.delta == 0.0
    assert evaluate(model, X, y, Budget.zcdp(0.1), random_state=0).guarantee.is_private
    with pytest.raises(KeyError, match="has no figure 'r2'"):
        found["r2"]


def test_fewer_figures_have_less_noise(model):
    X, y = table()
    whole, few = (evaluate(model, X, y, 0.5, figures=figures) for figures in (None, "accuracy"))
    assert few["accuracy"].noise_std < 0.7 * whole["accuracy"].noise_std
    assert set(few.figures) == {"accuracy", "accuracy_of_constant", "accuracy_gain"}


def test_a_tiny_budget_says_that_nothing_is_known(model, regressor):
    X, y = table()
    for seed in range(20):  # an estimate far out of range, too, leaves everything open
        found = evaluate(model, X, y, 1e-3, random_state=seed, figures="accuracy")
        assert (found["accuracy"].low, found["accuracy"].high) == (0.0, 1.0)
    assert found.beats_constant is None
    assert "cannot be told" in str(found)
    weak = evaluate(regressor, X, 2.0 * X[:, 0], 1e-3, relation="zero_out")
    assert weak["r2"].low == -math.inf
    assert weak.beats_constant is None
    json.dumps(weak.to_dict(), allow_nan=False)


def test_the_ledger_is_charged_before_rows_are_read(model, tmp_path, monkeypatch):
    X, y = table()
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=1.0, delta=1e-5)
    evaluate(model, X, y, 0.6, 1e-6, ledger=ledger, dataset="clinic")
    spent = ledger.spent("clinic")
    assert 0.3 < spent <= 0.6

    def never(*_):
        raise AssertionError("a row was read")

    monkeypatch.setattr(type(model), "predict", never)
    with pytest.raises(BudgetExceededError):
        evaluate(model, X, y, 2.0, 1e-6, ledger=ledger, dataset="clinic")
    assert ledger.spent("clinic") == spent
    with pytest.raises(AssertionError, match="a row was read"):
        evaluate(model, X, y, 0.1, 1e-6, ledger=ledger, dataset="clinic")
    assert ledger.spent("clinic") > spent  # what died after the grant stays counted


def test_pipelines_count_if_every_step_treats_rows_on_its_own():
    X, y = table(rows=3_000)
    settings = {"bounds": (-4.0, 4.0), "classes": [0, 1], "random_state": 0}
    for step in (PrivateScaler(bounds=(-1.0, 1.0), random_state=0), Binarizer()):
        model = fitted(make_pipeline(step, LogisticRegression(**settings)), X, y)
        assert exact(model, X, y)["accuracy"].value == pytest.approx(model.score(X, y), abs=1e-9)
    model = fitted(make_pipeline(StandardScaler(), LogisticRegression(**settings)), X, y)
    with pytest.raises(ValueError, match="StandardScaler"):
        evaluate(model, X, y)


def test_errors_name_the_argument(model, regressor):
    X, y = table()
    for settings, message in [
        ({"confidence": 1.0}, "confidence must be"),
        ({"least_probability": 0.0}, "least_probability must be"),
        ({"edges": [1.0, 0.0]}, "edges must be"),
        ({"figures": ["r2"]}, "figures must be among accuracy, log_loss, curves"),
        ({"relation": "add_remove"}, "public_n"),
        ({"sample_weight": np.full(ROWS, 2.0)}, "sample_weight must lie in"),
    ]:
        with pytest.raises(ValueError, match=message):
            evaluate(model, X, y, **settings)
    with pytest.raises(ValueError, match="y has 3 values"):
        evaluate(model, X, y[:3])
    with pytest.raises(ValueError, match="y contains NaN"):
        evaluate(regressor, X, np.where(np.arange(ROWS) == 5, np.nan, y))
    with pytest.raises(ValueError, match="y holds something else than numbers") as caught:
        evaluate(regressor, X, ["secret"] * ROWS)
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="y must be one number per row"):
        evaluate(regressor, X, X)
    with pytest.raises(ValueError, match="largest_error must be"):
        evaluate(regressor, X, y, largest_error=7.0)
    with pytest.raises(ValueError, match="figures is for classifiers"):
        evaluate(regressor, X, y, figures=["accuracy"])
    with pytest.raises(ValueError, match="y_bounds must have both ends"):  # else the noise has no end either
        evaluate(regressor, X, y, y_bounds=(-3.0, None))
    learned = fitted(Ridge(bounds=(-1.0, 1.0), y_bounds="data"), X, 2.0 * X[:, 0])
    with pytest.raises(ValueError, match="y_bounds is missing"):  # exact ends of the target are not public
        evaluate(learned, X, 2.0 * X[:, 0])


def test_scores_say_that_they_are_not_private():
    for kind in (LogisticRegression, LinearSVC, Ridge):
        assert "NOT PRIVATE" in kind.score.__doc__


def test_the_area_falls_with_the_rows():
    """Bins of its own from a public number of rows on; with those of the curves alone it would stay 0.07 wide."""
    X, y = table(7, 300_000)
    model = fitted(LogisticRegression(bounds=(-1.0, 1.0), classes=[0, 1], random_state=0), *table(1, 4_000))
    area = evaluate(model, X, y, 0.5, random_state=0)["roc_auc"]
    exact_area = roc_auc_score(y, model.decision_function(X))
    assert area.high - area.low < 0.01
    assert abs(area.value - exact_area) < 0.01  # 5 standard deviations of the noise
    few = evaluate(model, X[:2_000], y[:2_000], 0.5, random_state=0)
    assert [part.name for part in few.released.parts if part.name.startswith("rank")] == []
    coarse = evaluate(model, X, y, 0.5, random_state=0, edges=[0.0])  # the edges of the curves do not matter for it
    assert coarse["roc_auc"].high - coarse["roc_auc"].low < 0.01


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
def test_hostile_rows_leave_the_figures_finite_and_in_order(regressor, relation):
    """Targets at the ends of doubles, subnormal, far from all others: one line each, and no warning."""
    X, _ = table()
    settings = {"relation": relation, "public_n": 900 if relation == "add_remove" else None}
    for value in (1e308, -1e308, 5e-324, 0.0):
        y = 2.0 * X[:, 0]
        y[:3] = value
        for model in (regressor, _free(regressor)):
            found = evaluate(model, X, y, 1.0, random_state=0, y_bounds=None, **settings)
            assert np.isfinite(found.released.values).all()
            assert all(limits.low <= limits.high for limits in found.figures.values())


def _free(model):
    """The same model as one whose limits were learned: nothing is clipped before the errors are."""
    free = copy.copy(model)
    free.y_bounds = None
    return free
