"""One pass over rows as they are gives what the scaled copy of them would; bits of a row depend on the row alone."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.kernels.gradient import clipped_gradient_sum, clipped_slopes, mapped_row_norms, row_norms
from discreet.kernels.grid_sums import outer_product_sum
from discreet.problem.losses import Huber, Logistic, SmoothedHinge, Squared
from discreet.problem.scaled_block import ScaledRows

LOSSES = [Logistic(), Squared(), Huber(0.7), SmoothedHinge(0.4)]
STEP = 2.0**-20


def rows_of(n, p, intercept, dtype=np.float64, order="C", seed=0):
    """Rows, and the matrix that they are in scaled columns; one column is frozen, and entries are clipped."""
    rng = np.random.default_rng(seed)
    X = np.array(3.0 * rng.standard_normal((n, p)), dtype=dtype, order=order)
    low, high, shift, gain = np.full(p, -4.0), np.full(p, 2.5), rng.standard_normal(p), rng.random(p) + 0.5
    gain[p // 2] = 0.0
    scaled = (np.clip(X.astype(np.float64), low, high) - shift) * gain
    matrix = np.column_stack([scaled, np.ones(n)]) if intercept else scaled
    return ScaledRows(X, np.stack([low, high, shift, gain]), intercept), matrix


SHAPES = [(1, 1), (7, 3), (300, 20), (1_000, 17), (50, 700)]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize(("dtype", "order"), [(np.float64, "C"), (np.float64, "F"), (np.float32, "C")])
def test_passes_agree_with_the_scaled_matrix(n, p, intercept, dtype, order):
    rows, matrix = rows_of(n, p, intercept, dtype, order)
    rng = np.random.default_rng(1)
    w, maps = rng.standard_normal(matrix.shape[1]), rng.standard_normal((matrix.shape[1], matrix.shape[1]))
    factors = rng.random(n)
    assert np.array_equal(rows.matrix(), matrix)
    np.testing.assert_allclose(rows.margins(w), matrix @ w, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(rows.norms(), row_norms(matrix), rtol=1e-13)
    np.testing.assert_allclose(rows.norms(maps), mapped_row_norms(matrix, maps), rtol=1e-11)
    for matrix_used in (None, maps):
        found = rows.outer_products(factors, 0.0, matrix_used)
        wanted = outer_product_sum(matrix, factors, 0.0, matrix_used)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
        assert np.array_equal(found, found.T)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clip", [1.5, np.inf])
@pytest.mark.parametrize("step", [0.0, STEP])
def test_the_gradient_sum_is_that_of_the_scaled_matrix(loss, weighted, clip, step):
    rows, matrix = rows_of(517, 9, True)
    rng = np.random.default_rng(2)
    w, y = 0.3 * rng.standard_normal(10), np.where(rng.random(517) < 0.5, 1.0, -1.0)
    weight = rng.random(517) if weighted else None
    norms = row_norms(matrix)
    found = rows.gradient_sum(w, y, (loss.code, float(loss.parameter)), norms, clip, weight, step)
    wanted = clipped_gradient_sum(matrix, loss.slope(matrix @ w, y), norms, clip, weight)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-9 + 517 * step)
    if step > 0.0:
        assert np.array_equal(found, np.rint(found / step) * step)


def test_no_row_adds_more_than_the_clip_allows():
    rows, matrix = rows_of(64, 5, True)
    w, clip = 50.0 * np.ones(6), 0.25
    for i in range(64):
        one = ScaledRows(rows.X[i : i + 1], rows.columns, True)
        added = one.gradient_sum(w, np.array([-1.0]), (1, 0.0), row_norms(matrix[i : i + 1]), clip, None, 0.0)
        assert np.linalg.norm(added) <= clip * (1.0 + 1e-15)


def test_no_row_adds_more_than_a_tiny_clip_where_slopes_are_huge():
    """clip / size is then so small that it has few digits: rounded up, it may be twice as large."""
    clip, step, one = 1e-18, 2.0**-100, np.ones(1)
    rows = ScaledRows(np.ones((1, 1)), np.array([[-1.0], [1.0], [0.0], [1.0]]), False)
    for slope in np.geomspace(1e280, 1.7e308, 500):
        added = rows.gradient_sum(np.array([slope]), np.zeros(1), (0, 1.0), one, clip, None, step)
        assert abs(added[0]) <= clip * (1.0 + 1e-9)
        assert abs(clipped_slopes(np.array([slope]), one, clip, None)[0]) <= clip * (1.0 + 1e-9)


@pytest.mark.parametrize("cut", [1, 8, 100, 129])
def test_blocks_of_any_size_give_the_same_bits(cut):
    rows, _ = rows_of(700, 11, True)
    rng = np.random.default_rng(3)
    w, y, maps = rng.standard_normal(12), np.where(rng.random(700) < 0.5, 1.0, -1.0), rng.standard_normal((12, 12))
    factors, loss = rng.random(700), (1, 0.0)
    norms, unit = rows.norms(maps), 2.0**-10

    def of(part):
        one = ScaledRows(rows.X[part], rows.columns, True)
        return (
            one.gradient_sum(w, y[part], loss, norms[part], 2.0, None, STEP),
            one.outer_products(factors[part], unit, maps),
            one.norms(maps),
            one.margins(w),
        )

    parts = [of(slice(start, start + cut)) for start in range(0, 700, cut)]
    whole = of(slice(None))
    for k in (0, 1):
        assert np.array_equal(np.sum([part[k] for part in parts], axis=0), whole[k])
    for k in (2, 3):
        assert np.array_equal(np.concatenate([part[k] for part in parts]), whole[k])


@pytest.mark.parametrize("step", [0.0, STEP])
def test_a_clip_of_zero_leaves_nothing(step):
    """Also of rows whose slope is 0: no number of theirs is divided by 0."""
    rows, matrix = rows_of(9, 3, True)
    w, y, norms = np.zeros(4), np.array([0.0, 1.0, -1.0] * 3), row_norms(matrix)
    found = rows.gradient_sum(w, y, (Squared().code, 0.0), norms, 0.0, None, step)
    np.testing.assert_array_equal(found, 0.0)
