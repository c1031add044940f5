"""The parameters of a fitted classifier give its own scores, and come with the law of its plan."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model, pipeline, preprocessing, svm, tree
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import discreet
from discreet.fairness import linear_classifier
from discreet.fairness.certificates.classifier import LinearClassifier
from discreet.problem.column_scaling import identity_scaling
from discreet.theory.distance import DistanceLaw, GaussianDistance
from tests.fairness_tools import plain_certificate

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


def table(classes, seed=0, rows=600):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)) * [1.0, 20.0, 0.1, 1.0] + [0.0, 100.0, 3.0, 0.0]
    X[:, 3] = 0.0  # nothing can be learned of a constant column
    y = np.digitize(X[:, 0] + 0.05 * (X[:, 1] - 100.0), np.linspace(-1.0, 1.0, classes - 1) if classes > 2 else [0.0])
    return X, np.array(["no", "yes", "maybe", "never"])[y]


BOUNDS = ([-3.0, 50.0, 2.0, -1.0], [3.0, 150.0, 4.0, 1.0])
MODELS = [discreet.LogisticRegression, discreet.LinearSVC]


@pytest.mark.parametrize("bounds", [BOUNDS, None], ids=["bounds", "learned"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", MODELS)
def test_scores_of_private_models(kind, classes, intercept, bounds):
    X, y = table(classes)
    model = kind(epsilon=5.0, bounds=bounds, classes=np.unique(y), fit_intercept=intercept, random_state=0, alpha=0.01)
    model.fit(X, y)
    found = linear_classifier(model)
    scores = found.scores(found.features(X))
    np.testing.assert_allclose(scores.squeeze(), model.decision_function(X), rtol=1e-9, atol=1e-9)
    assert found.rows(X).shape == (len(X), 4 + intercept)
    assert found.weights.shape[1] == found.size
    plain = found.in_user_columns()
    np.testing.assert_allclose(plain.scores(X), scores, rtol=1e-9, atol=1e-9)
    certified = plain_certificate(model, X, y, np.arange(len(X)) % 2, distance=0.0, notions="accuracy")
    assert certified.of("accuracy")[0].value == pytest.approx(model.score(X, y), abs=1e-12)


@pytest.mark.parametrize("method", [discreet.LogisticRegression])
def test_scores_of_sparse_rows_and_frames(method):
    X, y = table(2)
    wide = sp.csr_array(np.where(np.abs(X - X.mean(axis=0)) > X.std(axis=0), X, 0.0))
    model = method(bounds=(-200.0, 200.0), classes=["no", "yes"], random_state=0).fit(wide, y)
    np.testing.assert_allclose(linear_classifier(model).scores(wide).ravel(), model.decision_function(wide), rtol=1e-9)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = method(bounds=(-200.0, 200.0), classes=["no", "yes"], random_state=0).fit(frame, y)
    found = linear_classifier(model)
    np.testing.assert_allclose(found.scores(found.features(frame)).ravel(), model.decision_function(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        found.features(frame[["b", "a", "c", "d"]])


@pytest.mark.parametrize("own_format", ["csr", "csc"])
def test_sparse_rows_get_the_scores_of_a_model_of_centred_columns(own_format):
    """A model of dense rows subtracts a centre, which sparse rows have too: their zeros are not stored."""
    X = np.where(np.random.default_rng(0).uniform(size=(2_000, 4)) < 0.5, 0.0, table(2, rows=2_000)[0])
    y = table(2, rows=2_000)[1]
    model = discreet.LogisticRegression(bounds=(0.0, 150.0), classes=["no", "yes"], random_state=0, alpha=0.01)
    model.fit(X, y)
    found = linear_classifier(model)
    assert model.scaling_.shift.any()
    sparse = sp.csr_array(X).asformat(own_format)
    np.testing.assert_allclose(found.scores(found.features(sparse)).ravel(), model.decision_function(X), atol=1e-12)
    certified = plain_certificate(model, sparse, y, np.arange(len(X)) % 2, distance=0.0, notions="accuracy")
    assert certified.of("accuracy")[0].value == pytest.approx(model.score(sparse, y), abs=1e-12)


def test_sparse_rows_are_refused_where_a_zero_would_be_clipped():
    X, y = table(2)
    model = discreet.LogisticRegression(bounds=BOUNDS, classes=["no", "yes"], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="must contain 0"):
        linear_classifier(model).features(sp.csr_array(X))


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegression(),
        linear_model.LogisticRegression(fit_intercept=False),
        linear_model.RidgeClassifier(),
        linear_model.SGDClassifier(random_state=0),
        svm.LinearSVC(),
        LinearDiscriminantAnalysis(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_scikit_learns_models(model, classes):
    X, y = table(classes)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    model.fit(X, y)
    found = linear_classifier(model)
    np.testing.assert_allclose(found.scores(X).squeeze(), model.decision_function(X), rtol=1e-8, atol=1e-8)
    assert found.law is None


def test_other_models_are_refused():
    X, y = table(3)
    with pytest.raises(ValueError, match="not a linear classifier"):
        linear_classifier(tree.DecisionTreeClassifier().fit(X, y))
    with pytest.raises(ValueError, match="for a pipeline, pass its last step"):
        linear_classifier(pipeline.make_pipeline(preprocessing.StandardScaler(), svm.LinearSVC()).fit(X, y))
    with pytest.raises(ValueError, match="not linear scores"):
        linear_classifier(svm.SVC(kernel="linear").fit(X, y))  # scores of pairs of classes
    with pytest.raises(ValueError, match="not fitted"):
        linear_classifier(discreet.LogisticRegression())
    with pytest.raises(ValueError, match="need coefficients of shape"):
        LinearClassifier(np.array([0, 1]), np.ones((2, 3)), np.zeros(2), identity_scaling(3))


@pytest.mark.filterwarnings("ignore:the noise in a prediction")  # a small table, for which that is not the point
def test_the_law_is_that_of_the_plan():
    X, y = table(2)
    model = discreet.LogisticRegression(
        bounds=BOUNDS, classes=["no", "yes"], random_state=0, alpha=0.1, solver="output-perturbation"
    ).fit(X, y)
    law = linear_classifier(model).law
    wanted = model.plan_.distance_law(model.solution_.scaling)
    assert isinstance(law, GaussianDistance)
    assert law.radius(0.01) == wanted.radius(0.01)
    found = plain_certificate(model, X, y, np.arange(len(X)) % 2)
    assert found.radius == wanted.radius(0.01)
    assert found.distance_to == wanted.reference


def test_a_model_without_a_law_says_what_to_do():
    X, y = table(2)
    model = discreet.LogisticRegression(bounds=BOUNDS, classes=["no", "yes"], random_state=0).fit(X, y)
    assert linear_classifier(model).law is None  # of newton
    group = np.arange(len(X)) % 2
    for unknown in (model, linear_model.LogisticRegression(max_iter=10_000).fit(X, y)):
        with pytest.raises(ValueError, match=r"unknown: .*distance=.*twin=.*gradient_distance"):
            plain_certificate(unknown, X, y, group)
    inside = np.clip(X, model.scaling_.low, model.scaling_.high)  # scikit-learn's model clips nothing
    twin = linear_model.LogisticRegression(max_iter=10_000).fit(inside, y)
    found = plain_certificate(model, inside, y, group, twin=twin)
    step = np.append(model.coef_ - twin.coef_, model.intercept_ - twin.intercept_)
    assert found.radius == pytest.approx(math.sqrt(float(step @ step)))


def test_laws_and_twins_that_do_not_fit_are_refused():
    X, y = table(2)
    model = linear_model.LogisticRegression(max_iter=10_000).fit(X, y)
    group = np.arange(len(X)) % 2
    law: DistanceLaw = GaussianDistance(np.ones(4), 1, "the twin", 0.1)
    with pytest.raises(ValueError, match="1 x 4 parameters, the model has 1 x 5"):
        plain_certificate(model, X, y, group, distance=law)
    for wrong in ("far", True):
        with pytest.raises(ValueError, match="distance must be"):
            plain_certificate(model, X, y, group, distance=wrong)
    with pytest.raises(ValueError, match="distance must be"):
        plain_certificate(model, X, y, group, distance=-1.0)
    with pytest.raises(ValueError, match="none of"):
        plain_certificate(model, X, np.full(len(X), "perhaps"), group, distance=1.0)
    with pytest.raises(ValueError, match="the twin has the classes"):
        plain_certificate(model, X, y, group, twin=linear_model.LogisticRegression(max_iter=10_000).fit(X, y == "no"))
    private = discreet.LogisticRegression(bounds=(0.0, 0.1), classes=["no", "yes"], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="clips the rows in another way"):
        plain_certificate(private, X, y, group, twin=model, reference="twin")
