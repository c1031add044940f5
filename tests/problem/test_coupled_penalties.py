"""Group norms and total variation: laws, certificates of their proximal maps, and optima with known answers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.problem import L2, GroupL2, Logistic, Problem, Squared, TotalVariation
from discreet.testing import check_penalty
from discreet.testing.laws import LawBrokenError

PENALTIES = [
    GroupL2(0.3, ["a", "b", "a", "b"]),
    GroupL2(0.0, [0, 1, 0, 1]),
    GroupL2(2.0, [1, 1, 1, 1]),
    TotalVariation(0.3),
]


@pytest.mark.parametrize("penalty", [*PENALTIES, TotalVariation(0.0)], ids=repr)
def test_laws(penalty):
    assert {result.status for result in check_penalty(penalty)} == {"passed"}
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    assert penalty.strong_convexity == 0.0


def test_a_wrong_proximal_map_breaks_a_law():
    class Half(TotalVariation):
        def prox(self, v, step):
            return super().prox(v, 0.5 * step)

    with pytest.raises(LawBrokenError, match="prox"):
        check_penalty(Half(0.3))


@settings(max_examples=300, deadline=None)
@given(
    v=arrays(np.float64, st.integers(1, 40), elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))),
    strength=st.floats(1e-3, 1e4),
)
def test_the_total_variation_step_has_a_dual_certificate(v, strength):
    """w = v - D' theta with |theta| <= strength, and theta = +-strength wherever w jumps: no other point does that."""
    w = TotalVariation(strength).prox(v, 1.0)
    theta = np.cumsum(v - w)
    jumps = np.diff(w)
    slack = 1e-11 * (strength + np.abs(v).sum())
    assert abs(theta[-1]) <= slack
    assert (np.abs(theta[:-1]) <= strength + slack).all()
    assert (np.abs(theta[:-1] + strength * np.sign(jumps)) <= slack)[np.abs(jumps) > slack].all()


def test_long_sequences_take_linear_time():
    """The worst case of simpler methods: a ramp, whose every entry ends another piece."""
    v = np.concatenate([np.arange(100_000.0), np.arange(100_000.0)[::-1]])
    w = TotalVariation(1.0).prox(v, 1e3)
    assert TotalVariation(1.0).value(w) < TotalVariation(1.0).value(v)
    np.testing.assert_allclose(w.sum(), v.sum())


def test_a_group_of_one_column_is_the_absolute_value():
    v = np.array([3.0, -0.2, 1.0])
    np.testing.assert_allclose(GroupL2(0.5, [0, 1, 2]).prox(v, 1.0), [2.5, 0.0, 0.5])


def test_groups_of_very_different_size_do_not_hide_each_other():
    """Squares are taken relative to a group's own largest entry."""
    assert GroupL2(1.0, [0, 1, 1]).prox([1e200, 3.0, 4.0], 0.1).tolist() == pytest.approx([1e200, *_shrunk(3.0, 4.0)])
    np.testing.assert_array_equal(GroupL2(0.0, [0, 1]).prox([1.0, 1e-200], 1.0), [1.0, 1e-200])
    assert GroupL2(1.0, [0, 1]).value([0.0, 1e-200]) == 1e-200
    np.testing.assert_array_equal(GroupL2(1.0, [0, 0, 1]).prox([0.0, 0.0, 3.0], 1.0), [0.0, 0.0, 2.0])


def _shrunk(first, second):
    left = 1.0 - 0.1 * np.sqrt(2.0) / np.hypot(first, second)
    return left * first, left * second


def test_labels_of_two_types_are_two_groups():
    assert GroupL2(1.0, [1, "1"]).groups == (1, "1")
    assert GroupL2(1.0, np.array(["a", "b"])).groups == ("a", "b")
    assert GroupL2(1.0, np.array([0, 1])).groups == (0, 1)
    assert GroupL2(1.0, range(2)).groups == (0, 1)
    for wrong in ("ab", 3, {0, 1}, [0, float("nan")], [0, None]):
        with pytest.raises(ValueError, match="one label per column"):
            GroupL2(1.0, wrong)


@pytest.mark.parametrize("step", [1.0, np.float64(1e300), np.float64(1e-300), 0.0])
@pytest.mark.parametrize("v", [[], [1.0], [5e-324, 0.0], [1.7e308, -1.7e308, 1.7e308], [3.0, 3.0, 3.0]], ids=str)
def test_total_variation_of_short_and_extreme_sequences(v, step):
    """No warning, no step out of the range of the points, and the mean is kept."""
    w = TotalVariation(2.0).prox(v, step)
    assert w.shape == (len(v),)
    if v:
        assert (min(v) <= w).all()
        assert (w <= max(v)).all()
        assert np.mean(w / max(v)) == pytest.approx(np.mean(np.array(v) / max(v)), abs=1.0 if max(v) < 1e-300 else 1e-9)


def test_optima_with_known_answers():
    """A strong penalty leaves no group; a strong total variation leaves one common coefficient."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X @ np.array([1.0, 2.0, 0.0, 0.0]) + 0.1 * rng.standard_normal(200)
    none = Problem(Squared(), GroupL2(100.0, [0, 0, 1, 1])).optimum(X, y)
    np.testing.assert_allclose(none.coef, 0.0, atol=1e-9)
    half = Problem(Squared(), GroupL2(0.2, [0, 0, 1, 1])).optimum(X, y)
    assert (half.coef[:2] > 0.5).all()
    np.testing.assert_allclose(half.coef[2:], 0.0, atol=1e-9)
    same = Problem(Squared(), TotalVariation(5.0)).optimum(X, y)
    alone = Problem(Squared()).optimum(X.sum(axis=1, keepdims=True), y)
    np.testing.assert_allclose(same.coef, alone.coef[0], rtol=1e-6)


def test_an_empty_column_takes_the_coefficient_that_the_penalty_wants():
    """Its coefficient costs nothing but total variation: that of its neighbours is the best."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 3))
    X[:, 1] = 0.0
    best = Problem(Squared(), TotalVariation(0.01)).optimum(X, X[:, 0] + X[:, 2])
    assert best.coef[0] - 1e-6 <= best.coef[1] <= best.coef[2] + 1e-6 or best.coef[2] <= best.coef[1] <= best.coef[0]
    assert best.certificate.value <= 1e-9
    problem = Problem(Squared(), TotalVariation(0.01))
    assert problem.objective(X, X[:, 0] + X[:, 2], best.coef, best.intercept) == pytest.approx(best.value)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="one label per column"):
        GroupL2(1.0, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="alpha"):
        GroupL2(-1.0, [0, 1])
    with pytest.raises(ValueError, match="alpha"):
        TotalVariation(float("nan"))
    with pytest.raises(ValueError, match="2 columns, but there are 3"):
        GroupL2(1.0, [0, 1]).prox(np.ones(3), 1.0)
    with pytest.raises(TypeError, match="no terms of single coordinates"):
        TotalVariation(1.0).penalty_terms(3)
    assert not Problem(Logistic(), TotalVariation(1.0)).separable
    assert Problem(Logistic(), L2(1.0)).separable
