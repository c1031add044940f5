"""Targets that are hard to find, and what the scales must not do to a model.

Seeds are fixed. A two-armed test plants the old behaviour, which must fail.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from discreet import LogisticRegression, Ridge
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.scaling import histograms, learn, templates
from discreet.scaling.learn import expected_mean, learn_scaling, signed_range
from discreet.scaling.plan import DEFAULT_SHARE, MOST_SHARE, MOST_SOFT, SOFT_MEAN, plan_scaling, share_out
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.newton.solver import Newton
from tests.neighbours import CASE, neighbours


def learned(X, y=None, epsilon=1.0, seed=0, share=None, **public):
    facts = Public(X.shape[0], X.shape[1], **public)
    plan = plan_scaling(facts, Budget(epsilon, 1.0 / X.shape[0] ** 2), share, True, y is not None)
    data = Data(X, np.zeros(X.shape[0]) if y is None else y)
    return plan, learn_scaling(plan, data, facts, seeded_generator(seed))


@pytest.mark.parametrize(("most", "found"), [(MOST_SHARE, True), (0.06, False)])
def test_a_small_table_finds_its_target(most, found, monkeypatch):
    """300 rows at epsilon 1, ten columns; a share that does not grow loses most targets (the planted fault)."""
    monkeypatch.setattr("discreet.scaling.plan.MOST_SHARE", most)
    rng, lost = np.random.default_rng(0), 0
    for seed in range(20):
        X, y = rng.standard_normal((300, 10)), 8.0 * rng.standard_normal(300)
        _, scaling = learned(X, y, seed=seed)
        lost += not 4.0 < scaling.target_scale < 20.0
    assert (lost <= 3) == found


def test_a_lost_target_gives_a_constant_without_noise_and_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), 1e-3 * rng.standard_normal(60)
    for solver in (Newton(scale_share=0.1), "gd", "cd"):  # newton left to itself plans a constant for such a table
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = Ridge(epsilon=0.05, solver=solver, random_state=1).fit(X, y)
        assert any("target could not be told from noise" in str(w.message) for w in caught)
        assert any("predicts 0 if it is not found" in str(w.message) for w in caught)
        assert np.abs(model.predict(10.0 * X)).max() < 1e-6


def test_declared_bounds_of_a_target_take_no_larger_share_and_leave_its_private_mean():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1_000, 2)), rng.uniform(20.0, 30.0, 1_000)
    errors = []
    for seed in range(20):
        plan, scaling = learned(X, y, epsilon=1.0, seed=seed, target_low=0.0, target_high=100.0)
        assert plan.target_plan.histogram is None  # its range is declared: the usual share must do
        assert 0.0 <= scaling.target_low <= scaling.target_high <= 100.0
        errors.append(abs(scaling.target_shift - 25.0))
    assert np.median(errors) < 25.0  # what the middle of the bounds would have


def test_labels_as_targets_keep_both_values_inside_declared_bounds():
    y = np.random.default_rng(0).integers(0, 2, 400).astype(float)
    for seed in range(10):
        _, scaling = learned(np.zeros((400, 1)), y, seed=seed, target_low=0.0, target_high=1.0)
        assert (scaling.target_low, scaling.target_high) == (0.0, 1.0)


def noisy(counts, deviation=1.0):
    return counts, learn.Noise(mechanisms.Gaussian(deviation), mechanisms.counted_rows(), counts.size)


def test_runs_of_bins_stand_out_where_no_single_one_does():
    """Both signs, three octaves, 4 deviations each: no bin is believed alone, all six together are."""
    counts = np.zeros(histograms.SIGNED_BINS)
    zero, one = histograms.BINS - 1, 1 - histograms.LOWEST_EXPONENT  # the distance of the bin [1, 2) from that of zero
    for octave in (-1, 0, 1):
        counts[[zero - one - octave, zero + one + octave]] = 4.0
    assert signed_range(*noisy(counts)) == (-4.0, 4.0)
    assert signed_range(*noisy(0.5 * counts)) == (0.0, 0.0)


def test_a_bin_that_stands_out_belongs_to_the_range_of_a_target_gap_or_no_gap():
    counts = np.zeros(histograms.SIGNED_BINS)
    zero, one = histograms.BINS - 1, 1 - histograms.LOWEST_EXPONENT
    counts[zero + one + 3] = 1_000.0  # [8, 16)
    assert signed_range(*noisy(counts)) == (8.0, 16.0)
    counts[zero + one + 9] = 20.0  # [512, 1024)
    assert signed_range(*noisy(counts)) == (8.0, 1024.0)
    counts[zero] = 20.0
    assert signed_range(*noisy(counts)) == (0.0, 1024.0)
    counts[zero - one] = 20.0  # (-2, -1]
    assert signed_range(*noisy(counts)) == (-2.0, 1024.0)


def test_a_long_tail_is_seen_by_the_sum_of_its_bins():
    """Four octaves above the bulk, 3.5 deviations each: none passes the level of a neighbour, which is 4."""
    noise = learn.Noise(mechanisms.Gaussian(1.0), mechanisms.counted_rows(), histograms.BINS)
    counts = np.zeros(histograms.BINS)
    counts[60], counts[61:65] = 1_000.0, 3.5
    assert histograms.radius_of(counts, *noise.levels(known=False)) == histograms.upper_end(64)
    counts[61:65] = 1.5
    assert histograms.radius_of(counts, *noise.levels(known=False)) == histograms.upper_end(60)


def test_expected_means_are_those_of_a_truncated_normal_law():
    grid = np.linspace(-1.0, 1.0, 200_001)
    for value, deviation in ((0.3, 0.05), (-0.8, 0.5), (4.0, 1.0), (50.0, 2.0), (0.0, 10.0)):
        weights = np.exp(-0.5 * ((grid - value) / deviation) ** 2 + 0.5 * (max(abs(value) - 1.0, 0.0) / deviation) ** 2)
        truth = (grid * weights).sum() / weights.sum()
        assert expected_mean(np.array([value]), deviation)[0] == pytest.approx(truth, abs=1e-4)
    assert expected_mean(np.array([2.0, -0.5]), 0.0).tolist() == [1.0, -0.5]


@settings(max_examples=60)
@given(**CASE)
def test_counts_of_targets_and_of_common_sizes_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    rng = np.random.default_rng(seed)
    first, second = neighbours(relation, X, 10.0 ** rng.uniform(-9, 9, X.shape[0]), weight, row, at)
    unit = np.append(np.inf, 10.0 ** rng.uniform(-3, 3, X.shape[1] - 1))
    claimed = mechanisms.one_hot_counts(relation, 1)
    for count in (histograms.signed_target_counts, lambda data: histograms.relative_counts(data, np.zeros(9), unit)):
        move = count(first) - count(second)
        assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
        assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-12)


def test_the_share_grows_only_where_that_rescues_scales_per_column():
    """Plenty of rows take the usual share, fewer take more, too few keep the usual one, and columns share a scale."""
    budget = Budget(1.0, 1e-6)
    found = [share_out(Public(rows, 10), budget, None, True, False) for rows in (10_000, 1_000, 100, 20)]
    spent = [sum(each.columns.values()) for each in found]
    assert [each.method for each in found] == ["columns", "columns", "soft", "common"]
    assert spent[0] == pytest.approx(DEFAULT_SHARE) == pytest.approx(spent[3])
    assert DEFAULT_SHARE < spent[1] <= MOST_SOFT
    assert spent[2] == pytest.approx(MOST_SOFT / (1.0 - SOFT_MEAN))
    asked = share_out(Public(1_000, 10), budget, 0.1, True, False)
    assert (asked.method, sum(asked.columns.values())) == ("soft", pytest.approx(0.1))


@pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
@pytest.mark.parametrize("share", [None, 0.1])
def test_columns_of_uneven_scales_are_rescued(monkeypatch, share):
    """One common scale drowns the small column, which alone tells the label: the planted fault."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 10)) * np.append(1.0, np.full(9, 1e3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(1_000) > 0.0).astype(int)

    def score():
        solver = GradientDescent(scale_share=share)
        models = [LogisticRegression(solver=solver, classes=[0, 1], random_state=seed) for seed in range(3)]
        return np.mean([model.fit(X, y).score(X, y) for model in models])

    assert score() > 0.7
    if share is not None:
        one_size = templates.Fitted(np.zeros(10), np.full(10, 1e3), np.ones(10))
        monkeypatch.setattr(templates, "fitted", lambda shares, noise: one_size)
        assert score() < 0.6


