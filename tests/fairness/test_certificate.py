"""What a certificate says about itself: privacy, probability, text, JSON."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

import discreet
from discreet import fairness
from discreet.fairness import certificate
from discreet.theory.distance import GaussianDistance
from tests.fairness_tools import plain_certificate, random_case

LAW = GaussianDistance(np.ones(4), 1, "the minimiser without noise", 0.01)


def test_private_rows_and_twins_raise_a_warning():
    model, X, y, group, _ = random_case(0)
    with pytest.warns(discreet.PrivacyLeakWarning, match="must not be shown.*private_certificate"):
        found = certificate(model, X, y, group, distance=LAW)
    assert not found.private
    assert "NOT PRIVATE" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = certificate(model, X, y, group, distance=LAW, public_rows=True)
    assert found.private
    assert "NOT PRIVATE" not in str(found)
    for settings in ({"twin": model}, {"reference": "twin"}):
        with pytest.warns(discreet.PrivacyLeakWarning, match="the twin is not private"):
            assert not certificate(model, X, y, group, distance=LAW, public_rows=True, **settings).private


def test_text_and_json_say_the_same():
    model, X, y, group, _ = random_case(1)
    found = plain_certificate(model, X, y, group, distance=LAW, failure=0.05)
    text = str(found)
    for said in ("probability 0.95", f"these {len(X)} rows", "the minimiser without noise", "Euclidean norm"):
        assert said in text
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [s["value"] for s in content["statements"]] == [s.value for s in found.statements]
    assert content["aggregate"].keys() == found.aggregate.keys()
    for s in found.statements:
        line = next(line for line in text.splitlines() if line.startswith(s.notion) and s.who in line)
        assert f"{s.value:.4f}" in line
        assert f"{s.value + s.low:.4f}" in line
        assert f"{s.value + s.high:.4f}" in line


def test_an_empty_cell_is_named_and_left_out_of_the_mean():
    model, X, y, group, _ = random_case(2)
    group = np.where(y == 1, "g0", group)
    found = plain_certificate(model, X, y, group, distance=LAW)
    undefined = [s for s in found.statements if math.isnan(s.value)]
    assert {(s.label, s.group) for s in undefined} == {(1, "g1"), (1, "g2")}
    assert all(math.isnan(s.bound) and s.bounds == {} for s in undefined)
    assert found.aggregate["equalised odds"].groups == 4
    assert math.isfinite(found.aggregate["equalised odds"].bound)
    assert any("No rows: equalised odds, label 1, group g1" in message for message in found.messages)
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_a_zero_distance_and_an_infinite_one():
    model, X, y, group, _ = random_case(3)
    nothing = plain_certificate(model, X, y, group, distance=0.0)
    assert all(s.low == s.high == s.bound == 0.0 for s in nothing.statements)
    anything = plain_certificate(model, X, y, group, distance=math.inf)
    accuracy = anything.of("accuracy")[0]
    assert (accuracy.value + accuracy.low, accuracy.value + accuracy.high) == pytest.approx((0.0, 1.0))
    assert json.dumps(anything.to_dict(), allow_nan=False)


def test_settings_of_no_meaning_are_refused():
    model, X, y, group, _ = random_case(0)
    for settings, message in (
        ({"failure": 0.0}, "failure must be"),
        ({"failure": 1.5}, "failure must be"),
        ({"reference": "me"}, "reference must be"),
        ({"notions": ["justice"]}, "notions must be"),
    ):
        with pytest.raises(ValueError, match=message):
            plain_certificate(model, X, y, group, distance=LAW, **settings)


def test_the_room_offers_its_names():
    assert set(fairness.__all__) <= set(dir(fairness))
    assert callable(fairness.certificate)
    assert all(getattr(fairness, name) is not None for name in fairness.__all__)
    with pytest.raises(AttributeError, match="no attribute 'justice'"):
        _ = fairness.justice
