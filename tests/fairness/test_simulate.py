"""Many models at once: their values are those of the notions, and drawn models have the law they were drawn from."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest

from discreet import LogisticRegression
from discreet.fairness import certificate, linear_classifier
from discreet.fairness.cells import row_cells
from discreet.fairness.figures import drawn_scores, law_at, refitted, scores_of, values_of
from discreet.theory.distance import GaussianDistance, KnownDistance

pytestmark = pytest.mark.filterwarnings(
    "ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.PrivacyLeakWarning"
)
KNOWN = {"bounds": (-1.0, 1.0), "classes": [0, 1], "fit_intercept": False, "solver": "output-perturbation"}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, group = rng.uniform(-1.0, 1.0, (3_000, 4)), rng.choice(["a", "b"], 3_000)
    y = (X[:, 0] + 0.3 * (group == "a") * X[:, 1] + 0.2 * rng.standard_normal(3_000) > 0.0).astype(int)
    return X, y, group


@pytest.fixture(scope="module")
def model(rows):
    return LogisticRegression(epsilon=2.0, alpha=0.1, random_state=0, **KNOWN).fit(rows[0], rows[1])


def test_values_of_models_are_those_of_their_certificates(rows, model):
    X, y, group = rows
    others = refitted(model, X, y, 3)
    found = values_of(scores_of([model, *others], X), row_cells(y, group, labels=model.classes_))
    for place, each in enumerate([model, *others]):
        wanted = certificate(each, X, y, group)
        np.testing.assert_allclose(found.values[place], [s.value for s in wanted.statements], atol=1e-12)
        for notion, total in wanted.aggregate.items():
            np.testing.assert_allclose(found.aggregate(notion)[place], total.value, atol=1e-12)
    assert len({tuple(other.coef_[0]) for other in [model, *others]}) == 4  # every fit has noise of its own


def drawn_distances(model, law, X, count):
    """Distances of drawn models in the norm of a law, from their scores on as many rows as there are weights."""
    made = linear_classifier(model)
    square = np.eye(4)
    rows = made.rows(square)
    centre = rows @ made.weights.T
    moved = np.array([scores - centre for scores in drawn_scores(made, law, square, count, seed=1)])[:, :, 0]
    steps = np.linalg.solve(rows, moved.T).T
    return np.sqrt((steps**2 * law.weights).sum(axis=1))


def test_drawn_models_have_the_law_they_are_drawn_from(rows, model):
    """Kolmogorov-Smirnov at level 1e-4; a law with 30 % more noise is rejected."""
    weights = np.array([1.0, 4.0, 0.5, 2.0])
    law = GaussianDistance(weights, 1, "a test", deviation=0.3)
    found = (drawn_distances(model, law, rows[0], 1_000) / 0.3) ** 2
    assert kstest(found, chi2(4).cdf).pvalue > 1e-4
    wider = GaussianDistance(weights, 1, "a test", deviation=0.39)
    assert kstest((drawn_distances(model, wider, rows[0], 1_000) / 0.3) ** 2, chi2(4).cdf).pvalue < 1e-4
    known = KnownDistance(weights, 1, "a test", distance=0.7)
    np.testing.assert_allclose(drawn_distances(model, known, rows[0], 5), 0.7)


@pytest.mark.filterwarnings("ignore:the noise in a prediction")  # a small table, for which that is not the point
def test_the_law_at_other_rows_and_epsilons_is_that_of_such_a_fit(rows, model):
    X, y, _ = rows
    np.testing.assert_allclose(law_at(model, 3_000, 2.0).radius(0.01), linear_classifier(model).law.radius(0.01))
    half = LogisticRegression(epsilon=0.5, alpha=0.1, random_state=1, **KNOWN)
    fitted = half.fit(X[:1_000], y[:1_000])
    np.testing.assert_allclose(
        law_at(fitted, 1_000, 0.5).radius(0.01), linear_classifier(fitted).law.radius(0.01), rtol=1e-12
    )
    assert law_at(model, 1_000, 2.0).radius(0.01) > 1.5 * law_at(model, 3_000, 2.0).radius(0.01)
    assert law_at(model, 3_000, 0.5).radius(0.01) > 1.5 * law_at(model, 3_000, 2.0).radius(0.01)


def test_the_law_knows_the_names_and_the_booleans_of_the_fit():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.random(3_000) > 0.5, "b": draw.random(3_000)})
    for columns, bounds in ((["a"], None), (["a", "b"], {"b": (0.0, 1.0)})):
        fitted = LogisticRegression(
            epsilon=2.0, alpha=0.1, bounds=bounds, classes=[0, 1], solver="output-perturbation", random_state=0
        ).fit(frame[columns], frame["a"].astype(int))
        found, own = law_at(fitted, 3_000, 2.0), linear_classifier(fitted).law
        np.testing.assert_allclose(found.radius(0.01), own.radius(0.01), rtol=1e-12)
