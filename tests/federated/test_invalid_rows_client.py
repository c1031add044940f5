"""A client with a row that cannot be read sends what it would send with a null row."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import Client, Request
from tests.federated_tools import make_plan, table

AT = 4
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("bad", ["NaN", "text", "label", "weight"])
def test_its_replies_are_those_with_a_null_row(bad, unit):
    plan = make_plan(unit=unit)
    X, y = table(12, 3)
    weight = np.ones(12)
    weight[AT] = 0.0
    rows, labels, weights = X.astype(object), y.astype(object), np.ones(12)
    if bad == "label":
        labels[AT] = 7
    elif bad == "weight":
        weights[AT] = -1.0
    else:
        rows[AT, 1] = np.nan if bad == "NaN" else "HIV"
    settings = {"random_state": 3, "max_epsilon": np.inf}
    wanted = Client(plan, "a", X, y, sample_weight=weight, **settings)
    found = Client(plan, "a", rows, labels, sample_weight=weights, invalid_rows="neutral", **settings)
    request = Request(1, np.zeros(plan.dimension), 0)
    first, second = wanted.answer(request), found.answer(request)
    assert np.array_equal(first.gradient, second.gradient)
    assert np.array_equal(wanted.dual, found.dual)
    with pytest.raises(ValueError, match=r"NaN|text|labels|\[0, 1\]"):
        Client(plan, "a", rows, labels, sample_weight=weights, **settings)
