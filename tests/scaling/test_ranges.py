"""Ranges from noisy counts: declared ones are cut to the bulk, far columns located, lost ones lent a radius.

Where a law is tested by samples, seeds are fixed; the audit runs at level 1e-6.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data, limits_between, moment_sums
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.scaling import histograms, learn
from discreet.scaling.learn import learn_scaling
from discreet.scaling.plan import plan_scaling
from tests.audit_tools import DELTA, EPSILON
from tests.neighbours import CASE, P, neighbours

ROWS = 40_000
BUDGET = Budget(1.0, 1e-9)


def scaling_of(X, y=None, budget=BUDGET, centred=True, without=(), seed=1, **public):
    """The frame that is learned; `without` names releases that are left out, as a planted fault."""
    facts = Public(X.shape[0], X.shape[1], **public)
    scaling_plan = plan_scaling(facts, budget, None, centred, y is not None)
    target_plan = scaling_plan.target_plan
    if target_plan is not None:
        left_out = dict.fromkeys(set(without) & {"location", "closer"})
        target_plan = replace(target_plan, mechanisms={**target_plan.mechanisms, **left_out})
    scaling_plan = replace(scaling_plan, **dict.fromkeys(without), target_plan=target_plan)
    data = Data(X, np.zeros(X.shape[0]) if y is None else y)
    return scaling_plan, learn_scaling(scaling_plan, data, facts, seeded_generator(seed))


def bulk_with_extremes(rng):
    X = rng.standard_normal((ROWS, 2))
    X[:20] *= 300.0  # too few to be seen
    return X


def test_loose_bounds_are_cut_to_the_bulk_and_never_widened():
    X = bulk_with_extremes(np.random.default_rng(0))
    low, high = np.array([-1_000.0, -1.5]), np.array([2_000.0, 1_000.0])
    scaling_plan, scaling = scaling_of(X, low=low, high=high)
    assert scaling_plan.method == "narrowed"
    assert (scaling.low >= low).all()
    assert (scaling.high <= high).all()
    assert 4.0 <= scaling.high[0] <= 8.0 * 10.0
    assert scaling.low[1] == -1.5
    np.testing.assert_allclose(scaling.scale, [1.0, 0.9], rtol=0.3)
    _, plain = scaling_of(X, low=low, high=high, without=("histogram", "location", "closer"))
    assert plain.scale[0] > 10.0 * scaling.scale[0]  # which is why


def test_bounds_with_nothing_seen_inside_stay_as_they_are():
    X = np.zeros((ROWS, 2))
    X[:, 1] = np.random.default_rng(0).uniform(5.0, 6.0, ROWS)
    X[:30, 0] = 1.0  # an indicator that is too rare to be seen
    _, scaling = scaling_of(X, low=np.array([0.0, 5.0]), high=np.array([1.0, 9.0]))
    assert (scaling.low[0], scaling.high[0]) == (0.0, 1.0)
    assert not scaling.frozen.any()
    assert 0.15 < scaling.scale[1] < 0.6  # distances count from 5, the end nearest to zero


FAR_COLUMNS = np.array([2_015.0, -122.0, 1e6, 0.0, 310.0])
FAR_SPREADS = np.array([4.0, 2.0, 50.0, 1.0, 10.0])


def far_table(rng):
    return FAR_COLUMNS + FAR_SPREADS * rng.standard_normal((ROWS, FAR_COLUMNS.size))


def test_columns_far_from_zero_get_their_own_scale():
    X = far_table(np.random.default_rng(0))
    y = 1e5 + 30.0 * np.random.default_rng(1).standard_normal(ROWS)
    _, scaling = scaling_of(X, y)
    assert (scaling.low <= FAR_COLUMNS - 2.0 * FAR_SPREADS).all()
    assert (scaling.high >= FAR_COLUMNS + 2.0 * FAR_SPREADS).all()
    gentle = FAR_COLUMNS != 1e6  # its spread is 1/20,000 of its size: one closer look is not enough for all of that
    assert (scaling.scale / FAR_SPREADS)[gentle].max() < 2.5
    assert (scaling.scale / FAR_SPREADS)[gentle].min() > 0.5
    _, hasty = scaling_of(X, y, without=("location", "closer"))
    better = hasty.scale / scaling.scale
    assert better[[0, 1, 2]].min() > 4.0
    assert hasty.target_scale / scaling.target_scale > 4.0


def test_a_closer_look_is_not_planned_where_columns_are_not_centred():
    X = far_table(np.random.default_rng(0))
    for sparse, centred in ((True, True), (False, False)):
        scaling_plan = plan_scaling(Public(*X.shape, sparse=sparse), BUDGET, None, centred, False)
        assert scaling_plan.location is None
        assert scaling_plan.closer is None


@pytest.mark.parametrize("bounds", [(0.0, 1e22), (1e30, 2e30), (-1e60, 1e60)])
def test_numbers_beyond_all_bins_leave_declared_bounds_alone(bounds):
    X = np.random.default_rng(0).uniform(*bounds, (ROWS, 1))
    _, scaling = scaling_of(X, low=np.full(1, bounds[0]), high=np.full(1, bounds[1]))
    assert (scaling.low[0], scaling.high[0]) == bounds
    assert scaling.scale[0] == pytest.approx(X.std(), rel=0.5)


@pytest.mark.parametrize("value", [5e-324, 1e-200, 0.0])
def test_infinite_budgets_leave_declared_bounds_alone(value):
    X = np.zeros((50, 1))
    X[0] = value
    _, scaling = scaling_of(X, budget=Budget(np.inf, 0.5), low=np.zeros(1), high=np.ones(1))
    assert (scaling.low[0], scaling.high[0]) == (0.0, 1.0)
    assert scaling.scale[0] > 0.0


def test_one_histogram_for_all_columns_pays_for_no_closer_look():
    scaling_plan = plan_scaling(Public(100, 50), BUDGET, None, True, False)
    assert scaling_plan.method == "common"
    assert scaling_plan.location is None
    assert mechanisms.additive(BUDGET, 0.1).multiplier == pytest.approx(scaling_plan.histogram.multiplier)


def test_a_constant_column_is_zero_in_the_frame():
    """Also where a solver does not leave frozen columns out."""
    X = np.full((100, 1), 5.0)
    _, scaling = scaling_of(X, low=np.full(1, 5.0), high=np.full(1, 5.0))
    assert scaling.frozen.all()
    assert scaling.shift[0] == 5.0


def test_rare_indicators_are_lent_the_radius_of_the_others():
    rng = np.random.default_rng(0)
    X = (rng.random((ROWS, 6)) < np.array([0.5, 0.4, 0.3, 1e-3, 1e-4, 0.0])).astype(float)
    X = np.column_stack([X, 1e6 * rng.standard_normal(ROWS)])
    _, scaling = scaling_of(X)
    assert len(set(scaling.high[:4])) == 1
    assert scaling.high[0] >= 2.0
    assert set(scaling.high[4:6]) <= {
        scaling.high[0],
        scaling.high[6],
    }  # a column that is all but empty may take either
    assert not scaling.frozen.any()


def test_lent_radii_are_those_of_the_fullest_bins():
    counts = np.zeros((4, histograms.BINS))
    ones, tens = -histograms.LOWEST_EXPONENT, 3 - histograms.LOWEST_EXPONENT
    counts[2, [ones, tens]] = 1.0, 2.0
    counts[3, [ones, tens]] = 2.0, 1.0
    assert histograms.fill_missing_radii([2.0, 16.0, 0.0, 0.0], counts) == [2.0, 16.0, 16.0, 2.0]
    assert histograms.fill_missing_radii([0.0, 0.0, 0.0, 0.0], counts) == [0.0] * 4


def test_exact_extents_for_infinite_budgets():
    X = far_table(np.random.default_rng(0))
    _, scaling = scaling_of(X, budget=Budget(np.inf, 0.5), low=np.full(5, -2e6), high=np.full(5, 2e6))
    np.testing.assert_allclose(scaling.scale, X.std(axis=0), rtol=1e-6)
    assert (scaling.high >= X.max(axis=0)).all()


@settings(max_examples=100)
@given(**CASE)
def test_locations_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    """Whatever the ranges are; the second look is covered by the law of exponent histograms with any origin."""
    rng = np.random.default_rng(seed)
    first, second = neighbours(relation, X, rng.standard_normal(X.shape[0]), weight, row, at)
    low = rng.uniform(-5.0, 5.0, P)
    limits = limits_between(low, low + rng.uniform(0.0, 5.0, P))
    far = [0, 2]
    sums = [moment_sums(data, limits, slice(0, P))[0, far] for data in (first, second)]
    claimed = mechanisms.bounded_values(relation, len(far))
    assert np.linalg.norm(sums[0] - sums[1]) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(sums[0] - sums[1]).sum() <= claimed.l1 * (1 + 1e-9)


def test_which_columns_lie_far_is_read_from_noisy_counts():
    """Without noise every column of a table of ones would be far; with it some are not."""
    data = Data(np.ones((100, 200)), np.zeros(100))
    seen = []
    for seed in (0, 1):
        found = learn.Ranges.declared(np.full(200, -np.inf), np.full(200, np.inf))
        counter = learn.Counter(data, Public(100, 200), seeded_generator(seed))
        seen.append(learn.cut_around_origin(found, list(range(200)), mechanisms.Gaussian(0.6), counter))
    assert seen[0] != seen[1]
    assert 0 < len(seen[0]) < 200


@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.5, True)])
def test_the_audit_of_locations(noise, broken):
    """One row at either end of its range: the noisy mean is as telling as the guarantee allows, and no more."""
    budget = Budget(EPSILON, DELTA)
    mechanism = mechanisms.additive(budget, 1.0)
    mechanism = replace(mechanism, multiplier=noise * mechanism.multiplier)
    stream, public = seeded_generator(3), Public(10_000_000, 1)

    def draws(value):
        wide = learn.Ranges.declared(np.array([-1e3]), np.array([1e3]))
        data = Data(np.full((1, 1), value), np.zeros(1))
        counter = learn.Counter(data, public, stream)
        return np.array([counter.means(wide, [0], mechanism)[0] for _ in range(10_000)])

    bound = epsilon_lower_bound(draws(1e3), draws(-1e3), budget.delta)
    assert (bound > budget.epsilon) == broken


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [BUDGET, Budget.pure(1.0)], ids=str)
def test_scales_cost_their_share_and_no_more(relation, budget):
    from discreet.privacy import accounting

    for share in (0.1, 0.5):
        scaling_plan = plan_scaling(Public(ROWS, 3, relation), budget, share, True, True)
        assert None not in scaling_plan.parts.values()
        whole = mechanisms.additive(budget, share)
        spent = accounting.epsilon_of(scaling_plan.event, budget.delta, relation)
        assert spent == pytest.approx(accounting.epsilon_of(whole.event, budget.delta, relation), rel=1e-3)
