"""Whatever model lies within the distance: its quantities lie in the certificate, which cannot be made smaller."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.fairness.cells import quantities, row_cells
from discreet.fairness.certificates import certify as change
from discreet.fairness.certificates.classifier import margins_of
from discreet.theory.distance import KnownDistance
from tests.fairness_tools import (
    aligned_case,
    direct_values,
    moved,
    plain_certificate,
    plain_classifier,
    predictions,
    random_case,
    uncovered,
    values_of,
)

FAVOURABLE = 1


def movements(rng, model, X, weights, radius, count):
    """Movements of norm `radius`, some at random, some against or towards the margin of a row."""
    for k in range(count):
        direction = rng.normal(size=model.weights.shape)
        if k % 2:
            direction = np.outer(rng.normal(size=model.weights.shape[0]), X[rng.integers(len(X))] / weights)
        length = math.sqrt(float((np.square(direction) * weights).sum()))
        yield radius * rng.choice([1.0, rng.uniform()]) * direction / length


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_every_model_within_the_distance_is_covered(seed, classes):
    model, X, y, group, rng = random_case(seed, classes)
    weights = rng.uniform(0.2, 5.0, X.shape[1])
    for radius in (0.02, 0.2, 1.0):
        law = KnownDistance(weights, model.weights.shape[0], "the other model", radius)
        found = plain_certificate(model, X, y, group, distance=law, favourable=FAVOURABLE)
        for step in movements(rng, model, X, weights, radius, 30):
            other = moved(model, X, step)
            assert uncovered(found, y, other, group, FAVOURABLE) == []
            for notion, total in found.aggregate.items():
                new = np.nanmean(
                    [abs(v) for about, v in direct_values(y, other, group, 1).items() if about[0] == notion]
                )
                assert abs(new - total.value) <= total.bound + 1e-9


def fraction_moved(model, X, y, group, radius, speed=1.0):
    """The interval of equalised odds for label 1 and group a, with Lipschitz constants times `speed`."""
    law = KnownDistance(np.ones(X.shape[1]), model.weights.shape[0], "the other model", radius)
    rows = row_cells(y, group, labels=model.classes)
    margins = margins_of(model, law, X, rows.label)
    wanted = quantities(rows.table(margins.correct), "equalised odds")
    quantity = next(q for q in wanted if (q.label, q.group) == (1, "a"))
    low, high = change.interval(
        quantity, rows, replace(margins, lipschitz=speed * margins.lipschitz), change.Reach(radius)
    )
    return quantity, rows, low, high


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_bound_is_attained_so_that_every_smaller_one_is_wrong(classes, side):
    model, X, y, group = aligned_case(classes=classes, columns=3)
    radius, share = 0.3, 1.0 / math.sqrt(2.0) if classes > 2 else 1.0
    step = np.zeros(model.weights.shape)
    step[0, -1] = side * radius * (1.0 if classes == 2 else -share)
    if classes > 2:
        step[1, -1] = side * radius * share
    assert np.linalg.norm(step) == pytest.approx(radius)
    quantity, rows, low, high = fraction_moved(model, X, y, group, radius)
    before, after = predictions(model, X), moved(model, X, step)
    reached = quantity.value(rows.table(after == y)) - quantity.value(rows.table(before == y))
    assert low - 1e-12 <= reached <= high + 1e-12
    assert min(abs(reached - low), abs(reached - high)) < 0.01
    for fault in (
        fraction_moved(model, X, y, group, 0.8 * radius),
        fraction_moved(model, X, y, group, radius, 0.5),
    ):
        assert not fault[2] - 1e-12 <= reached <= fault[3] + 1e-12
    if classes > 2:  # a speed without the square root of 2
        _, _, low, high = fraction_moved(model, X, y, group, radius, share)
        assert not low - 1e-12 <= reached <= high + 1e-12


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_with_both_models_the_change_is_exact_and_the_refined_bound_above_it(seed, classes):
    model, X, y, group, rng = random_case(seed, classes)
    step = 0.3 * rng.normal(size=model.weights.shape)
    twin = replace(model, coef=model.coef + step)
    for reference in ("private", "twin"):
        found = plain_certificate(model, X, y, group, twin=twin, favourable=FAVOURABLE, reference=reference)
        assert found.radius == pytest.approx(np.linalg.norm(step))
        first, second = (model, twin) if reference == "private" else (twin, model)
        old = direct_values(y, predictions(first, X), group, FAVOURABLE)
        new = direct_values(y, predictions(second, X), group, FAVOURABLE)
        for about, s in values_of(found).items():
            assert s.value == pytest.approx(old[about], abs=1e-12)
            assert s.exact == pytest.approx(new[about] - old[about], abs=1e-12)
            assert abs(s.exact) <= s.refined + 1e-12
            assert s.refined <= s.bound + 1e-12
            assert s.low - 1e-12 <= s.exact <= s.high + 1e-12
        for notion, total in found.aggregate.items():
            means = [np.mean([abs(v) for about, v in values.items() if about[0] == notion]) for values in (old, new)]
            assert total.exact == pytest.approx(means[1] - means[0], abs=1e-12)
            assert abs(total.exact) <= total.refined + 1e-12


def test_the_refined_bound_is_far_below_the_ball_for_rows_across_the_change():
    model, X, y, group, _ = random_case(1)
    X[:, -1] = 0.0  # no row has this column, and only its weight moves
    twin = replace(model, coef=model.coef + np.array([0.0, 0.0, 0.0, 2.0]))
    found = plain_certificate(model, X, y, group, twin=twin, notions="accuracy").of("accuracy")[0]
    assert found.refined == found.exact == 0.0
    assert found.bound > 0.2


@pytest.mark.parametrize("size", [1e-160, 1e-200, 5e-324])
@pytest.mark.parametrize("weight", [1.0, 1e-90, 1e90])
def test_rows_so_small_that_their_squares_vanish_can_change(size, weight):
    model = plain_classifier([[1.0]], [0, 1])
    X, y, group = np.array([[size], [0.0]]), np.array([1, 1]), np.array(["a", "b"])
    law = KnownDistance(np.array([weight]), 1, "the other model", 2.0 * math.sqrt(weight))
    assert moved(model, X, np.array([[-2.0]])).tolist() == [0, 0]
    found = plain_certificate(model, X, y, group, distance=law, notions="accuracy").of("accuracy")[0]
    assert (found.value, found.low, found.high) == (0.5, -0.5, 0.0)  # a row of zeros has score 0 in every model


def test_the_distance_to_a_twin_with_an_intercept_counts_the_intercept():
    model = plain_classifier([[1.0]], [0, 1])
    twin = replace(model, intercept=np.array([0.5]), has_intercept=True)
    X, y, group = np.array([[-0.25], [1.0]]), np.array([0, 1]), np.array(["a", "b"])
    for reference in ("private", "twin"):
        certified = plain_certificate(model, X, y, group, twin=twin, notions="accuracy", reference=reference)
        found = certified.of("accuracy")[0]
        assert certified.radius == pytest.approx(0.5)
        assert abs(found.exact) == 0.5
        assert found.low <= found.exact <= found.high


@pytest.mark.parametrize("reference", ["private", "twin"])
def test_the_distance_to_a_twin_that_clips_in_another_way_bounds_nothing(reference):
    twin = plain_classifier([[1.0, 1.0]], [0, 1])
    clipped = replace(twin.scaling, low=np.array([-1.0, -9.0]), high=np.array([1.0, 9.0]))
    model = replace(twin, scaling=clipped)
    X, y, group = np.array([[5.0, -3.0], [1.0, 1.0]]), np.array([1, 1]), np.array(["a", "b"])
    with pytest.raises(ValueError, match="clips the rows in another way"):
        plain_certificate(model, X, y, group, twin=twin, notions="accuracy", reference=reference)
