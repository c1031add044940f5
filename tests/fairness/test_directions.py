"""Directions between groups: what they are without noise, with noise, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from discreet import BudgetExceededError, Ledger, NotPrivateWarning, UtilityWarning
from discreet.fairness import mean_differences, private_directions
from discreet.privacy.accounting import event_to_dict

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

GROUPS = ["a", "b"]


def table(n=4_000, groups=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    sensitive = rng.choice(list(groups), n)
    X = rng.uniform(-1.0, 1.0, (n, 3)) * [1.0, 1.0, 10.0]
    X[:, 0] += 0.5 * (sensitive == "a")
    y = (X[:, 0] + rng.logistic(size=n) > 0.0).astype(int)
    return X, y, sensitive


BOUNDS = ([-1.0, -1.0, -10.0], [1.5, 1.0, 10.0])


def difference(X, first, second):
    return X[first].mean(axis=0) - X[second].mean(axis=0)


def test_directions_are_differences_of_means():
    X, y, s = table()
    a, b = s == "a", s == "b"
    np.testing.assert_allclose(mean_differences(X, s, groups=GROUPS), [difference(X, a, b)])
    both = mean_differences(X, s, y, groups=GROUPS, notion="equalised odds", classes=[0, 1])
    np.testing.assert_allclose(both, [difference(X, a & (y == c), b & (y == c)) for c in (0, 1)])
    chance = mean_differences(X, s, y, groups=GROUPS, notion="equality of opportunity", favourable=1)
    np.testing.assert_allclose(chance, both[1:])
    spelled = mean_differences(X, s, y, groups=GROUPS, notion="equalized odds", classes=[0, 1])
    np.testing.assert_array_equal(spelled, both)


def test_several_groups_are_compared_with_the_others_together():
    X, _, s = table(groups=("a", "b", "c", "d"))
    found = mean_differences(X, s, groups=["a", "b", "c"])  # rows of group d count nowhere
    rest = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
    np.testing.assert_allclose(found, [difference(X, s == g, np.isin(s, others)) for g, others in rest.items()])


def test_weights_count_rows_in_part():
    X, _, s = table()
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 0.5)
    kept = weight > 0.0
    found = mean_differences(X, s, groups=GROUPS, sample_weight=weight)
    np.testing.assert_allclose(found, mean_differences(X[kept], s[kept], groups=GROUPS))


@pytest.mark.parametrize("relation", ["replace", "zero_out", "add_remove"])
@pytest.mark.parametrize("delta", [None, 0.0])
def test_private_directions_are_near_the_exact_ones(relation, delta):
    X, y, s = table(100_000)
    known = {"groups": GROUPS, "notion": "equalised odds", "classes": [0, 1]}
    public_n = 100_000 if relation == "add_remove" else None
    found = private_directions(
        X, y, s, BOUNDS, 2.0, delta, **known, relation=relation, public_n=public_n, random_state=3
    )
    exact = mean_differences(X, s, y, **known)
    assert found.values.shape == (2, 3)
    np.testing.assert_allclose(found.values / BOUNDS[1], exact / BOUNDS[1], atol=0.01)
    assert (found.noise_share < 0.02).all()
    assert found.names == ("'a' minus 'b' where y is 0", "'a' minus 'b' where y is 1")
    assert found.guarantee.epsilon == pytest.approx(2.0, rel=1e-3)
    assert found.guarantee.relation == relation


def test_without_noise_they_are_exact():
    X, _, s = table()
    with pytest.warns(NotPrivateWarning, match="infinite"):
        found = private_directions(X, None, s, BOUNDS, float("inf"), groups=GROUPS)
    np.testing.assert_allclose(found.values, mean_differences(X, s, groups=GROUPS), atol=1e-12)
    assert (found.noise_share == 0.0).all()


def test_the_stated_share_of_noise_is_that_of_the_noise():
    """Groups without a difference: all of the squared length is noise, on average over 200 releases."""
    rng = np.random.default_rng(0)
    X, s = rng.uniform(-1.0, 1.0, (5_000, 20)), rng.choice(GROUPS, 5_000)
    exact = mean_differences(X, s, groups=GROUPS)
    ratios = []
    with warnings.catch_warnings(action="ignore"):
        for seed in range(200):
            found = private_directions(X, None, s, (-1.0, 1.0), 0.1, groups=GROUPS, random_state=seed)
            noise = ((found.values - exact) ** 2).sum()
            ratios.append(found.noise_share[0] * (found.values**2).sum() / noise)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.15)


def test_too_few_rows_are_said_aloud_and_give_finite_numbers():
    X, _, s = table(60)
    with pytest.warns(UtilityWarning, match="may be noise"):
        found = private_directions(X, None, s, BOUNDS, 0.1, groups=["a", "nobody"], random_state=0)
    assert np.isfinite(found.values).all()
    assert (np.abs(found.values) <= 2.0 * np.array(BOUNDS[1]) + 1.0).all()  # means are clipped to their ranges


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda values: pd.Series(values, dtype="category")])
def test_groups_may_come_as_any_kind_of_column(kind):
    X, _, s = table(400)
    np.testing.assert_allclose(
        mean_differences(X, kind(s.tolist()), groups=np.array(GROUPS)), mean_differences(X, s, groups=GROUPS)
    )


def test_rows_without_a_declared_group_count_nowhere():
    X, _, s = table(400)
    missing = s.astype(object)
    missing[:50] = np.nan
    missing[50:60] = None
    np.testing.assert_allclose(
        mean_differences(X, missing, groups=GROUPS), mean_differences(X[60:], s[60:], groups=GROUPS)
    )


def test_the_cost_does_not_depend_on_the_rows():
    X, _, s = table(400)
    settings = {"bounds": BOUNDS, "groups": GROUPS, "epsilon": 5.0}
    with warnings.catch_warnings(action="ignore"):
        tables = [(X, s), (np.full_like(X, 1e300), np.full(400, "a")), (np.zeros_like(X), np.full(400, "c"))]
        events = [event_to_dict(private_directions(T, None, g, **settings).guarantee.event) for T, g in tables]
    assert events[0] == events[1] == events[2]


def test_the_ledger_is_asked_before_a_row_is_read(tmp_path):
    X, _, s = table(4_000)
    ledger = Ledger(tmp_path / "ledger.json", allow_seeded=True)
    ledger.open("people", epsilon=1.0, delta=1e-6)
    settings = {"groups": GROUPS, "ledger": ledger, "dataset": "people", "delta": 1e-7, "random_state": 0}
    private_directions(X, None, s, BOUNDS, 0.9, **settings)
    with pytest.raises(BudgetExceededError):
        private_directions(X, None, s, BOUNDS, 0.9, **settings)


def test_what_does_not_fit_is_refused():
    X, y, s = table(100)
    for settings, reason in (
        ({"groups": ["a"]}, "at least two different"),
        ({"groups": ["a", "a"]}, "at least two different"),
        ({"groups": "ab"}, "at least two different"),
        ({"groups": GROUPS, "notion": "justice"}, "notion must be one of"),
        ({"groups": GROUPS, "notion": "equality of opportunity"}, "needs favourable="),
        ({"groups": GROUPS, "notion": "equalised odds"}, "classes must list"),
    ):
        with pytest.raises(ValueError, match=reason):
            private_directions(X, y, s, BOUNDS, **settings)
    with pytest.raises(ValueError, match="one value for each of the 100 rows"):
        private_directions(X, y, s[:50], BOUNDS, groups=GROUPS)
    with pytest.raises(ValueError, match="y is missing"):
        private_directions(X, None, s, BOUNDS, groups=GROUPS, notion="equality of opportunity", favourable=1)
    with pytest.raises(ValueError, match="bounds is missing"):
        private_directions(X, y, s, None, groups=GROUPS)
    with pytest.raises(ValueError, match="no row"):
        mean_differences(X, s, groups=["a", "nobody"])


@pytest.mark.filterwarnings("ignore:of the direction:discreet.UtilityWarning")  # its size is not the point
@pytest.mark.parametrize("odd", [["a"], {}, (["a"],), None, float("nan"), ("a",), b"a", pd.NA], ids=repr)
def test_a_strange_value_of_one_row_counts_nowhere_and_stops_nothing(odd):
    """Whether a release is made must not depend on one row's group or label."""
    X, y, s = table(400)
    asked = {"groups": GROUPS, "notion": "equalised odds", "classes": [0, 1]}
    exact = mean_differences(X[:-1], s[:-1], y[:-1], **asked)
    for groups, labels in (([*s[:-1], odd], y), (s, [*y[:-1], odd])):
        np.testing.assert_allclose(mean_differences(X, groups, labels, **asked), exact)
        assert private_directions(X, labels, groups, BOUNDS, 9.0, random_state=0, **asked).values.shape == (2, 3)


@pytest.mark.parametrize("groups", [["a", float("nan")], [["a"], ["b"]], ["a", None, {}]], ids=repr)
def test_declared_values_that_no_row_can_equal_are_refused(groups):
    X, y, s = table(100)
    with pytest.raises(ValueError, match="groups must list at least two different values"):
        private_directions(X, y, s, BOUNDS, groups=groups)
    with pytest.raises(ValueError, match="favourable"):
        private_directions(X, y, s, BOUNDS, groups=GROUPS, notion="equality of opportunity", favourable=groups[-1])
