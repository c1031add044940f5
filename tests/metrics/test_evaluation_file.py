"""Evaluations in files: they come back as they are, say which model they are about, and prove their own cost."""

import copy
import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from discreet import LinearSVC, LogisticRegression, Ridge, load_model, save_model
from discreet.estimators.fingerprint import fingerprint
from discreet.metrics import evaluate, load_evaluation, save_evaluation
from discreet.preprocessing import PrivateScaler

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (900, 2))
LABELS = np.digitize(X[:, 0] + 0.3 * rng.normal(size=900), [-0.4, 0.4])
KINDS = {
    "two classes": (LogisticRegression(classes=[0, 1], bounds=(-1.0, 1.0)), np.minimum(LABELS, 1), {}),
    "three classes": (LogisticRegression(classes=[0, 1, 2], bounds=(-1.0, 1.0)), LABELS, {"relation": "zero_out"}),
    "hinge": (LinearSVC(classes=["a", "b"], bounds=(-1.0, 1.0)), np.where(LABELS > 0, "b", "a"), {"delta": 0.0}),
    "regression": (
        Ridge(bounds=(-1.0, 1.0), y_bounds=(-1.0, 1.0)),
        X[:, 0],
        {"relation": "add_remove", "public_n": 900},
    ),
}


@pytest.fixture(scope="module")
def found():
    made = {}
    for kind, (model, y, more) in KINDS.items():
        fitted = model.set_params(epsilon=5.0, random_state=0).fit(X, y)
        made[kind] = (fitted, evaluate(fitted, X, y, 1.0, random_state=1, **more))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_comes_back_from_its_file_as_it_was(kind, found, tmp_path):
    model, wanted = found[kind]
    save_evaluation(wanted, tmp_path / "evaluation.json")
    read = load_evaluation(tmp_path / "evaluation.json")
    assert read.to_dict() == wanted.to_dict()
    assert str(read) == str(wanted)
    np.testing.assert_array_equal(read.released.values, wanted.released.values)
    assert read.model == fingerprint(model)
    with pytest.raises(FileExistsError):
        save_evaluation(wanted, tmp_path / "evaluation.json", overwrite=False)


def test_a_model_from_a_file_has_the_same_fingerprint_and_another_model_another(found, tmp_path):
    prints = set()
    for model, _ in found.values():
        save_model(model, tmp_path / "model.json")
        assert fingerprint(load_model(tmp_path / "model.json")) == fingerprint(model)
        prints.add(fingerprint(model))
        moved = copy.copy(model)
        moved.intercept_ = np.nextafter(model.intercept_, np.inf)
        assert fingerprint(moved) != fingerprint(model)
        wider = copy.copy(model)
        wider.ranges_ = (model.ranges_[0], model.ranges_[1] + 1.0)
        assert fingerprint(wider) != fingerprint(model)
    assert len(prints) == len(found)


def test_a_pipeline_is_not_taken_for_its_last_step():
    scaler = PrivateScaler(epsilon=5.0, bounds=(-1.0, 1.0), random_state=1)
    model = LogisticRegression(classes=[0, 1], bounds=(-9.0, 9.0), epsilon=5.0, random_state=0)
    pipeline = make_pipeline(scaler, model).fit(X, np.minimum(LABELS, 1))
    assert evaluate(pipeline, X, np.minimum(LABELS, 1), 1.0, random_state=0).model == ""


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "discreet model", "it lacks"),
        (("version",), 2, "version 2"),
        (("figures", "accuracy", "low"), 0.99, "not in order"),
        (("figures", "accuracy", "value"), True, "must be a number"),
        (("figures", "accuracy", "noise_std"), -1.0, "not in order"),
        (("figures",), {}, "not complete"),
        (("figures",), {"area": None}, "must be an object"),
        (("figures",), {"area": dict.fromkeys(("value", "low", "high", "noise_std"))}, "names among"),
        (("confusion",), [], "not complete"),
        (("classes",), [None, 1], "must be a text or"),
        (("confidence",), 1.5, "confidence"),
        (("rows",), 0, "rows"),
        (("noise",), "none", "noise must be"),
        (("settings", "edges"), ["a"], "must be a number"),
        (("released", "scores", "values"), [], "no number"),
        (("weighted",), 1, "true or false"),
        (("model",), 5, "must be a text"),
        (("guarantee", "epsilon"), 0.01, "does not prove"),
        (("roc",), [1], "must be an object"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(place, value, message, found, tmp_path):
    content = json.loads(json.dumps(found["two classes"][1].to_dict()))
    holder = content
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    (tmp_path / "evaluation.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as refused:
        load_evaluation(tmp_path / "evaluation.json")
    assert "\n" not in str(refused.value)
