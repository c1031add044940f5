"""What holds for all private steps of a pipeline together."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from discreet import LogisticRegression
from discreet.preprocessing import PrivateBounds, PrivateScaler, pipeline_guarantee, private_means
from discreet.privacy import accounting


def test_weights_must_reach_all_private_steps_under_zero_out():
    """A null row is one of weight 0: for a step that sees no weights it would be a replaced row."""
    X, y = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2)), np.arange(400) % 2
    weight = np.linspace(0.0, 1.0, 400)
    parts = [
        PrivateScaler(bounds=(-1.0, 1.0), relation="zero_out"),
        LogisticRegression(classes=[0, 1], bounds=(-9.0, 9.0), relation="zero_out"),
    ]

    def fitted(*requests):
        with sklearn.config_context(enable_metadata_routing=True):
            for part, request in zip(parts, requests, strict=True):
                part.set_fit_request(sample_weight=request)
            return make_pipeline(*parts).fit(X, y, sample_weight=weight)

    assert pipeline_guarantee(fitted(True, True)).epsilon > 1.0
    with pytest.raises(ValueError, match="sample_weight reached some private steps and not others"):
        pipeline_guarantee(fitted(False, True))


def test_fitted_steps_that_came_first_are_added():
    X, y = np.random.default_rng(0).uniform(-1.0, 1.0, (4_000, 2)), np.arange(4_000) % 2
    bounds = PrivateBounds(epsilon=0.5).fit(X)
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=(bounds.low_, bounds.high_)).fit(X, y)
    together = pipeline_guarantee(model, also=[bounds])
    assert together.event == accounting.compose([bounds.guarantee_.event, model.guarantee_.event])
    assert together.epsilon > pipeline_guarantee(model).epsilon


def test_weights_must_reach_earlier_releases_as_well():
    X, y = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 2)), np.arange(400) % 2
    weight = np.linspace(0.0, 1.0, 400)
    model = LogisticRegression(classes=[0, 1], bounds=(-9.0, 9.0), relation="zero_out").fit(X, y, sample_weight=weight)
    means = [private_means(X, (-1.0, 1.0), relation="zero_out", sample_weight=w) for w in (weight, None)]
    assert pipeline_guarantee(model, also=means[:1]).epsilon > 1.0
    with pytest.raises(ValueError, match="reached some private steps and not others"):
        pipeline_guarantee(model, also=means[1:])
