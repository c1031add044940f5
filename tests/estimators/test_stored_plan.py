"""What a model file keeps for certificates: the released scaling and a plan that comes back exactly, or is refused."""

import json
import math
import time

import numpy as np
import pytest
import scipy.sparse as sp

import discreet
from discreet import load_model, save_model
from discreet._common.exceptions import PrivacyLeakWarning
from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, Target
from discreet.estimators import model_file
from discreet.estimators.stored_plan import plan_of
from discreet.estimators.table_fit import FitRequest, fit_table
from discreet.solvers import OutputPerturbation

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 3)) * [1.0, 50.0, 0.02]
Y = (X @ [2.0, 0.03, -20.0] > 0.0).astype(int)

CASES = {
    "newton": {},
    "declared": {"bounds": ([-3.0, -150.0, -0.1], [3.0, 150.0, 0.1])},
    "cd": {"solver": "cd", "fit_intercept": False},
    "settings": {"solver": OutputPerturbation(row_norm=1.0, ridge=0.25)},
    "sgd": {"solver": "sgd"},
    "add_remove": {"relation": "add_remove", "public_n": 500},
    "zero_out": {"relation": "zero_out"},
    "budget": {"epsilon": discreet.Budget.zcdp(0.5)},
}


def fitted(parameters, table=X):
    return discreet.LogisticRegression(**({"epsilon": 5.0, "classes": [0, 1]} | parameters)).fit(table, Y)


def through_a_file(model, folder):
    save_model(model, folder / "model.json")
    return load_model(folder / "model.json")


def same_scaling(first, second):
    for name, value in vars(first).items():
        np.testing.assert_array_equal(getattr(second, name), value, err_msg=name)


@pytest.mark.parametrize("name", CASES)
def test_scaling_and_plan_come_back_exactly(tmp_path, name):
    model = fitted(CASES[name])
    loaded = through_a_file(model, tmp_path)
    same_scaling(model.scaling_, loaded.scaling_)
    assert model.scaling_ is model.solution_.scaling
    assert plan_of(model) is model.plan_
    assert plan_of(loaded).digest == model.plan_.digest
    assert plan_of(loaded).mechanism == model.plan_.mechanism
    assert plan_of(loaded).settings == model.plan_.settings


def test_sparse_tables_regressors_and_several_classes_too(tmp_path):
    sparse = fitted({"bounds": (-200.0, 200.0)}, sp.csr_array(X))
    assert plan_of(through_a_file(sparse, tmp_path)).public.sparse
    regressor = discreet.Ridge(epsilon=5.0).fit(X, X[:, 0])
    same_scaling(regressor.scaling_, through_a_file(regressor, tmp_path).scaling_)
    several = discreet.LogisticRegression(epsilon=5.0, classes=[0, 1, 2]).fit(X, Y + (X[:, 0] > 1.0))
    assert plan_of(through_a_file(several, tmp_path)).digest == several.plan_.digest


def test_a_model_of_the_command_line_whose_task_was_asked_for(tmp_path):
    columns = np.column_stack([X, Y])
    np.savetxt(tmp_path / "table.csv", columns, delimiter=",", header="a,b,c,y", comments="")
    schema = Schema((Column("a"), Column("b"), Column("c")), Target("y"))
    fit = fit_table(open_table(tmp_path / "table.csv"), FitRequest(schema, parameters={"epsilon": 5.0}))
    assert fit.question is not None  # a part of the budget went into it
    assert plan_of(through_a_file(fit.model, tmp_path)).digest == fit.model.plan_.digest


def test_a_plan_that_cannot_be_made_again_is_a_value_error(tmp_path):
    loaded = through_a_file(fitted({}), tmp_path)
    loaded.set_params(epsilon=4.0)
    with pytest.raises(ValueError, match="changed after the fit"):
        plan_of(loaded)
    with pytest.warns(PrivacyLeakWarning):
        model = fitted({"bounds": "data"})
    assert json.loads((tmp_path / "model.json").read_text())["plan"] is not None
    loaded = through_a_file(model, tmp_path)
    assert json.loads((tmp_path / "model.json").read_text())["plan"] is None  # a digest of exact minima is not public
    with pytest.raises(ValueError, match="does not say how its fit was planned"):
        plan_of(loaded)