@pytest.mark.parametrize("declared", [False, True])
def test_rows_that_stand_out_keep_their_place_in_indicators(declared):
    """8,000 rows, 6 % zeros: far above the noise, and at most 1 % of the rows may be changed."""
    rng = np.random.default_rng(0)
    X = (rng.random((8_000, 3)) < 0.94).astype(float)
    bounds = {"low": np.zeros(3), "high": np.ones(3)} if declared else {}
    for seed in range(20):
        _, scaling = learned(X, seed=seed, **bounds)
        changed = ((scaling.low > X) | (scaling.high < X)).mean(axis=0)
        assert changed.max() <= 0.01
        if declared:
            assert (scaling.low == 0.0).all()
            assert (scaling.high == 1.0).all()


def test_columns_declared_as_zero_to_one_cost_no_histogram():
    public = Public(5_000, 3, low=np.zeros(3), high=np.ones(3))
    plan = plan_scaling(public, Budget(1.0, 1e-8), None, True, False)
    assert plan.method == "moments"
    assert plan.histogram is None


def test_loose_bounds_are_no_worse_than_none_where_rows_are_few():
    """Bounds that are a thousand times too wide: one factor is learned, as one radius would be without them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 100))
    plan, scaling = learned(X, epsilon=1.0, low=np.full(100, -1_000.0), high=np.full(100, 1_000.0))
    assert plan.method == "factor"
    assert scaling.scale.max() < 4.0
    plan, scaling = learned(X, epsilon=1.0, low=np.full(100, -1.0), high=np.full(100, 1.0))
    np.testing.assert_allclose(scaling.scale, 1.0)  # tight bounds stay


@pytest.mark.parametrize("kind", ["labels", "target"])
def test_a_huge_budget_cuts_nothing(kind):
    """Heavy tails in all columns and in the target, at epsilon 1e6: every row stands out."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(1.5, (500, 3)), 30.0 + rng.standard_t(1.5, 500)
    _, scaling = learned(X, y if kind == "target" else None, epsilon=1e6)
    assert (scaling.low <= X.min(axis=0)).all()
    assert (scaling.high >= X.max(axis=0)).all()
    assert scaling.target_low <= y.min()
    assert scaling.target_high >= y.max()


