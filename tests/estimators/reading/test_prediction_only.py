"""Summaries say where coefficients are for prediction only."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import LogisticRegression
from discreet.solvers.gradient_descent import GradientDescent

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning"),
    pytest.mark.filterwarnings("ignore::discreet.UtilityWarning"),
]


def summary(rows=20_000, **settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, 1))
    y = (2.0 * X[:, 0] + rng.logistic(size=rows) > 0.0).astype(int)
    settings = {"solver": "gd", "bounds": (-1.0, 1.0), "epsilon": 1.0} | settings
    return LogisticRegression(classes=[0, 1], random_state=0, **settings).fit(X, y).summary()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, ""),
        ({"solver": "sgd"}, ""),
        ({"bounds": None}, "clipped at learned ranges"),
        ({"bounds": (-100.0, 100.0)}, "clipped at learned ranges"),
        ({"rows": 1_000}, "gradients are clipped or scores are shrunk"),
        ({"solver": "ftrl"}, "leaves a bias"),
        ({"solver": "output-perturbation"}, "leaves a bias"),
        ({"solver": GradientDescent(clip=0.5)}, "a threshold that was asked for"),
        ({"solver": GradientDescent(shrink=True)}, "they are shrunk"),
    ],
)
def test_why_coefficients_are_for_prediction_only(settings, reason):
    found = summary(**settings)
    assert reason in found.prediction_only
    assert bool(found.prediction_only) == bool(reason)
    assert found.to_dict()["prediction_only"] == (found.prediction_only or None)
    assert ("for prediction only" in " ".join(str(found).split())) == bool(reason)


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_without_noise_there_is_nothing_to_say():
    assert summary(rows=500, epsilon=np.inf).prediction_only == ""
