"""Model files: the same predictions to the last bit, nothing secret inside, and no damage goes unnoticed."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import load_model, save_model
from discreet._common.exceptions import InsecureRandomnessWarning, NotPrivateWarning
from discreet.data.schema import Column, Schema, Target
from discreet.estimators import model_file
from discreet.privacy import accounting

pytestmark = pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # small tables

SECRET_SEED = 918273645


def table(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 50.0, 0.02]
    return X, X @ [2.0, 0.03, -20.0] + rng.normal(size=rows)


def fitted(name, labels=None, **parameters):
    X, margin = table()
    kind = getattr(discreet, name)
    if labels is None:
        target = margin
    else:
        cuts = np.quantile(margin, np.arange(1, len(labels)) / len(labels))
        target = np.asarray(labels)[np.digitize(margin, cuts)]
        parameters["classes"] = labels
    return kind(epsilon=5.0, **parameters).fit(X, target)


CASES = [
    ("LogisticRegression", ["no", "yes"], {}),
    ("LogisticRegression", [0, 1], {"bounds": (-10.0, 10.0)}),
    ("LogisticRegression", [False, True], {"fit_intercept": False}),
    ("LogisticRegression", ["a", "inf", "c"], {"multi_class": "ovr"}),
    ("LogisticRegression", [1.0, 2.0, 4.0], {"penalty": "l1"}),
    ("LinearSVC", [1, 2, 3], {"relation": "zero_out"}),
    ("LinearRegression", None, {"solver": "gd"}),
    ("Ridge", None, {"y_bounds": (-100.0, 100.0), "bounds": ([-3, -99, -1], [3, 99, 1])}),
    ("Lasso", None, {"delta": 0.0, "bounds": (-100.0, 100.0)}),
    ("ElasticNet", None, {"solver": "sgd", "bounds": (-100.0, 100.0)}),
    ("HuberRegressor", None, {}),
    ("PoissonRegressor", None, {}),
    ("GammaRegressor", None, {"y_bounds": (0.0, 100.0), "solver": "gd"}),
    ("LogisticRegression", ["no", "yes"], {"class_weight": {"yes": 4.0, "no": 1}}),
]


@pytest.mark.parametrize(("name", "labels", "parameters"), CASES)
def test_a_loaded_model_predicts_bit_for_bit(tmp_path, name, labels, parameters):
    model = fitted(name, labels, **parameters)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    fresh = 3.0 * table(seed=1)[0]
    predictions = loaded.predict(fresh)
    np.testing.assert_array_equal(predictions, model.predict(fresh))
    assert predictions.dtype == model.predict(fresh).dtype
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(fresh), model.predict_proba(fresh))
    for attribute in ("coef_", "intercept_", "n_iter_", "n_features_in_"):
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(model, attribute))


@pytest.mark.parametrize(("name", "labels", "parameters"), CASES)
def test_the_guarantee_and_the_parameters_come_back(tmp_path, name, labels, parameters):
    model = fitted(name, labels, **parameters)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.guarantee_.to_dict() == model.guarantee_.to_dict()
    assert loaded.guarantee_.certified == model.guarantee_.certified
    old, new = model.get_params(), loaded.get_params()
    assert {key: np.asarray(value, dtype=object).tolist() for key, value in new.items()} == {
        key: np.asarray(value, dtype=object).tolist() for key, value in old.items()
    }


def test_a_loaded_model_can_be_saved_again_and_refitted(tmp_path):
    model = fitted("Ridge")
    save_model(model, tmp_path / "one.json")
    loaded = load_model(tmp_path / "one.json")
    save_model(loaded, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()
    loaded.set_params(epsilon=2.0).fit(*table())
    assert loaded.guarantee_.epsilon == 2.0  # the loaded promise does not outlive the model it was about


@pytest.mark.parametrize(
    "budget", [accounting.Budget.zcdp(0.5), accounting.Budget.gdp(1.0), accounting.Budget(3.0, 1e-6)]
)
def test_a_budget_object_comes_back(tmp_path, budget):
    save_model(fitted("Ridge").set_params(epsilon=budget).fit(*table()), tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").epsilon == budget


def test_without_privacy_the_file_says_so(tmp_path):
    model = discreet.Ridge(epsilon=math.inf)
    with pytest.warns(NotPrivateWarning):
        model.fit(*table())
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert not loaded.guarantee_.is_private
    assert loaded.epsilon == math.inf
    np.testing.assert_array_equal(loaded.predict(table()[0]), model.predict(table()[0]))


def test_neither_seed_nor_ledger_nor_rows_are_written(tmp_path):
    ledger = discreet.Ledger(tmp_path / "hush-hush.db", allow_seeded=True)
    ledger.open("ward-nine", 10.0, 1e-3)
    X, y = table()
    X[5] = 123456.789
    model = discreet.Ridge(random_state=SECRET_SEED, ledger=ledger, dataset="ward-nine", bounds=(-9, 9))
    with pytest.warns(InsecureRandomnessWarning):
        model.fit(X, y)
    save_model(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    for secret in (str(SECRET_SEED), "hush-hush", "123456"):
        assert secret not in text
    assert json.loads(text)["guarantee"]["release"]["table"] == "ward-nine"  # a statement names its table
    assert load_model(tmp_path / "model.json").random_state is None


def test_names_and_schema_come_back(tmp_path):
    X, y = table()
    schema = Schema((Column("a", low=0.0, high=1.0), Column("b"), Column("c"), Column("d", "ignore")), Target("y"))
    model = discreet.Ridge(epsilon=5.0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    save_model(model, tmp_path / "model.json", schema)
    stored = model_file.read_model(tmp_path / "model.json")
    assert stored.schema == schema
    assert stored.estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        stored.estimator.predict(pd.DataFrame(X, columns=["a", "c", "b"]))


def test_a_model_that_is_not_fitted_or_not_ours_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(discreet.Ridge(), tmp_path / "model.json")

    class Stranger(discreet.Ridge):
        pass

    with pytest.raises(ValueError, match="Stranger"):
        save_model(Stranger(epsilon=5.0).fit(*table()), tmp_path / "model.json")


def test_an_existing_file_is_kept_unless_asked(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        save_model(fitted("Ridge"), path, overwrite=False)
    assert path.read_text() == "precious"


@pytest.fixture(scope="module")
def good():
    return model_file.to_dict(fitted("LogisticRegression", ["no", "yes"]))


def damage(content, path, value):
    """A copy of the content with one place changed."""
    copy = json.loads(json.dumps(content))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


DAMAGES = [
    (["format"], "pickle", "format"),
    (["version"], 99, "upgrade"),
    (["version"], "1", "version"),
    (["estimator"], "os.system", "unknown estimator"),
    (["parameters", "random_state"], 3, "random_state"),
    (["parameters", "ledger"], "x.db", "ledger"),
    (["coef"], [[1.0, 2.0]], "do not fit together"),
    (["coef", 0, 0], math.nan, "NaN"),
    (["coef", 0, 0], "inf", "coef is not finite"),
    (["coef", 0, 0], "1.5", "other values than numbers"),
    (["coef", 0, 0], 1e308, "predictions could exceed"),
    (["intercept"], [1.0, 2.0], "do not fit together"),
    (["classes"], None, "classes"),
    (["classes", "dtype"], "V8", "classes"),
    (["classes", "values"], ["a", "b", "c"], "do not fit together"),
    (["classes", "values"], ["no", "no"], "two different values"),
    (["classes", "values"], ["yes", "no"], "in order"),
    (["classes", "dtype"], "<U1", "classes"),
    (["classes", "dtype"], "<U400000000", "3200000000 bytes"),
    (["columns"], 3.0, "columns must be a whole number"),
    (["iterations"], "4", "iterations must be a whole number"),
    (["columns"], 4, "columns"),
    (["feature_names"], ["a"], "feature_names"),
    (["ranges", "low", 0], "inf", "ranges"),
    (["ranges", "low", 0], math.nan, "NaN"),
    (["guarantee", "epsilon"], -1.0, "epsilon"),
    (["guarantee", "relation"], "near", "near"),
    (["guarantee", "event"], {"type": "Popen"}, "Popen"),
    (["schema"], {"columns": [{"name": "a"}]}, "schema"),
]


@pytest.mark.parametrize(("path", "value", "word"), DAMAGES)
def test_damage_is_named_in_one_line(tmp_path, good, path, value, word):
    file = tmp_path / "model.json"
    file.write_text(json.dumps(damage(good, path, value)))
    with pytest.raises(ValueError, match=word) as caught:
        load_model(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def places(content, path=()):
    """The path of every value in nested lists and dictionaries."""
    children = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[]]),
)


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_whatever_is_damaged_the_answer_is_a_model_or_a_value_error(tmp_path_factory, good, data):
    path = data.draw(st.sampled_from(list(places(good))))
    file = tmp_path_factory.getbasetemp() / "damaged.json"
    file.write_text(json.dumps(damage(good, path, data.draw(JUNK))))
    try:
        model = load_model(file)
    except ValueError:
        return
    assert np.isfinite(model.decision_function(table()[0])).all()


@pytest.mark.parametrize("text", ["", "[]", "{", "3", "null", "{}", '{"format": "discreet model"}'])
def test_another_kind_of_file_is_refused(tmp_path, text):
    file = tmp_path / "model.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="not a model of discreet"):
        load_model(file)


def test_a_pipeline_is_refused_with_what_to_do_instead(tmp_path):
    from sklearn.pipeline import make_pipeline

    with pytest.raises(ValueError, match=r"a model alone: pickle the pipeline, or save its last step, pipeline\[-1\]"):
        save_model(make_pipeline(discreet.Ridge()), tmp_path / "model.json")
