"""The gate for raw input: one module validates, and every way in goes through it."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import LogisticRegression, PrivacyLeakWarning, Ridge
from discreet.data.validation import Table, declared_classes, encode_labels
from discreet.preprocessing import PrivateBounds, private_means
from discreet.problem import Squared

PACKAGE = Path(discreet.__file__).parent
VALIDATORS = {"check_array", "check_X_y", "validate_data", "check_classification_targets"}


def validators_in(tree):
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn")
        for alias in node.names
    } & VALIDATORS


def test_one_module_validates_raw_input():
    users = {path for path in PACKAGE.rglob("*.py") if validators_in(ast.parse(path.read_text()))}
    assert users == {PACKAGE / "data" / "validation.py"}


DOUBLE = pd.DataFrame(np.eye(4), columns=["a", "a", "b", "c"])


@pytest.mark.parametrize("model", [Ridge(), LogisticRegression(classes=[0, 1]), PrivateBounds()])
def test_every_way_in_refuses_duplicate_names(model):
    with pytest.raises(ValueError, match="duplicate column names"):
        model.fit(DOUBLE, [0, 1, 0, 1])


def rows_with_names(seed=0):
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(300, 2))
    return X, ["a", "b"], (X[:, 0] > 0).astype(int)


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
def test_a_table_is_a_data_frame_without_pandas():
    X, names, y = rows_with_names()
    settings = {"classes": [0, 1], "bounds": (-1, 1), "random_state": 1}
    plain = LogisticRegression(**settings).fit(pd.DataFrame(X, columns=names), y)
    model = LogisticRegression(**settings).fit(Table(X, names), y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)  # a frame lies in memory column by column
    np.testing.assert_array_equal(model.coef_, LogisticRegression(**settings).fit(X, y).coef_)
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 2
    framed = model.predict_proba(pd.DataFrame(X, columns=names))
    np.testing.assert_allclose(model.predict_proba(Table(X, names)), framed, rtol=1e-12)


@pytest.mark.parametrize("names", [["b", "a"], ["a", "b", "c"]])
def test_a_table_with_other_columns_is_refused(names):
    X, own, y = rows_with_names()
    model = LogisticRegression(classes=[0, 1], bounds=(-1, 1)).fit(Table(X, own), y)
    with pytest.raises(ValueError, match="not those that the model was trained on"):
        model.predict(Table(np.ones((1, len(names))), names))
    unnamed = LogisticRegression(classes=[0, 1], bounds=(-1, 1)).fit(X, y)
    assert unnamed.predict(Table(X, own)).shape == y.shape
    with pytest.raises(ValueError, match="trained on 2"):
        unnamed.predict(Table(np.ones((1, 3)), ["a", "b", "c"]))


def test_labels_are_coded_as_losses_expect_them():
    np.testing.assert_array_equal(
        encode_labels(np.array(["no", "yes", "no"]), declared_classes(["yes", "no"])), [-1, 1, -1]
    )
    np.testing.assert_array_equal(encode_labels(np.array([3, 1, 2]), declared_classes([1, 2, 3])), [2, 0, 1])
    for unknown in (["maybe"], [7]):
        with pytest.raises(ValueError, match="not in classes"):
            encode_labels(np.array(unknown), declared_classes(["yes", "no"]))


@pytest.mark.parametrize("labels", [np.arange(400) % 2, np.arange(400) % 300], ids=["two", "three hundred"])
def test_no_warning_tells_how_many_of_the_declared_labels_occur(labels):
    """scikit-learn warns where more than half of the labels are distinct; warnings are errors here."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2))
    model = LogisticRegression(classes=list(range(300)), bounds=(-1.0, 1.0), solver="gd").fit(X, labels)
    assert model.classes_.size == 300
    with pytest.warns(PrivacyLeakWarning) as caught:
        LogisticRegression(bounds=(-1.0, 1.0), solver="gd").fit(X, labels)
    leaks = [str(warning.message)[:11] for warning in caught if warning.category is PrivacyLeakWarning]
    assert set(leaks) == {"the classes"}


def test_declared_labels_may_be_any_numbers():
    y = np.where(np.arange(400) % 2, 0.5, 1.5)
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2))
    assert LogisticRegression(classes=[0.5, 1.5], bounds=(-1.0, 1.0)).fit(X, y).classes_.tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="Unknown label type"):
        LogisticRegression(bounds=(-1.0, 1.0)).fit(X, y)


X_OF_NUMBERS, TARGET = np.linspace(-1.0, 1.0, 40).reshape(20, 2), np.linspace(-1.0, 1.0, 20)
SECRET_TEXTS = [np.array(["secret"] * 20), np.array([0.5] * 19 + ["secret"], dtype=object), np.array([b"secret"] * 20)]
PROBLEM = discreet.Problem(Squared())
READERS = {
    "weights of a fit": lambda values: Ridge().fit(X_OF_NUMBERS, TARGET, sample_weight=values),
    "target of a fit": lambda values: Ridge().fit(X_OF_NUMBERS, values),
    "target of solve": lambda values: discreet.solve(PROBLEM, X_OF_NUMBERS, values),
    "target of a stream": lambda values: Ridge(bounds=(-1, 1), y_bounds=(-1, 1), public_n=99).partial_fit(
        X_OF_NUMBERS, values
    ),
    "weights of a transformer": lambda values: PrivateBounds().fit(X_OF_NUMBERS, sample_weight=values),
    "weights of means": lambda values: private_means(X_OF_NUMBERS, (-1.0, 1.0), sample_weight=values),
}


@pytest.mark.parametrize("values", SECRET_TEXTS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_text_among_targets_or_weights_is_refused_without_showing_it(read, values):
    with pytest.raises(ValueError, match="holds text where numbers are expected") as refused:
        read(values)
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "read",
    [
        lambda values: Ridge().fit(np.column_stack([values, values]), TARGET),
        lambda values: Ridge().fit(X_OF_NUMBERS, values),
        lambda values: private_means(np.column_stack([values, values]), (-1.0, 1.0)),
    ],
)
def test_complex_numbers_are_refused_without_showing_them(read):
    with pytest.raises(ValueError, match="Complex data not supported") as refused:
        read(TARGET + 77123.25j)
    assert "77123" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_label_that_is_alone_is_not_shown():
    with pytest.raises(ValueError, match="one class only") as refused:
        LogisticRegression().fit(X_OF_NUMBERS, ["secret"] * 20)
    assert "secret" not in str(refused.value)
