"""Frames: an exact change of coordinates, and private scales that find the size of raw columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.data.validation import array_rows
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.column_scaling import ColumnScaling
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import ElasticNet
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import scale_problem
from discreet.scaling import histograms, learn
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_scaling
from tests.catalogue import table


def some_scaling(columns, clip=np.inf):
    return ColumnScaling(
        low=np.full(columns, -clip),
        high=np.full(columns, clip),
        shift=np.linspace(-1.0, 2.0, columns),
        scale=np.geomspace(0.1, 30.0, columns),
        second_moment=np.ones(columns),
        frozen=np.zeros(columns, dtype=bool),
        target_shift=0.7,
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: loss.name)
def test_the_framed_objective_is_the_users_objective(loss, order):
    problem = Problem(loss, ElasticNet(0.1, 0.4))
    X, y = table(loss)
    scaled = scale_problem(problem, array_rows(X, y), some_scaling(4), len(y), order)
    w = np.random.default_rng(0).standard_normal(5)
    coef, intercept = scaled.to_user(w)
    if loss.classification:  # labels are not shifted, so neither is the intercept
        intercept = intercept - 0.7
    assert scaled.value(w) == pytest.approx(problem.objective(X, y, coef, intercept), rel=1e-12)


@given(arrays(np.float64, (7, 3), elements=st.floats(-1e308, 1e308)), st.sampled_from(["C", "F"]))
def test_framed_entries_are_bounded_whatever_the_rows(X, order):
    scaling = some_scaling(3, clip=50.0)
    matrix = scaling.matrix(Data(X, np.zeros(7)), order, intercept=True)
    limit = (50.0 + np.abs(scaling.shift)) / scaling.scale
    assert (np.abs(matrix[:, :3]) <= limit * (1 + 1e-12)).all()
    assert (matrix[:, 3] == 1.0).all()


def test_dense_and_sparse_frames_agree():
    X = np.random.default_rng(0).standard_normal((20, 4)) * (np.random.default_rng(1).random((20, 4)) < 0.3)
    public = Public(20, 4, low=np.full(4, -1.0), high=np.full(4, 1.0), sparse=True)
    scaling_plan = plan_scaling(public, Budget(1.0, 1e-3), 0.0, True, False)
    scaling = learn_scaling(scaling_plan, Data(X, np.zeros(20)), public, seeded_generator(0))
    for form in (sp.csr_array, sp.csc_array):
        sparse = scaling.matrix(Data(form(X), np.zeros(20)), "F", True)
        np.testing.assert_allclose(sparse.toarray(), scaling.matrix(Data(X, np.zeros(20)), "F", True))


def learned(X, y=None, epsilon=1.0, **public):
    facts = Public(X.shape[0], X.shape[1], **public)
    scaling_plan = plan_scaling(facts, Budget(epsilon, 1e-9), None, True, y is not None)
    data = Data(X, np.zeros(X.shape[0]) if y is None else y)
    return scaling_plan, learn_scaling(scaling_plan, data, facts, seeded_generator(3))


def test_private_scales_find_centre_and_width_of_raw_columns():
    rng = np.random.default_rng(0)
    scales = np.array([1e-6, 1.0, 1e9])
    X = (rng.standard_normal((50_000, 3)) + np.array([0.0, 5.0, -3.0])) * scales
    y = 1e4 + 20.0 * rng.standard_normal(50_000)
    scaling_plan, scaling = learned(X, y)
    assert scaling_plan.method == "columns"
    assert not scaling.frozen.any()
    np.testing.assert_allclose(scaling.scale, scales, rtol=0.5)
    assert (np.abs(scaling.shift - X.mean(axis=0)) <= 0.5 * scales).all()
    assert (scaling.low <= np.quantile(X, 0.01, axis=0)).all()
    assert (scaling.high >= np.quantile(X, 0.99, axis=0)).all()
    assert abs(scaling.target_shift - 1e4) < 500.0


def test_constant_zero_and_rare_columns_are_harmless():
    """Where nothing stands out of the noise, a column takes the radius of another one; nothing becomes absurd."""
    X = np.zeros((50_000, 3))
    X[:, 1] = 4.0
    X[:3, 2] = 1e308
    _, scaling = learned(X)
    assert not scaling.frozen.any()
    np.testing.assert_allclose(scaling.high[[0, 2]], scaling.high[0])
    assert 8.0 * learn.MARGIN <= scaling.high[0] <= 80.0
    matrix = scaling.matrix(Data(X, np.zeros(50_000)), "F", True)
    assert np.abs(matrix).max() < 1e4
    _, scaling = learned(X[:, :1])
    assert scaling.frozen.all()  # there is no other column


def test_tables_that_noise_hides_get_one_common_scale_and_infinite_budgets_are_exact():
    X = np.random.default_rng(0).standard_normal((200, 400)) * 7.0
    scaling_plan, scaling = learned(X)
    assert scaling_plan.method == "common"
    assert len(set(scaling.scale)) == 1
    X = X[:, :10]
    scaling_plan, scaling = learned(X, epsilon=np.inf)
    np.testing.assert_allclose(scaling.scale, X.std(axis=0), rtol=1e-9)
    np.testing.assert_allclose(scaling.shift, X.mean(axis=0), rtol=1e-9, atol=1e-9)
    assert (scaling.high >= X.max(axis=0)).all()


def test_declared_ranges_that_exclude_zero_are_centred():
    X = np.random.default_rng(0).uniform(30, 40, (200, 2))
    low, high = np.array([30.0, 0.0]), np.array([40.0, 50.0])
    _, scaling = learned(X, low=low, high=high)
    np.testing.assert_allclose(scaling.shift, [35.0, 0.0])
    np.testing.assert_allclose(scaling.scale, [5.0, 50.0])


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="scale_share=0 needs bounds"):
        plan_scaling(Public(100, 3), Budget(1.0, 1e-3), 0.0, True, False)
    with pytest.raises(ValueError, match="scale_share=0 needs y_bounds"):
        plan_scaling(Public(100, 1, low=np.zeros(1), high=np.ones(1)), Budget(1.0, 1e-3), 0.0, True, True)


def test_a_doubtful_bin_serves_where_no_other_is_seen():
    """The highest bin beyond doubt wins, and its neighbours above; without one, the fullest; else nothing."""
    counts = np.zeros(histograms.BINS)
    counts[[60, 70, 90]] = 50.0, 40.0, 8.0
    assert histograms.radius_of(counts, 30.0, [5.0]) == 2.0 ** (70 + histograms.LOWEST_EXPONENT + 1)
    assert histograms.radius_of(counts, 60.0, [5.0]) == 2.0 ** (60 + histograms.LOWEST_EXPONENT + 1)
    assert histograms.radius_of(counts, 60.0, [55.0]) == 0.0
    counts[[71, 72, 74]] = 20.0, 9.0, 9.0
    assert histograms.radius_of(counts, 30.0, [5.0], 8.0) == 2.0 ** (72 + histograms.LOWEST_EXPONENT + 1)
    counts[-1] = 1e3  # zeros say nothing about the size of the others
    assert histograms.radius_of(counts, 60.0, [55.0]) == 0.0


def test_frozen_columns_have_no_say_in_the_common_scale():
    """Their scale is arbitrary, and nothing is left of them in the frame."""
    scaling = ColumnScaling(
        low=np.zeros(3), high=np.ones(3), shift=np.zeros(3), scale=np.array([1e-3, 1e-3, 0.1]),
        second_moment=np.ones(3), frozen=np.array([False, False, True]),
    ).uniform()  # fmt: skip
    np.testing.assert_allclose(scaling.second_moment, [1.0, 1.0, 0.0])
    assert scaling.scale[2] == scaling.scale[0]
