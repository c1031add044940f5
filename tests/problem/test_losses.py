"""Losses are checked by laws: finite differences, Fenchel-Young, and the bounds on which privacy rests."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.problem.losses import (
    ClassWeighted,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    OneVsRest,
    SmoothedHinge,
    Squared,
)
from tests.catalogue import every_loss

# Those for which any number is a target, or its sign a label; `check_loss` holds all losses to the same laws.
SCALAR = [
    loss for loss in every_loss() if loss.outputs == 1 and not loss.log_link and not isinstance(loss, ClassWeighted)
]
VECTOR: list[Loss] = [
    Multinomial(classes=2),
    Multinomial(classes=5),
    OneVsRest(Logistic(), classes=3),
    OneVsRest(SmoothedHinge(0.3), classes=4),
]
EXTREMES = [0.0, -0.0, 5e-324, 1e-300, 1.0, 40.0, 800.0, 1e150, 1e300, 1.7e308]

extreme_numbers = st.sampled_from([*EXTREMES, *(-x for x in EXTREMES)])
ordinary = st.floats(-30.0, 30.0)
laws = settings(deadline=None, max_examples=60)
each_scalar = pytest.mark.parametrize("loss", SCALAR, ids=repr)
each_vector = pytest.mark.parametrize("loss", VECTOR, ids=repr)
each_loss = pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)


def target(loss: Loss, number: float) -> float:
    """Any real number is a target for a regression loss; its sign is a label for the others."""
    return math.copysign(1.0, number) if loss.classification else number


def distance_to_kink(loss: Loss, margin: float, y: float) -> float:
    if isinstance(loss, Huber):
        return abs(abs(margin - y) - loss.threshold)
    if isinstance(loss, SmoothedHinge):
        return abs(abs(1.0 - y * margin) - loss.width)
    return math.inf


def some_rows(loss: Loss, seed: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(50, loss.outputs)), rng.integers(0, loss.outputs, size=50)


@each_scalar
@laws
@given(margin=ordinary, number=ordinary)
def test_slope_and_curvature_are_the_derivatives(loss: Loss, margin: float, number: float) -> None:
    y, h = target(loss, number), 1e-5
    assume(distance_to_kink(loss, margin, y) > 2 * h)
    ends = np.array([margin - h, margin + h])
    assert np.diff(loss.value(ends, y))[0] / (2 * h) == pytest.approx(loss.slope(margin, y), abs=1e-6)
    assert np.diff(loss.slope(ends, y))[0] / (2 * h) == pytest.approx(loss.curvature(margin, y), abs=1e-6)


@each_scalar
@laws
@given(margin=ordinary, number=ordinary, other=ordinary)
def test_fenchel_young_holds_with_equality_at_the_slope(loss: Loss, margin: float, number: float, other: float) -> None:
    y = target(loss, number)
    slope = loss.slope(margin, y)
    at_slope = loss.conjugate(slope, y)
    assert loss.value(margin, y) + at_slope == pytest.approx(margin * slope, rel=1e-12, abs=1e-11)
    assert loss.value(other, y) + at_slope >= other * slope - 1e-11 * (1 + abs(other * slope))


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("loss", [loss for loss in SCALAR if math.isfinite(loss.lipschitz)], ids=repr)
def test_conjugate_is_infinite_exactly_where_the_supremum_is(loss: Loss, y: float) -> None:
    far = np.array([-1e9, 1e9])
    ends = [0.0, -y] if loss.classification else [-loss.lipschitz, loss.lipschitz]
    for end, outwards in zip(sorted(ends), (-1e-3, 1e-3), strict=True):
        assert np.isfinite(loss.conjugate(end, y))
        assert loss.conjugate(end + outwards, y) == math.inf
        assert (far * (end + outwards) - loss.value(far, y)).max() > 1e5


@each_scalar
@laws
@given(margin=st.one_of(ordinary, extreme_numbers), number=st.one_of(ordinary, extreme_numbers))
def test_every_margin_obeys_the_bounds_and_gives_no_nan(loss: Loss, margin: float, number: float) -> None:
    y = target(loss, number)
    value, slope, curvature = loss.value(margin, y), loss.slope(margin, y), loss.curvature(margin, y)
    assert value >= 0.0
    assert abs(slope) <= loss.lipschitz
    assert 0.0 <= curvature <= loss.smoothness * (1 + 1e-15)
    assert not math.isnan(float(loss.conjugate(margin, y)))
    if loss.monotone:
        assert slope * -y >= 0.0


@each_scalar
def test_no_pair_of_extreme_numbers_gives_nan_or_a_warning(loss: Loss) -> None:
    numbers = np.array([*EXTREMES, *(-x for x in EXTREMES)])
    margin, number = np.meshgrid(numbers, numbers)
    y = np.copysign(1.0, number) if loss.classification else number
    for method in (loss.value, loss.slope, loss.curvature, loss.conjugate):
        assert not np.isnan(method(margin, y)).any()


@each_scalar
def test_the_bounds_are_attained(loss: Loss) -> None:
    margins = np.linspace(-1e3, 1e3, 20_001)
    slope = loss.slope(margins, 1.0)
    assert loss.curvature(margins, 1.0).max() == pytest.approx(loss.smoothness)
    if math.isfinite(loss.lipschitz):
        assert np.abs(slope).max() == pytest.approx(loss.lipschitz)
    else:
        assert np.abs(slope).max() > 900.0
    assert loss.monotone == bool((slope <= 0.0).all())


def test_confident_rows_keep_their_relative_accuracy() -> None:
    assert Logistic().value(700.0, 1.0) == pytest.approx(math.exp(-700.0), rel=1e-12, abs=0.0)
    for margin in (-700.0, 700.0):
        assert Logistic().curvature(margin, 1.0) == pytest.approx(math.exp(-700.0), rel=1e-12, abs=0.0)
    margins = np.array([[700.0, 0.0, -50.0]])
    assert Multinomial(3).value(margins, [0])[0] == pytest.approx(math.exp(-700.0), rel=1e-12, abs=0.0)
    assert Multinomial(3).slope(margins, [0])[0, 0] == pytest.approx(-math.exp(-700.0), rel=1e-12, abs=0.0)


def test_the_pieces_are_those_of_the_definitions() -> None:
    assert Squared().value(5.0, 2.0) == pytest.approx(4.5)
    assert Huber(2.0).value([3.0, 13.0], 2.0) == pytest.approx([0.5, 2.0 * 11.0 - 2.0])
    hinge = SmoothedHinge(0.5)
    assert hinge.value([2.0, 1.0, -3.0], 1.0) == pytest.approx([0.0, 0.5**2 / (4 * 0.5), 4.0])
    assert hinge.value([-2.0, 3.0], -1.0) == pytest.approx([0.0, 4.0])


@each_vector
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_vector_slope_and_curvature_are_the_derivatives(loss: Loss, scale: float) -> None:
    margins, y = some_rows(loss, seed=1, scale=scale)
    h = 1e-5
    for k in range(loss.outputs):
        up, down = margins.copy(), margins.copy()
        up[:, k] += h
        down[:, k] -= h
        by_value = (loss.value(up, y) - loss.value(down, y)) / (2 * h)
        by_slope = (loss.slope(up, y) - loss.slope(down, y))[:, k] / (2 * h)
        np.testing.assert_allclose(by_value, loss.slope(margins, y)[:, k], atol=1e-5)
        np.testing.assert_allclose(by_slope, loss.curvature(margins, y)[:, k], atol=1e-5)


@each_vector
@laws
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.01, 1.0, 30.0]))
def test_vector_fenchel_young_holds_with_equality_at_the_slope(loss: Loss, seed: int, scale: float) -> None:
    margins, y = some_rows(loss, seed, scale)
    slope = loss.slope(margins, y)
    conjugate = loss.conjugate(slope, y)
    inner = (margins * slope).sum(axis=1)
    np.testing.assert_allclose(loss.value(margins, y) + conjugate, inner, rtol=1e-9, atol=1e-9)
    other = some_rows(loss, seed + 1, scale)[0]
    assert (loss.value(other, y) + conjugate >= (other * slope).sum(axis=1) - 1e-9 * (1 + scale)).all()


def test_vector_conjugate_is_infinite_outside_its_domain() -> None:
    margins, y = np.array([[0.3, -0.2, 0.1]]), [1]
    for loss in (Multinomial(3), OneVsRest(Logistic(), 3)):
        slope = loss.slope(margins, y)
        assert loss.conjugate(slope, y)[0] < math.inf
        assert loss.conjugate(slope + np.array([[0.0, 1.1, 0.0]]), y)[0] == math.inf
        assert loss.conjugate(slope - np.array([[1.0, -1.0, 0.0]]), y)[0] == math.inf
    shifted = Multinomial(3).slope(margins, y) + 1e-6
    assert Multinomial(3).conjugate(shifted, y)[0] == math.inf
    negative_share = np.array([[-0.5, -0.1, 0.1]])
    assert Multinomial(3).conjugate(negative_share, y)[0] == math.inf


@each_vector
@laws
@given(data=st.data())
def test_every_row_of_margins_obeys_the_bounds_and_gives_no_nan(loss: Loss, data: st.DataObject) -> None:
    entries = st.one_of(ordinary, extreme_numbers)
    margins = np.array([data.draw(st.lists(entries, min_size=loss.outputs, max_size=loss.outputs))])
    y = [data.draw(st.integers(0, loss.outputs - 1))]
    slope, curvature = loss.slope(margins, y), loss.curvature(margins, y)
    assert loss.value(margins, y)[0] >= 0.0
    assert np.linalg.norm(slope) <= loss.lipschitz * (1 + 1e-14)
    assert ((curvature >= 0.0) & (curvature <= loss.smoothness * (1 + 1e-15))).all()
    assert not np.isnan(loss.conjugate(margins, y)).any()


@each_vector
def test_vector_bounds_are_attained(loss: Loss) -> None:
    # A row that is confidently wrong everywhere; and, for the Hessian, every pair of tied classes.
    wrong = np.full((1, loss.outputs), -1e3 if isinstance(loss, Multinomial) else 1e3)
    wrong[0, 0] = 1e3 if isinstance(loss, Multinomial) else -1e3
    label = [1] if isinstance(loss, Multinomial) else [0]
    assert np.linalg.norm(loss.slope(wrong, label)) == pytest.approx(loss.lipschitz)

    tied = np.full(loss.outputs, -1e3)
    tied[:2] = 1.0 if loss.code == SmoothedHinge.code else 0.0  # the hinge bends around 1, the others at 0
    h = 1e-5
    columns = [
        (loss.slope((tied + h * unit)[None, :], [0]) - loss.slope((tied - h * unit)[None, :], [0]))[0] / (2 * h)
        for unit in np.eye(loss.outputs)
    ]
    assert np.linalg.eigvalsh(np.array(columns))[-1] == pytest.approx(loss.smoothness, rel=1e-5)


@laws
@given(first=ordinary, second=ordinary, y=st.integers(0, 1))
def test_two_class_softmax_is_logistic_in_the_difference(first: float, second: float, y: int) -> None:
    loss, margins, label = Multinomial(classes=2), np.array([[first, second]]), 2 * y - 1
    difference = second - first
    assert loss.value(margins, [y])[0] == pytest.approx(Logistic().value(difference, label), rel=1e-12)
    assert loss.slope(margins, [y])[0, 1] == pytest.approx(Logistic().slope(difference, label), rel=1e-12)


@pytest.mark.parametrize("inner", SCALAR, ids=repr)
def test_one_vs_rest_is_the_sum_of_binary_losses(inner: Loss) -> None:
    loss = OneVsRest(inner, classes=3)
    margins, y = some_rows(loss, seed=2, scale=2.0)
    for row, label, value, slope in zip(margins, y, loss.value(margins, y), loss.slope(margins, y), strict=True):
        signs = [1.0 if label == k else -1.0 for k in range(3)]
        assert value == pytest.approx(sum(float(inner.value(m, s)) for m, s in zip(row, signs, strict=True)))
        assert slope == pytest.approx([float(inner.slope(m, s)) for m, s in zip(row, signs, strict=True)])
    assert (loss.code, loss.parameter) == (inner.code, inner.parameter)


@each_vector
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.float64, bool])
def test_labels_may_have_any_numeric_type(loss: Loss, dtype: type) -> None:
    margins, y = some_rows(loss, seed=3, scale=1.0)
    y = np.minimum(y, 1)
    np.testing.assert_array_equal(loss.slope(margins, y.astype(dtype)), loss.slope(margins, y))


@each_vector
@pytest.mark.parametrize("labels", [[-1, 1], [0, 99], [0.5, 1.0], [math.nan, 1.0], [0], [[0], [1]]])
def test_wrong_labels_are_refused(loss: Loss, labels: list) -> None:
    with pytest.raises(ValueError, match=r"^y must"):
        loss.value(np.zeros((2, loss.outputs)), labels)


@each_vector
def test_margins_of_the_wrong_shape_are_refused(loss: Loss) -> None:
    with pytest.raises(ValueError, match=r"^margin must"):
        loss.value(np.zeros((2, loss.outputs + 1)), [0, 1])


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-310, 1e300, math.nan, math.inf, "1", None])
def test_wrong_parameters_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^threshold must"):
        Huber(value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^width must"):
        SmoothedHinge(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [1, 0, -3, 2.0, True, None, "2"])
def test_wrong_class_counts_are_refused(classes: object) -> None:
    with pytest.raises(ValueError, match=r"^classes must"):
        Multinomial(classes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^classes must"):
        OneVsRest(Logistic(), classes)  # type: ignore[arg-type]


@pytest.mark.parametrize("inner", [Multinomial(3), OneVsRest(Logistic(), 3), None, "logistic"])
def test_one_vs_rest_needs_a_scalar_loss(inner: object) -> None:
    with pytest.raises(ValueError, match=r"^loss must"):
        OneVsRest(inner, 3)  # type: ignore[arg-type]


@each_loss
def test_losses_are_values(loss: Loss) -> None:
    twin = pickle.loads(pickle.dumps(loss))
    assert twin == loss
    assert hash(twin) == hash(loss)
    assert not hasattr(loss, "__dict__")


def test_each_kernel_code_belongs_to_one_class() -> None:
    codes = {type(loss): loss.code for loss in [*SCALAR, Multinomial(3)] if isinstance(loss.code, int)}
    assert codes == {Squared: 0, Logistic: 1, Huber: 2, SmoothedHinge: 3, Multinomial: 4}
    assert (Huber(0.7).parameter, SmoothedHinge(0.2).parameter) == (0.7, 0.2)
