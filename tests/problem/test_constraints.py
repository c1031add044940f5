"""Sets are checked by what characterises a projection and a linear oracle, never against stored answers."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.problem.constraints import Box, Constraint, L1Ball, L2Ball, Simplex

SIZE = 5
UNEVEN = Box([-1.0, 0.0, 2.0, -math.inf, -3.0], [1.0, 0.0, 5.0, -2.0, math.inf])
BOUNDED: list[Constraint] = [
    L1Ball(1.0),
    L1Ball(1e-200),
    L1Ball(1e200),
    L2Ball(3.0),
    L2Ball(1e-200),
    L2Ball(1e200),
    Simplex(),
    Simplex(1e3),
    Box(-1.0, 2.0),
    Box([-1.0, 0.0, 2.0, -7.0, -3.0], [1.0, 0.0, 5.0, -2.0, 1e3]),
]
EVERY = [*BOUNDED, UNEVEN, Box(0.0, math.inf)]
EXTREMES = [0.0, 5e-324, 1e-300, 1e-16, 1.0, 1e16, 1e300, 1.7e308]

ordinary = arrays(np.float64, SIZE, elements=st.floats(-10.0, 10.0))
extreme = arrays(np.float64, SIZE, elements=st.sampled_from([*EXTREMES, *(-x for x in EXTREMES)]))
vectors = st.one_of(ordinary, extreme)
seeds = st.integers(0, 2**32 - 1)
laws = settings(deadline=None, max_examples=60)
each_set = pytest.mark.parametrize("constraint", EVERY, ids=repr)
each_bounded = pytest.mark.parametrize("constraint", BOUNDED, ids=repr)


def unit(v: np.ndarray) -> np.ndarray:
    """Direction of v, by way of its largest entry, so that the test itself does not overflow."""
    scaled = v / max(np.abs(v).max(), 5e-324)
    return scaled / max(np.linalg.norm(scaled), 1e-300)


def feasible(constraint: Constraint, seed: int, count: int = 20) -> np.ndarray:
    """Random members of the set, corners and faces included, made without its own methods."""
    rng = np.random.default_rng(seed)
    sparse = rng.gamma(0.3, size=(count, SIZE)) + 1e-300
    shares = sparse / sparse.sum(axis=1, keepdims=True)
    if isinstance(constraint, Simplex):
        return constraint.total * shares
    if isinstance(constraint, L1Ball):
        return constraint.radius * shares * rng.choice([-1.0, 1.0], size=(count, SIZE))
    if isinstance(constraint, L2Ball):
        sphere = rng.normal(size=(count, SIZE))
        return constraint.radius * sphere / np.linalg.norm(sphere, axis=1, keepdims=True)
    assert isinstance(constraint, Box)
    low = np.broadcast_to(np.maximum(constraint.low, -1e3), SIZE)
    high = np.broadcast_to(np.minimum(constraint.high, 1e3), SIZE)
    return low + (high - low) * rng.choice([0.0, 1.0, rng.random()], size=(count, SIZE))


def size_of(constraint: Constraint) -> float:
    """A length by which rounding errors inside the set are measured."""
    if isinstance(constraint, Box):
        bounds = np.concatenate([np.ravel(constraint.low), np.ravel(constraint.high)])
        return float(np.abs(bounds[np.isfinite(bounds)]).max()) + 1.0
    return constraint.diameter(SIZE)


@each_set
@laws
@given(v=vectors, seed=seeds)
def test_projection_satisfies_its_variational_inequality(constraint: Constraint, v: np.ndarray, seed: int) -> None:
    nearest = constraint.project(v)
    assert constraint.contains(nearest, 1e-12)
    members = feasible(constraint, seed)
    moved, longest = v - nearest, np.abs(nearest).max()
    assume(np.abs(moved).max() > 1e-10 * longest)  # otherwise the direction of the move is all rounding
    rounding = 1e-12 * (1.0 + longest / np.abs(moved).max())
    scale = size_of(constraint)  # lengths in units of the set, or the smallest sets would underflow
    gaps = (members / scale - nearest / scale) @ unit(moved)
    assert (gaps <= rounding * (1.0 + np.abs(members / scale).max() + longest / scale)).all()


@each_set
@laws
@given(seed=seeds)
def test_members_are_their_own_projection(constraint: Constraint, seed: int) -> None:
    for member in feasible(constraint, seed):
        np.testing.assert_allclose(constraint.project(member), member, rtol=0, atol=1e-14 * size_of(constraint))


@each_set
@laws
@given(v=vectors)
def test_projecting_twice_changes_nothing(constraint: Constraint, v: np.ndarray) -> None:
    once = constraint.project(v)
    tolerance = 1e-14 * size_of(constraint)
    np.testing.assert_allclose(constraint.project(once), once, rtol=1e-14, atol=tolerance)


@each_set
@laws
@given(v=ordinary, other=ordinary)
def test_projection_is_non_expansive(constraint: Constraint, v: np.ndarray, other: np.ndarray) -> None:
    moved = np.linalg.norm(constraint.project(v) - constraint.project(other))
    assert moved <= np.linalg.norm(v - other) * (1 + 1e-12) + 1e-13


@pytest.mark.parametrize("huge", [1e16, 1e300, 1.7e308])
def test_huge_entries_lose_no_digits(huge: float) -> None:
    v = np.array([huge, -huge, 0.0, huge * 0.999, 1.0])
    np.testing.assert_allclose(L1Ball(3.0).project(v), [1.5, -1.5, 0.0, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(Simplex(3.0).project(v), [3.0, 0.0, 0.0, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(L2Ball(3.0).project([huge, -huge]), [3 / math.sqrt(2), -3 / math.sqrt(2)])


@each_bounded
@laws
@given(gradient=vectors, seed=seeds)
def test_the_oracle_is_feasible_and_beats_every_member(constraint: Constraint, gradient: np.ndarray, seed: int) -> None:
    answer = constraint.linear_oracle(gradient)
    assert constraint.contains(answer, 1e-12)
    direction = unit(gradient)
    scale = size_of(constraint)
    best = (answer / scale) @ direction
    rivals = feasible(constraint, seed) / scale
    if hasattr(constraint, "vertices"):
        rivals = np.concatenate([rivals, constraint.vertices(SIZE) / scale])
    assert (rivals @ direction >= best - 1e-12).all()
    assert constraint.support(-direction) == pytest.approx(-best * scale, rel=1e-9, abs=1e-9 * scale)


@pytest.mark.parametrize("constraint", [c for c in BOUNDED if hasattr(c, "vertices")], ids=repr)
def test_the_oracle_answers_a_vertex_even_for_a_zero_gradient_where_it_must(constraint: Constraint) -> None:
    vertices = constraint.vertices(SIZE)  # type: ignore[attr-defined]
    gradient = np.array([0.5, -2.0, 2.0, 0.1, -0.3])
    assert (vertices == constraint.linear_oracle(gradient)).all(axis=1).any()
    assert constraint.contains(constraint.linear_oracle(np.zeros(SIZE)))
    if not isinstance(constraint, Box):
        assert (vertices == constraint.linear_oracle(np.zeros(SIZE))).all(axis=1).any()


@each_bounded
@laws
@given(v=vectors)
def test_support_of_extreme_directions_is_not_nan(constraint: Constraint, v: np.ndarray) -> None:
    assert not math.isnan(constraint.support(v))


def test_vertices_are_all_there() -> None:
    assert L1Ball(2.0).vertices(3).tolist() == [*(2 * np.eye(3)).tolist(), *(-2 * np.eye(3)).tolist()]
    assert Simplex(2.0).vertices(2).tolist() == [[2.0, 0.0], [0.0, 2.0]]
    corners = Box([0.0, -1.0], [1.0, 5.0]).vertices(2)
    assert {tuple(corner) for corner in corners} == {(0.0, -1.0), (0.0, 5.0), (1.0, -1.0), (1.0, 5.0)}
    assert Box(0.0, 1.0).vertices(16).shape == (2**16, 16)
    with pytest.raises(ValueError, match=r"^size must be at most 16"):
        Box(0.0, 1.0).vertices(17)
    with pytest.raises(ValueError, match=r"^low and high must be finite"):
        Box(0.0, math.inf).vertices(2)


@each_bounded
def test_diameter_is_the_largest_distance(constraint: Constraint) -> None:
    claimed = constraint.diameter(SIZE)
    if isinstance(constraint, L2Ball):
        members = constraint.radius * np.concatenate([np.eye(SIZE), -np.eye(SIZE)])
    else:
        members = constraint.vertices(SIZE)  # type: ignore[attr-defined]
    distances = np.linalg.norm((members[:, None] - members[None]) / claimed, axis=2)
    assert distances.max() == pytest.approx(1.0)


def test_diameters_of_degenerate_and_unbounded_sets() -> None:
    assert Simplex().diameter(1) == 0.0
    assert L1Ball(2.0).diameter(1) == 4.0
    assert Box(1.0, 1.0).diameter(3) == 0.0
    assert UNEVEN.diameter(SIZE) == math.inf


@each_set
def test_the_starting_point_is_feasible_and_zero_if_zero_is(constraint: Constraint) -> None:
    start = constraint.start(SIZE)
    assert start.shape == (SIZE,)
    assert constraint.contains(start, 1e-14)
    if constraint.contains(np.zeros(SIZE), 0.0):
        assert not start.any()
    if isinstance(constraint, Simplex):
        np.testing.assert_allclose(start, constraint.total / SIZE)


@each_bounded
@laws
@given(seed=seeds)
def test_points_clearly_outside_are_not_contained(constraint: Constraint, seed: int) -> None:
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=SIZE)
    boundary = constraint.linear_oracle(-direction)
    outside = boundary + 1e-3 * size_of(constraint) * unit(direction)
    assert not constraint.contains(outside)
    assert not constraint.contains(np.full(SIZE, math.nan))
    if not isinstance(constraint, Box):  # its tolerance is relative to each coordinate's own bounds
        assert constraint.contains(outside, tolerance=0.1)


def test_a_simplex_has_no_negative_shares() -> None:
    assert not Simplex().contains([1.5, -0.5])


def test_the_tolerance_of_a_box_is_relative_to_each_coordinate() -> None:
    box = Box([-1.0, 0.0, 0.0], [1.0, 1e6, 0.0])
    assert box.contains([1.0 + 1e-10, 1e6 + 1e-4, 0.0])
    assert not box.contains([1.0 + 1e-8, 1.0, 0.0])
    assert not box.contains([1.0, 1.0, 1e-12])


def test_unbounded_boxes() -> None:
    half_line = Box(0.0, math.inf)
    assert half_line.support([-1.0, 0.0]) == 0.0
    assert half_line.support([-1.0, 1e-9]) == math.inf
    assert Box(-math.inf, 3.0).support([0.0, 1.0]) == 3.0
    assert half_line.linear_oracle([1.0, 0.0]).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"unbounded below"):
        half_line.linear_oracle([1.0, -1.0])
    assert Box(-math.inf, -1e300).support([1e300, 1.0]) == -math.inf
    # One coordinate overflows downwards, the other is unbounded upwards: the supremum is still infinite.
    assert Box([-2e300, 0.0], [-1e300, math.inf]).support([1e300, 1.0]) == math.inf


@each_set
def test_matrices_are_long_vectors(constraint: Constraint) -> None:
    v = np.random.default_rng(4).normal(scale=3.0, size=SIZE)
    np.testing.assert_array_equal(constraint.project(v.reshape(SIZE, 1)), constraint.project(v)[:, None])
    if constraint in BOUNDED:
        column = constraint.linear_oracle(v.reshape(1, SIZE))
        np.testing.assert_array_equal(column, constraint.linear_oracle(v)[None, :])


@each_set
def test_the_argument_is_left_alone(constraint: Constraint) -> None:
    for v in (np.full(SIZE, 1e-3), np.full(SIZE, 1e3)):
        before = v.copy()
        answer = constraint.project(v)
        answer += 1.0
        np.testing.assert_array_equal(v, before)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_wrong_sizes_are_refused(value: object) -> None:
    for build in (L1Ball, L2Ball):
        with pytest.raises(ValueError, match=r"^radius must"):
            build(value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^total must"):
        Simplex(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan), ([0.0, 2.0], [1.0, 1.0]), ([0.0] * 2, [1.0] * 3),
     (math.inf, math.inf), (-math.inf, -math.inf), ([[0.0]], 1.0)],
)  # fmt: skip
def test_wrong_bounds_are_refused(low: object, high: object) -> None:
    with pytest.raises(ValueError, match=r"^low (must|and high must)"):
        Box(low, high)  # type: ignore[arg-type]


def test_a_box_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"5 entries, but there are 3"):
        UNEVEN.project(np.zeros(3))


@each_set
def test_sets_are_values(constraint: Constraint) -> None:
    twin = pickle.loads(pickle.dumps(constraint))
    assert twin == constraint
    assert hash(twin) == hash(constraint)
    assert constraint.separable == isinstance(constraint, Box)


def test_boxes_own_their_bounds() -> None:
    low = np.zeros(2)
    box = Box(low, 1.0)
    low[0] = 0.5
    assert box == Box([-0.0, 0.0], 1.0)
    assert hash(box) == hash(Box([-0.0, 0.0], [1.0, 1.0]))
    assert box != Box(0.0, 1.0)
    assert box != Box(0.0, 2.0)
    with pytest.raises(ValueError, match="read-only"):
        box.low[0] = 3.0


AROUND_ZERO = [L1Ball(1.0), L1Ball(3.0), L2Ball(3.0), Box(-1.0, 2.0), Box([-1.0, 0.0, -5.0, -7.0, -3.0], 1e3)]
POLYTOPES = [L1Ball(2.0), Simplex(), Simplex(5.0)]


@laws
@pytest.mark.parametrize("constraint", AROUND_ZERO, ids=repr)
@given(v=ordinary)
def test_the_gauge_is_the_factor_at_which_a_point_enters_the_set(constraint, v):
    gauge = float(constraint.gauge(v[None])[0])
    assume(gauge > 0.0 and np.abs(v[v != 0.0]).min() > 1e-100)  # smaller ones vanish when they are scaled
    if math.isinf(gauge):  # the set does not reach into this direction at all
        assert not constraint.contains(1e-6 * v, 0.0)
        return
    assert constraint.contains(v / gauge, 1e-12)
    assert not constraint.contains(1.001 * v / gauge, 1e-9)


@laws
@pytest.mark.parametrize("constraint", AROUND_ZERO, ids=repr)
@given(rows=arrays(np.float64, (3, SIZE), elements=st.floats(-10.0, 10.0)))
def test_supports_are_the_support_of_each_row(constraint, rows):
    np.testing.assert_allclose(constraint.supports(rows), [constraint.support(row) for row in rows], atol=1e-12)


def test_a_box_without_zero_has_no_gauge():
    with pytest.raises(ValueError, match="contains 0"):
        Box(1.0, 2.0).gauge(np.ones((1, 3)))


@laws
@pytest.mark.parametrize("constraint", POLYTOPES, ids=repr)
@given(v=ordinary, factor=st.floats(0.01, 100.0))
def test_projecting_and_scaling_commute(constraint, v, factor):
    wanted = factor * constraint.project(v)
    np.testing.assert_allclose(constraint.scaled(factor).project(factor * v), wanted, rtol=1e-9, atol=1e-9 * factor)


@pytest.mark.parametrize("constraint", POLYTOPES, ids=repr)
def test_vertices_are_listed_one_by_one(constraint):
    signs = (1.0, -1.0) if constraint.symmetric else (1.0,)
    one_by_one = [constraint.vertex(j, sign, SIZE) for sign in signs for j in range(SIZE)]
    np.testing.assert_array_equal(constraint.vertices(SIZE), one_by_one)
    assert all(constraint.contains(vertex) for vertex in one_by_one)
