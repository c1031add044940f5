"""Penalties are checked against definitions for one number, written out here, and by Moreau's identity."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.problem import constraints
from discreet.problem.penalties import (
    L1,
    L2,
    Box,
    ElasticNet,
    Penalty,
    PenaltyTerms,
    Zero,
    prox,
    signed_subgradient_distance,
)


@dataclass(frozen=True)
class Case:
    """A penalty, its definition for one coefficient, and the interval where its conjugate is finite."""

    penalty: Penalty
    definition: Callable[[float], float]
    dual_domain: tuple[float, float]

    def __repr__(self) -> str:
        return repr(self.penalty)


def interval(low: float, high: float) -> Callable[[float], float]:
    return lambda w: 0.0 if low <= w <= high else math.inf


EVERYWHERE = (-math.inf, math.inf)
CASES = [
    Case(Zero(), lambda w: 0.0, (0.0, 0.0)),
    Case(L1(0.7), lambda w: 0.7 * abs(w), (-0.7, 0.7)),
    Case(L1(0.0), lambda w: 0.0, (0.0, 0.0)),
    Case(L2(0.5), lambda w: 0.25 * w * w, EVERYWHERE),
    Case(ElasticNet(0.8, 0.25), lambda w: 0.2 * abs(w) + 0.3 * w * w, EVERYWHERE),
    Case(ElasticNet(0.8, 1.0), lambda w: 0.8 * abs(w), (-0.8, 0.8)),
    Case(ElasticNet(0.8, 0.0), lambda w: 0.4 * w * w, EVERYWHERE),
    Case(Box(-1.0, 2.0), interval(-1.0, 2.0), EVERYWHERE),
    Case(Box(1.0, 3.0), interval(1.0, 3.0), EVERYWHERE),
    Case(Box(2.0, 2.0), interval(2.0, 2.0), EVERYWHERE),
    Case(Box(0.0, math.inf), interval(0.0, math.inf), (-math.inf, 0.0)),
]
EXTREMES = [0.0, 5e-324, 1e-300, 1e-16, 0.7, 1.0, 1e16, 1e150, 1e300, 1.7e308]

ordinary = st.floats(-10.0, 10.0)
steps = st.floats(0.05, 5.0)
extreme = st.sampled_from([*EXTREMES, *(-x for x in EXTREMES)])
laws = settings(deadline=None, max_examples=60)
each_case = pytest.mark.parametrize("case", CASES, ids=repr)


def minimise(function: Callable[[float], float], low: float, high: float) -> float:
    """Minimiser of a convex function that is finite on [low, high], by golden section."""
    shrink = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - shrink * (high - low), low + shrink * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-9:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - shrink * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + shrink * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)


@each_case
@settings(deadline=None, max_examples=25)
@given(v=ordinary, step=steps)
def test_moreau_identity(case: Case, v: float, step: float) -> None:
    """v = prox(v) + step * (prox of the conjugate over step, at v / step), the latter found by search."""
    centre = v / step
    low, high = np.clip(case.dual_domain, -abs(centre) - 50.0, abs(centre) + 50.0)
    dual = minimise(lambda u: 0.5 * step * (u - centre) ** 2 + case.penalty.conjugate([u]), low, high)
    # A search by values finds a minimiser to the square root of their rounding error only.
    assert case.penalty.prox([v], step)[0] + step * dual == pytest.approx(v, abs=1e-5)


@each_case
@laws
@given(v=ordinary, step=steps, w=ordinary, shift=st.sampled_from([1e-6, 1e-3, 0.1, 1.0]))
def test_prox_minimises_its_objective(case: Case, v: float, step: float, w: float, shift: float) -> None:
    def objective(point: float) -> float:
        return (point - v) ** 2 / (2 * step) + case.definition(point)

    best = float(case.penalty.prox([v], step)[0])
    for rival in (w, best - shift, best + shift, v, 0.0):
        # Strong convexity says by how much a rival must lose, which a merely small objective would not show.
        assert objective(rival) >= objective(best) + (rival - best) ** 2 / (2 * step) * (1 - 1e-9) - 1e-12


@each_case
@laws
@given(v=st.floats(-10.0, 10.0), other=ordinary, step=steps)
def test_prox_is_non_expansive(case: Case, v: float, other: float, step: float) -> None:
    moved = case.penalty.prox([v], step)[0] - case.penalty.prox([other], step)[0]
    contraction = 1.0 + step * case.penalty.strong_convexity
    assert abs(moved) * contraction <= abs(v - other) * (1 + 1e-12) + 1e-15


@each_case
@laws
@given(w=st.one_of(ordinary, st.sampled_from([0.0, -1.0, 1.0, 2.0, 3.0])))
def test_value_is_the_definition(case: Case, w: float) -> None:
    assert case.penalty.value([w]) == pytest.approx(case.definition(w), rel=1e-12)
    assert case.penalty.value([w, w]) == pytest.approx(2 * case.definition(w), rel=1e-12)


@each_case
@laws
@given(u=st.one_of(ordinary, st.sampled_from([-0.8, -0.7, 0.0, 0.7, 0.8])))
def test_conjugate_is_the_supremum(case: Case, u: float) -> None:
    low, high = case.dual_domain
    claimed = case.penalty.conjugate([u])
    assert (claimed < math.inf) == (low <= u <= high)
    # The supremum is attained at a kink, at an end, or at the stationary point of a smooth piece.
    points = [-1e9, -1.0, 0.0, 1.0, 2.0, 3.0, 1e9]
    if case.penalty.strong_convexity > 0.0:
        points.append(minimise(lambda w: case.definition(w) - u * w, -100.0, 100.0))
    reached = max(u * w - case.definition(w) for w in points)
    if claimed < math.inf:
        assert claimed == pytest.approx(reached, abs=1e-9)
        assert case.penalty.conjugate([u, u]) == pytest.approx(2 * claimed)
    elif min(abs(u - low), abs(u - high)) > 1e-3:
        assert reached > 1e5


@each_case
@laws
@given(w=st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0]), gradient=ordinary)
def test_subgradient_distance_is_to_the_interval_of_one_sided_slopes(case: Case, w: float, gradient: float) -> None:
    distance = case.penalty.subgradient_distance([w], [gradient])[0]
    here, h = case.definition(w), 1e-7
    if here == math.inf:
        assert distance == math.inf
        return
    left, right = (here - case.definition(w - h)) / h, (case.definition(w + h) - here) / h
    assert distance == pytest.approx(max(0.0, left + gradient, -gradient - right), abs=1e-5)


@each_case
@laws
@given(v=ordinary, step=steps)
def test_the_prox_certifies_itself(case: Case, v: float, step: float) -> None:
    """-(prox(v) - v) / step is a subgradient at prox(v), and no longer one after a push."""
    best = case.penalty.prox([v], step)
    gradient = (best - v) / step
    assert case.penalty.subgradient_distance(best, gradient)[0] <= 1e-12 * (1 + abs(v) / step)
    pushed = [case.penalty.subgradient_distance(best, gradient + push)[0] for push in (-1e3, 1e3)]
    assert max(pushed) > 0.0 or case.penalty == Box(2.0, 2.0)


@laws
@given(w=ordinary, first=ordinary, second=ordinary)
def test_signed_distance_is_lipschitz_and_negative_inside(w: float, first: float, second: float) -> None:
    for case in CASES:
        if case.definition(w) == math.inf or case.penalty == Box(2.0, 2.0):
            continue
        signed = [
            signed_subgradient_distance([w], [gradient], case.penalty.penalty_terms(1))[0]
            for gradient in (first, second)
        ]
        assert abs(signed[0] - signed[1]) <= abs(first - second) * (1 + 1e-12) + 1e-13
        assert max(signed[0], 0.0) == case.penalty.subgradient_distance([w], [first])[0]
    penalty_terms = L1(0.7).penalty_terms(2)
    assert signed_subgradient_distance([0.0, 1.0], [0.2, -0.7], penalty_terms) == pytest.approx([-0.5, 0.0])


@each_case
@laws
@given(v=arrays(np.float64, 3, elements=extreme), step=st.sampled_from([0.0, 5e-324, 1e-300, 1.0, 1e300]))
def test_extreme_numbers_give_no_nan(case: Case, v: np.ndarray, step: float) -> None:
    best = case.penalty.prox(v, step)
    assert np.isfinite(best).all()
    assert case.penalty.value(best) >= 0.0
    for answer in (case.penalty.value(v), case.penalty.conjugate(v)):
        assert not math.isnan(answer)
    assert (case.penalty.subgradient_distance(best, v) >= 0.0).all()
    if step == 0.0:
        np.testing.assert_array_equal(best, constraints.Box(*case.penalty.penalty_terms(3)[2:]).project(v))


def test_an_overflow_in_the_conjugate_does_not_hide_an_infinity() -> None:
    assert Box([-2e300, 0.0], [-1e300, math.inf]).conjugate([1e300, 1.0]) == math.inf
    assert L2(1e-300).conjugate([1e200]) == math.inf
    assert L2(1e300).conjugate([1e200]) == pytest.approx(5e99)


@each_case
def test_coefficients_say_it_all(case: Case) -> None:
    penalty_terms = case.penalty.penalty_terms(4)
    assert isinstance(penalty_terms, PenaltyTerms)
    for column in penalty_terms:
        assert column.shape == (4,)
        assert column.dtype == np.float64
        assert column.flags.c_contiguous
        assert column.flags.writeable
    assert case.penalty.strong_convexity == penalty_terms.l2[0]
    v = np.array([-3.0, -0.1, 0.4, 5.0])
    np.testing.assert_array_equal(prox(v, 0.3, penalty_terms), case.penalty.prox(v, 0.3))
    l1, l2, low, high = penalty_terms
    by_hand = np.clip(np.sign(v) * np.maximum(np.abs(v) - 0.3 * l1, 0.0) / (1.0 + 0.3 * l2), low, high)
    np.testing.assert_allclose(prox(v, 0.3, penalty_terms), by_hand, rtol=1e-15)


@each_case
def test_each_coordinate_may_have_its_own_step(case: Case) -> None:
    v, step = np.array([-3.0, -0.1, 0.4, 5.0]), np.array([0.1, 1.0, 2.0, 0.5])
    one_by_one = [case.penalty.prox([a], b)[0] for a, b in zip(v, step, strict=True)]
    np.testing.assert_array_equal(case.penalty.prox(v, step), one_by_one)
    square = case.penalty.prox(v.reshape(2, 2), step.reshape(2, 2))
    np.testing.assert_array_equal(square, np.reshape(one_by_one, (2, 2)))
    assert case.penalty.value(square) == pytest.approx(case.penalty.value(one_by_one))


def test_bounds_may_differ_between_coordinates() -> None:
    box = Box([-1.0, 0.0], [1.0, math.inf])
    assert box.prox([-3.0, 7.0], 2.0).tolist() == [-1.0, 7.0]
    assert box.value([0.0, 9.0]) == 0.0
    assert box.value([2.0, 9.0]) == math.inf
    with pytest.raises(ValueError, match=r"2 entries, but there are 3"):
        box.value(np.zeros(3))


def test_small_coefficients_become_exactly_positive_zero() -> None:
    shrunk = L1(1.0).prox([-0.5, 0.5, -1.0], 1.0)
    assert not shrunk.any()
    assert not np.signbit(shrunk).any()


@pytest.mark.parametrize("value", [-1e-9, -1.0, math.nan, math.inf, "1", None])
def test_wrong_strengths_are_refused(value: object) -> None:
    for build in (L1, L2, lambda alpha: ElasticNet(alpha, 0.5)):
        with pytest.raises(ValueError, match=r"^alpha must"):
            build(value)
    with pytest.raises(ValueError, match=r"^l1_ratio must"):
        ElasticNet(1.0, value)  # type: ignore[arg-type]


def test_wrong_mixtures_and_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^l1_ratio must be .* at most 1, got 1.5"):
        ElasticNet(1.0, 1.5)
    with pytest.raises(ValueError, match=r"^low must be at most high"):
        Box(1.0, 0.0)


@each_case
def test_penalties_are_values(case: Case) -> None:
    twin = pickle.loads(pickle.dumps(case.penalty))
    assert twin == case.penalty
    assert hash(twin) == hash(case.penalty)
    assert not hasattr(twin, "__dict__")