def test_exact_bounds_of_a_target_stay_out_of_the_file(tmp_path):
    """With y_bounds="data" the scaling holds the exact ends of the target, and the digest depends on them."""
    target = np.random.default_rng(1).normal(size=len(X))
    with pytest.warns(PrivacyLeakWarning):
        model = discreet.Ridge(epsilon=5.0, y_bounds="data").fit(X, target)
    save_model(model, tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert repr(float(target.max())) not in text
    assert repr(float(target.min())) not in text
    assert json.loads(text)["plan"] is None
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="does not say how its fit was planned"):
        plan_of(loaded)


def test_a_stream_is_refused(tmp_path):
    model = discreet.LogisticRegression(classes=[0, 1], bounds=(-200.0, 200.0), public_n=600)
    model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="cannot be made again"):
        plan_of(through_a_file(model, tmp_path))


def test_a_file_without_scaling_still_predicts(tmp_path):
    model = fitted({})
    content = model_file.to_dict(model)
    del content["scaling"], content["plan"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert not hasattr(loaded, "scaling_")
    with pytest.raises(AttributeError, match="does not hold its scaling"):
        _ = loaded.scaling_
    save_model(loaded, tmp_path / "again.json")  # what is not known is not invented
    assert json.loads((tmp_path / "again.json").read_text())["scaling"] is None


def test_a_refit_forgets_what_the_file_said(tmp_path):
    loaded = through_a_file(fitted({}), tmp_path)
    loaded.set_params(bounds=(-1.0, 1.0)).fit(X, Y)
    assert loaded.scaling_ is loaded.solution_.scaling
    assert plan_of(loaded) is loaded.plan_


@pytest.fixture(scope="module")
def good():
    return model_file.to_dict(fitted({}))


@pytest.mark.parametrize(
    ("solver", "name"), [("newton", "steps"), ("greedy-cd", "steps"), ("sgd", "passes"), ("svrg", "inner")]
)
def test_a_file_cannot_make_planning_take_long(good, solver, name):
    """Planning takes time and memory for every step; the model predicts all the same, without its plan."""
    content = json.loads(json.dumps(good))
    content["parameters"]["solver"] = {"solver": {"name": solver, name: 10**9}}
    begin = time.process_time()
    loaded = model_file.from_dict(content).estimator
    with pytest.raises(ValueError, match=f"its solver has {name} = 1e.09"):
        plan_of(loaded)
    assert "its solver has" in str(loaded.summary())
    assert time.process_time() - begin < 2.0


DAMAGES = [
    ("scaling", "shift", [0.0], "shift"),
    ("scaling", "scale", [1.0, 0.0, 1.0], "out of range"),
    ("scaling", "scale", [1.0, 5e-324, 1.0], "out of range"),
    ("scaling", "scale", [1.0, True, "x"], "scale"),
    ("scaling", "second_moment", [1.0, -1.0, 1.0], "out of range"),
    ("scaling", "frozen", [0, 0, 1], "frozen"),
    ("plan", "rows", 0, "rows"),
    ("plan", "sparse", 1, "sparse"),
    ("plan", "digest", None, "digest"),
]


@pytest.mark.parametrize(("part", "key", "value", "word"), DAMAGES)
def test_damage_is_named(tmp_path, good, part, key, value, word):
    assert math.isfinite(good["scaling"]["scale"][0])
    (tmp_path / "model.json").write_text(json.dumps(good | {part: good[part] | {key: value}}))
    with pytest.raises(ValueError, match=word):
        load_model(tmp_path / "model.json")
