"""Private preprocessing as laws: sensitivities, plans that see no rows, budgets that are kept, and the laws of noise.

Statistical tests run with fixed seeds at level 1e-4 (audits at 1e-6) and have two arms. Were the seeds redrawn, one
run of this file in 500 would raise a false alarm.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data, Limits, limits_between, moment_sums, on_term_grid
from discreet.preprocessing import PrivateBounds, PrivateQuantiles, PrivateScaler, quantiles
from discreet.preprocessing.means import (
    largest_smoothness,
    learn_means,
    learn_smoothness,
    least_smoothness,
    plan_means,
    plan_smoothness,
)
from discreet.preprocessing.quantiles import POINTS, Runs, learn_quantiles, place_of, plan_quantiles, value_of
from discreet.preprocessing.ranges import learn_moments, learn_ranges, plan_range, plan_scaler
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import QuantileSelection
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.privacy.release import WHOLE
from discreet.problem.losses import Logistic
from discreet.scaling import histograms
from tests.neighbours import BUDGETS, CASE, N, P, neighbours
from tests.statistics import both_arms

LOW, HIGH = np.array([-2.0, 0.5, 0.0]), np.array([1.0, 1e6, 1e-3])
APPROXIMATE = Budget(1.0, 1e-9)


def moved_within(move, claimed):
    assert np.isfinite(move).all()
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


# --- sensitivities -------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(**CASE, sparse=st.booleans())
def test_signed_histograms_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, sparse):
    tables = neighbours(relation, X, np.zeros(N), weight, row, at)
    if sparse:
        import scipy.sparse as sp

        tables = [replace(data, X=sp.csr_array(data.X)) for data in tables]
    first, second = (histograms.signed_exponent_counts(data) for data in tables)
    assert first.sum(axis=1) == pytest.approx(weight.sum())  # every row is in exactly one bin of each column
    moved_within(first - second, mechanisms.one_hot_counts(relation, P))


@settings(max_examples=150)
@given(**CASE)
def test_means_and_mean_squares_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    tables = neighbours(relation, X, np.zeros(N), weight, row, at)
    centred = limits_between(LOW, HIGH, False)
    means = [moment_sums(data, centred, slice(0, P)) for data in tables]
    moved_within(means[0][0] - means[1][0], mechanisms.bounded_values(relation, P))
    moved_within(means[0] - means[1], mechanisms.bounded_moments(relation, P))
    radius = np.maximum(np.abs(LOW), np.abs(HIGH))
    around_zero = Limits(LOW, HIGH, np.zeros(P), radius)
    squares = [moment_sums(data, around_zero, slice(0, P))[1] for data in tables]
    moved_within(squares[0] - squares[1], mechanisms.bounded_fractions(P))


def errors_at(runs, points, quantile):
    """The rank errors that the mechanism uses, at these points."""
    order = np.lexsort((runs.points, runs.first))  # a run without points comes before its neighbour
    run = order[np.searchsorted(runs.first[order], points, side="right") - 1]
    assert ((runs.first[run] <= points) & (points < runs.first[run] + runs.points[run])).all()
    return runs.rank_error(quantile)[run]


def around(places):
    """The points at which ranks can change, and those beside them."""
    return np.unique(np.clip(np.concatenate([[0, POINTS // 3], places - 1, places, places + 1]), 0, POINTS - 1))


@settings(max_examples=150)
@given(**CASE, quantile=st.floats(0.01, 0.99))
def test_rank_errors_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed, quantile):
    tables = neighbours(relation, X, np.zeros(N), weight, row, at)
    places = [place_of(data.X[:, 0], -2.0, 3.0) for data in tables]
    points = around(np.concatenate(places))
    runs = [Runs.around(place, data.weight) for place, data in zip(places, tables, strict=True)]
    first, second = (errors_at(run, points, quantile) for run in runs)
    assert np.abs(first - second).max() <= mechanisms.rank_error(relation, quantile).l1 * (1 + 1e-9) + 1e-12


@settings(max_examples=150)
@given(X=CASE["X"], weight=CASE["weight"], quantile=st.floats(0.01, 0.99))
def test_runs_hold_every_point_once_with_the_rank_error_of_the_definition(X, weight, quantile):
    places, weight = place_of(X[:, 0], -2.0, 3.0), on_term_grid(weight)
    runs = Runs.around(places, weight)
    assert runs.points.sum() == POINTS
    points = around(places)
    below = np.array([weight[places < i].sum() for i in points])
    upto = np.array([weight[places <= i].sum() for i in points])
    wanted = quantile * weight.sum()
    expected = np.maximum(0.0, np.maximum(below - wanted, wanted - upto))
    np.testing.assert_allclose(errors_at(runs, points, quantile), expected, atol=1e-12)


def test_points_meet_the_ends_of_a_range_and_whole_numbers():
    for low, high, values in ((-8.0, 64.0, np.arange(-8.0, 65.0)), (0.0, 1.0, np.array([0.0, 0.25, 1.0]))):
        np.testing.assert_allclose(value_of(place_of(values, low, high), low, high), values, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(value_of(place_of(np.arange(129.0), 0.0, 128.0), 0.0, 128.0), np.arange(129.0))
    assert place_of(np.array([-1e308, 1e308]), -1e100, 1e100).tolist() == [0, POINTS - 1]


def test_the_bounds_are_attained_and_cannot_be_lowered():
    one = Data(np.ones((1, 1)), np.zeros(1))
    minus, nothing = Data(-np.ones((1, 1)), np.zeros(1)), Data(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    limits = limits_between(-np.ones(1), np.ones(1), False)
    sums = [moment_sums(data, limits, slice(0, 1))[0] for data in (one, minus, nothing)]
    assert abs(sums[0] - sums[1]) == mechanisms.bounded_values(Relation.REPLACE, 1).l2
    assert abs(sums[0] - sums[2]) == mechanisms.bounded_values(Relation.ZERO_OUT, 1).l2
    counts = [histograms.signed_exponent_counts(data) for data in (one, minus, nothing)]
    assert np.linalg.norm(counts[0] - counts[1]) == mechanisms.one_hot_counts(Relation.REPLACE, 1).l2
    assert np.linalg.norm(counts[0] - counts[2]) == mechanisms.one_hot_counts(Relation.ZERO_OUT, 1).l2


# --- plans ---------------------------------------------------------------------------------------------------


def spent_and_promised(event, budget, relation):
    if budget.kind == "zcdp":
        return accounting.rho_of(event, relation), budget.rho
    if budget.kind == "gdp":
        return accounting.mu_of(event, relation), budget.mu
    if budget.kind == "pure":
        return accounting.pure_epsilon_of(event, relation), budget.epsilon
    return accounting.epsilon_of(event, budget.delta, relation), budget.epsilon


PLANS = {
    "ranges": lambda public, budget: plan_range(public, budget, WHOLE),
    "scaler": plan_scaler,
    "means": plan_means,
    "smoothness": lambda public, budget: plan_smoothness(public, budget, 0.25, True),
    "quantiles": lambda public, budget: plan_quantiles(public, budget, (0.25, 0.5, 0.75)),
}


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("name", PLANS)
def test_every_plan_spends_its_budget_and_no_more(name, declared, budget, relation):
    bounds = {"low": -np.ones(3), "high": np.ones(3)} if declared else {}
    public = Public(500_000, 3, relation, **bounds)
    if name == "smoothness" and not declared:
        with pytest.raises(ValueError, match="bounds"):
            PLANS[name](public, budget)
        return
    if name == "quantiles" and budget.kind == "gdp":
        with pytest.raises(ValueError, match="Gaussian DP"):
            PLANS[name](public, budget)
        return
    event = PLANS[name](public, budget).event
    spent, promised = spent_and_promised(event, budget, relation)
    assert 0.999 * promised <= spent <= promised
    assert accounting.fits(event, budget, relation)


def test_selections_come_after_the_ranges_in_the_event():
    plan = plan_quantiles(Public(50_000, 2), APPROXIMATE, (0.5,))
    kinds = [type(event).__name__ for event, _ in accounting.flatten(plan.event)]
    assert kinds == ["GaussianDpEvent", "BoundedRangeDpEvent"]


@pytest.mark.parametrize("make", [PrivateScaler, PrivateBounds, PrivateQuantiles])
def test_the_plan_sees_the_size_of_the_table_and_nothing_else(make):
    """Tables as different as can be get the same event, and it is the one that `plan` states without data."""
    from discreet.privacy.accounting import event_to_dict

    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((400, 3)), np.full((400, 3), 1e300), np.zeros((400, 3))]
    fitted = []
    for X in tables:
        with warnings.catch_warnings(action="ignore"):  # zeros have no range, which is said aloud
            fitted.append(make(epsilon=5.0).fit(X))
    planned = event_to_dict(make(epsilon=5.0).plan(400, 3).event)
    assert all(event_to_dict(step.guarantee_.event) == planned for step in fitted)


# --- noise ---------------------------------------------------------------------------------------------------

COLUMNS = 4_000
ZEROS = Data(np.zeros((50, COLUMNS)), np.zeros(50))
WIDE = {"low": np.full(COLUMNS, -2.0), "high": np.full(COLUMNS, 2.0)}


def law(mechanism, sensitivity):
    kind = stats.laplace if isinstance(mechanism, mechanisms.Laplace) else stats.norm
    return kind(scale=mechanism.scale(sensitivity))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [APPROXIMATE, Budget.pure(1.0)], ids=str)
def test_every_sum_carries_the_planned_noise(budget, relation):
    public = Public(10**9, COLUMNS, relation, **WIDE)
    plan = plan_means(public, budget)
    sensitivity = mechanisms.bounded_values(relation, COLUMNS)
    factor = {"replace": 2, "zero_out": 1, "add_remove": 1}[relation]
    assert sensitivity.l2 == pytest.approx(factor * np.sqrt(COLUMNS))
    means = learn_means(plan, ZEROS, seeded_generator(1))
    both_arms(means * public.rows / 2.0, law(plan.mechanism, sensitivity))
    mechanism = plan_scaler(public, budget).moments
    limits = limits_between(public.low, public.high, False)
    found, _ = learn_moments(mechanism, limits, ZEROS, public, seeded_generator(2))
    both_arms(found * public.rows / 2.0, law(mechanism, mechanisms.bounded_moments(relation, COLUMNS)))


@pytest.mark.parametrize("relation", list(Relation))
def test_smoothness_constants_carry_the_planned_noise(relation):
    """Every row in the middle of its range, so that neither the floor nor the ceiling is in the way."""
    half = Data(np.full((100, COLUMNS), np.sqrt(2.0)), np.zeros(100))
    public = Public(100, COLUMNS, relation, **WIDE)
    plan = plan_smoothness(public, APPROXIMATE, 0.25, intercept=False)
    plan = replace(plan, mechanisms={"mechanism": mechanisms.Gaussian(0.05)})
    noise = (learn_smoothness(plan, half, seeded_generator(3)) - 0.5) * public.rows
    both_arms(noise, stats.norm(scale=0.05 * np.sqrt(COLUMNS)))


@pytest.mark.parametrize("budget", [APPROXIMATE, Budget.pure(1.0)], ids=str)
def test_signed_histograms_carry_the_planned_noise_in_every_bin(budget, monkeypatch):
    seen, thresholds = [], []

    def record(counts, threshold):
        seen.append(counts.copy())
        thresholds.append(threshold)
        return 0.0, 1.0

    monkeypatch.setattr(histograms, "range_of", record)
    public = Public(10**9, 40)
    plan = plan_range(public, budget, WHOLE)
    learn_ranges(plan, Data(np.zeros((50, 40)), np.zeros(50)), seeded_generator(4))
    noise = np.array(seen)
    noise[:, histograms.BINS - 1] -= 50.0  # the zeros
    planned = law(plan.mechanism, mechanisms.one_hot_counts(Relation.REPLACE, 40))
    both_arms(noise, planned)
    # The false-positive rate: all empty bins together exceed the threshold once in a million releases.
    assert planned.sf(thresholds[0]) * noise.size == pytest.approx(1e-6)


# --- the law of a selected quantile --------------------------------------------------------------------------


def exact_law(places, points, quantile, strength):
    """The exponential mechanism over few points, from its definition."""
    i = np.arange(points)
    upto, below = (places[None, :] <= i[:, None]).sum(1), (places[None, :] < i[:, None]).sum(1)
    wanted = quantile * places.size
    error = np.maximum(0.0, np.maximum(below - wanted, wanted - upto))
    weight = np.exp(-strength * error)
    return weight / weight.sum()


def chosen_point(selection, rng, runs, quantile, sensitivity):
    run, place = selection.choose(rng, runs.rank_error(quantile), runs.points, sensitivity)
    return int(runs.first[run]) + place


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_cells_are_selected_by_the_exponential_mechanism(relation, quantile, monkeypatch):
    """A chi-square test against the definition; noise of 2/3 of the planned size is rejected."""
    monkeypatch.setattr(quantiles, "POINTS", 16)
    places = np.array([2, 2, 2, 5, 6, 7, 11, 15])
    move = mechanisms.rank_error(relation, quantile)
    stream = seeded_generator(5)
    runs = Runs.around(places, None)
    planned = exact_law(places, 16, quantile, 1.0 / (3.0 * move.l1))
    for multiplier, accepted in ((3.0, True), (2.0, False)):
        selection = QuantileSelection(multiplier, 1)
        draws = [chosen_point(selection, stream, runs, quantile, move) for _ in range(8_000)]
        found = np.bincount(draws, minlength=16)
        assert (stats.chisquare(found, planned * len(draws)).pvalue > 1e-4) == accepted


def test_many_equal_values_are_found():
    """A value has no length on the real line; as a point at which many rows sit, it wins."""
    runs = Runs.around(place_of(np.full(2_000, 5.0), 0.0, 10.0), None)
    selection = QuantileSelection(10.0, 1)
    move = mechanisms.rank_error(Relation.REPLACE, 0.5)
    chosen = {chosen_point(selection, seeded_generator(seed), runs, 0.5, move) for seed in range(20)}
    assert chosen == {int(place_of(np.array([5.0]), 0.0, 10.0)[0])}


# --- audits --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.5, True)])
def test_quantiles_survive_an_audit_and_half_their_noise_does_not(noise, broken):
    """One row jumps over the other, which sits near one end; pure DP, so that the audit needs no delta.

    The short side of the fixed row gains what the long side loses: the loss there is nearly the whole range.
    """
    public = Public(2, 1, low=np.zeros(1), high=np.ones(1))
    plan = plan_quantiles(public, Budget.pure(1.0), (0.5,))
    selection = replace(plan.selection, multiplier=noise * plan.selection.multiplier)
    plan = replace(plan, mechanisms={"ranges": None, "selection": selection})
    stream = seeded_generator(6)
    outputs = []
    for value in (0.0, 1.0):
        data = Data(np.array([[0.05], [value]]), np.zeros(2))
        draws = [learn_quantiles(plan, public.low, public.high, data, stream)[0, 0] for _ in range(12_000)]
        outputs.append(np.array(draws))
    assert (epsilon_lower_bound(*outputs, 0.0) > 1.0) == broken


@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.5, True)])
def test_means_survive_an_audit_and_half_their_noise_does_not(noise, broken):
    delta = 0.1
    public = Public(3, 1, low=-np.full(1, 1e6), high=np.full(1, 1e6))
    plan = plan_means(public, Budget(1.0, delta))
    mechanism = replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier)
    plan = replace(plan, mechanisms={"mechanism": mechanism})
    stream = seeded_generator(7)
    outputs = []
    for value in (-1e308, 1e308):
        data = Data(np.array([[0.0], [0.0], [value]]), np.zeros(3))
        outputs.append(np.array([learn_means(plan, data, stream)[0] for _ in range(6_000)]))
    assert (epsilon_lower_bound(*outputs, delta) > 1.0) == broken


def test_smoothness_plans_have_a_positive_public_floor():
    for rows in (1, 50, 10**6):
        public = Public(rows, 2, low=np.array([0.0, -1e-100]), high=np.array([1e100, 0.0]))
        for budget in (APPROXIMATE, Budget.pure(0.01), Budget.zcdp(10.0)):
            plan = plan_smoothness(public, budget, Logistic().smoothness, intercept=True)
            assert (least_smoothness(plan) > 0.0).all()
            assert (least_smoothness(plan) <= largest_smoothness(public, Logistic().smoothness)).all()
            found = learn_smoothness(plan, Data(np.zeros((9, 2)), np.zeros(9)), seeded_generator(8))
            assert (found[:2] >= least_smoothness(plan)).all()
            assert found[2] == 0.25
