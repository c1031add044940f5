"""Class weights: scikit-learn's optimum without noise, and bounds that hold for the class that weighs most."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.metrics import balanced_accuracy_score

from discreet import LinearSVC, LogisticRegression, NotPrivateWarning, Problem
from discreet.privacy.budget import Budget
from discreet.problem import L2, ClassWeighted, Logistic, Multinomial, SmoothedHinge, Squared
from discreet.solvers import SOLVERS
from discreet.solvers.exponential import loss_range

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]
WEIGHTS = {0: 1, 1: 8.0}


def table(rows=4_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, X @ [1.0, -1.0, 0.5] - 2.5 + rng.logistic(size=rows)


def without_noise(model, X, y):
    with pytest.warns(NotPrivateWarning):
        return model.set_params(epsilon=math.inf).fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "newton", "objective-perturbation"])
def test_two_classes_without_noise_have_scikit_learns_coefficients(solver):
    X, score = table()
    y = (score > 0).astype(int)
    theirs = linear_model.LogisticRegression(C=1 / (0.01 * len(y)), class_weight=WEIGHTS, solver="newton-cholesky")
    theirs.fit(X, y)
    options = {"alpha": 0.01, "classes": [0, 1], "solver": solver}
    ours = without_noise(LogisticRegression(class_weight=WEIGHTS, **options), X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)
    plain = without_noise(LogisticRegression(**options), X, y)
    assert np.abs(plain.coef_ - theirs.coef_).max() > 0.05  # weights that were lost would be seen


def test_three_classes_without_noise_have_scikit_learns_probabilities():
    X, score = table()
    y = np.array(["a", "b", "c"])[np.digitize(score, [0.0, 1.5])]
    weights = {"a": 0.25, "c": 3.0}  # a class that is not named weighs 1
    theirs = linear_model.LogisticRegression(C=1 / (0.01 * len(y)), class_weight=weights, solver="newton-cholesky")
    ours = LogisticRegression(alpha=0.01, class_weight=weights, classes=["a", "b", "c"])
    found = without_noise(ours, X, y).predict_proba(X)
    np.testing.assert_allclose(found, theirs.fit(X, y).predict_proba(X), atol=1e-4)


def test_the_support_vector_classifier_without_noise_is_the_optimum_of_its_weighted_loss():
    X, score = table()
    model = without_noise(LinearSVC(alpha=0.01, class_weight=WEIGHTS, classes=[0, 1]), X, (score > 0).astype(int))
    problem = Problem(ClassWeighted(SmoothedHinge(0.5), (1.0, 8.0)), L2(0.01))
    best = problem.optimum(X, np.where(score > 0, 1.0, -1.0))
    assert problem.objective(X, np.where(score > 0, 1.0, -1.0), model.coef_[0], model.intercept_[0]) < best.value + 1e-6


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_private_models_follow_the_weights(kind):
    X, score = table(rows=8_000)
    y = (score > 0).astype(int)
    scores = [
        balanced_accuracy_score(
            y, kind(epsilon=2.0, classes=[0, 1], class_weight=w, random_state=0).fit(X, y).predict(X)
        )
        for w in (None, WEIGHTS)
    ]
    assert scores[1] > scores[0] + 0.05


@pytest.mark.parametrize("weights", [(0.1, 1.0), (1.0, 0.1)])
def test_bounds_hold_for_the_class_that_weighs_most(weights):
    """The range of a loss on which the exponential mechanism rests is that of the worst label, not of +1 alone."""
    loss, margin = ClassWeighted(Logistic(), weights), 3.0
    ends = [loss.value(np.array([-margin, margin]), np.full(2, label)) for label in (-1.0, 1.0)]
    assert loss_range(loss, margin, 0.0) >= max(np.ptp(pair) for pair in ends)
    margins = np.linspace(-30.0, 30.0, 1_001)
    for label in (-1.0, 1.0):
        assert np.abs(loss.slope(margins, np.full(1_001, label))).max() <= loss.lipschitz
        assert loss.curvature(margins, np.full(1_001, label)).max() <= loss.smoothness
    assert loss_range(Logistic(), margin, 0.0) == pytest.approx(margin)  # without weights as before


def test_compiled_solvers_refuse_and_others_take_the_weights():
    budget = Budget(1.0, 1e-6)
    problem = Problem(ClassWeighted(Logistic(), (0.1, 1.0)), L2(0.01))
    takes = {name for name, kind in SOLVERS.items() if kind().why_incompatible(problem, budget) is None}
    assert {"newton", "gd", "ftrl", "objective-perturbation", "output-perturbation"} <= takes
    assert not {"cd", "sgd", "admm", "svrg"} & takes


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("balanced", "would read the shares of the labels from the rows; pass public weights by label"),
        ({}, "must be a dict of weights by label"),
        ([1, 2], "must be a dict of weights by label"),
        ({0: -1.0}, "class_weight of 0 must be a finite number, at least 0"),
        ({0: math.inf}, "class_weight of 0 must be a finite number"),
        ({0: 0.0, 1: 0.0}, "must leave a class with a weight above 0"),
        ({7: 2.0}, r"which is not in classes=\[0, 1\]"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(given, told):
    X, score = table(rows=50)
    with pytest.raises(ValueError, match=told) as error:
        LogisticRegression(class_weight=given, classes=[0, 1]).fit(X, (score > 0).astype(int))
    assert "\n" not in str(error.value)


def test_a_plan_knows_the_weights_before_the_labels_are_seen():
    plan = LogisticRegression(class_weight={"no": 1, "yes": 4}).plan(1_000, 3)
    assert plan.problem.loss == ClassWeighted(Logistic(), (0.25, 1.0))
    with pytest.raises(ValueError, match=r"class_weight needs classes=\[...\]"):
        LogisticRegression(class_weight={"yes": 4}).plan(1_000, 3)


def test_the_loss_refuses_weights_that_do_not_fit():
    with pytest.raises(ValueError, match="a loss of labels"):
        ClassWeighted(Squared(), (1.0, 1.0))
    with pytest.raises(ValueError, match="one for each of 3"):
        ClassWeighted(Multinomial(3), (1.0, 1.0))
    with pytest.raises(ValueError, match="not negative"):
        ClassWeighted(Logistic(), (1.0, -1.0))