def test_margins_follow_the_noise():
    margins = [
        learn.Noise(mechanisms.Gaussian(deviation), mechanisms.counted_rows(), 129).margin(1_000)
        for deviation in (80.0, 10.0, 1.0, 0.01)
    ]
    assert margins[0] == learn.MARGIN
    assert sorted(margins) == margins
    assert margins[-1] == learn.MOST_MARGIN


def test_levels_of_sums_are_exceeded_as_seldom_as_they_say():
    """A million draws: the binomial error at rate 1e-3 is 3 %, and the test allows 15 %."""
    rng = np.random.default_rng(0)
    for mechanism, draws, least in (
        (mechanisms.Gaussian(2.0), rng.normal(0.0, 2.0, (1_000_000, 4)), 0.85),
        (mechanisms.Laplace(2.0), rng.laplace(0.0, 2.0, (1_000_000, 4)), 0.01),  # a bound, not the quantile
    ):
        level = mechanism.level(mechanisms.counted_rows(), 1e-3, 4)
        assert least * 1e-3 <= (draws.sum(axis=1) > level).mean() <= 1.15e-3


def test_scales_of_target_and_columns_fit_into_their_shares():
    for rows in (100, 1_000, 30_000):
        budget = Budget(1.0, 1e-6)
        plan = plan_scaling(Public(rows, 5), budget, None, True, True)
        found = share_out(Public(rows, 5), budget, None, True, True)
        whole = sum(found.columns.values()) + sum(found.target.values())
        assert whole <= MOST_SHARE + (1.0 - MOST_SHARE) * MOST_SHARE
        spent = accounting.epsilon_of(plan.event, budget.delta, Public(rows, 5).relation)
        allowed = accounting.epsilon_of(
            mechanisms.additive(budget, whole).event, budget.delta, Public(rows, 5).relation
        )
        assert spent == pytest.approx(allowed, rel=1e-3)
