"""Certificates of real private fits cover the minimiser without noise, which is computed here to high precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import discreet
from discreet.data.validation import array_rows, encode_labels
from discreet.fairness import linear_classifier
from discreet.problem.scaled_problem import scale_problem
from discreet.solvers import SOLVERS, OutputPerturbation
from discreet.solvers._shared.minimisers import clip_rows, minimum_within
from discreet.theory.distance import KnownDistance
from tests.fairness_tools import plain_certificate, uncovered

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

FAILURE, RUNS = 0.1, 15
MOST = int(binom.isf(1e-6, RUNS, FAILURE))  # failures of a true statement exceed it with probability below 1e-6


def table(classes, rows=1_000):
    rng = np.random.default_rng(classes)
    X, group = rng.uniform(-1.0, 1.0, (rows, 3)), rng.choice(["a", "b"], rows)
    score = X @ [2.0, -1.0, 0.5] + 0.4 * rng.normal(size=rows) + 0.3 * (group == "a")
    return X, np.digitize(score, np.linspace(-0.5, 0.5, classes - 1) if classes > 2 else [0.0]), group


def twin_of(model, X, y):
    """The minimiser of the planned problem on the released scales."""
    plan, scaling = model.plan_, model.solution_.scaling
    labels = encode_labels(y, model.classes_)
    scaled = scale_problem(plan.problem, array_rows(X, labels), scaling, len(X), "C")
    scaled = clip_rows(scaled, plan.settings.row_norm, plan.settings.ridge)
    coef, intercept = scaled.to_user(minimum_within(scaled, plan.settings.row_norm, 1e-6))
    return linear_classifier(model).with_parameters(np.atleast_2d(coef), np.atleast_1d(intercept))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_twin_of_output_perturbation_is_covered(classes):
    X, y, group = table(classes)
    wrong = planted = 0
    for seed in range(RUNS):
        model = discreet.LogisticRegression(
            epsilon=2.0,
            bounds=(-1.0, 1.0),
            classes=np.arange(classes),
            alpha=0.05,
            solver=OutputPerturbation(ridge=0.05),
            random_state=seed,
        ).fit(X, y)
        twin = twin_of(model, X, y)
        predicted = twin.classes[
            (twin.scores(X)[:, 0] > 0).astype(int) if classes == 2 else twin.scores(X).argmax(axis=1)
        ]
        found = plain_certificate(model, X, y, group, failure=FAILURE, favourable=1, twin=twin)
        wrong += bool(uncovered(found, y, predicted, group, 1))
        assert all(s.exact == 0.0 or s.refined > 0.0 for s in found.statements)
        law = linear_classifier(model).law
        none = KnownDistance(law.weights, law.outputs, "a planted fault", 0.05 * found.radius)
        planted += bool(
            uncovered(plain_certificate(model, X, y, group, distance=none, favourable=1), y, predicted, group, 1)
        )
    assert wrong <= MOST < planted


@pytest.mark.parametrize(
    ("solver", "settings"),
    [("output-perturbation", {}), ("gd", {}), ("cd", {"sampling": "uniform", "clip": 2.0}), ("sgd", {})],
)
def test_solvers_with_a_law_give_a_certificate_and_the_printed_bound_where_it_is_about_them(solver, settings):
    X, y, group = table(2)
    model = discreet.LogisticRegression(
        epsilon=4.0,
        bounds=(-1.0, 1.0),
        classes=[0, 1],
        alpha=0.2,
        fit_intercept=False,
        random_state=0,
        solver=SOLVERS[solver](scale_share=0.0, **settings),
    ).fit(X, y)
    found = plain_certificate(model, X, y, group)
    assert math.isfinite(found.radius)
    assert found.radius > 0.0
    assert (found.statements[0].printed is None) == (solver != "output-perturbation")
    wider = plain_certificate(model, X, y, group, failure=0.001)
    for near, far in zip(found.statements, wider.statements, strict=True):
        assert far.low <= near.low <= 0.0 <= near.high <= far.high


@pytest.mark.filterwarnings("ignore:the noise in a prediction")  # a small table, for which that is not the point
def test_a_twin_in_other_columns_is_the_same_twin():
    """A model with its own scaling, moved to the columns of another, has the same margins."""
    X, y, group = table(2)
    first, second = (
        discreet.LogisticRegression(
            bounds=(-1.0, 1.0), classes=[0, 1], alpha=0.2, solver="output-perturbation", random_state=seed
        ).fit(X, y)
        for seed in range(2)
    )
    found = plain_certificate(first, X, y, group, twin=second, reference="twin")
    moved = linear_classifier(first).with_parameters(second.coef_, second.intercept_)
    wanted = plain_certificate(moved, X, y, group, distance=linear_classifier(first).law, reference="twin")
    assert [replace(s, refined=None, exact=None) for s in found.statements] == list(wanted.statements)
