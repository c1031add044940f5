"""Private directions as laws: the sensitivity of sums by cell, the noise, the budget, and an audit.

Statistical tests run with fixed seeds at level 1e-4 (the audit at 1e-6) and have two arms. Were the seeds redrawn, one
run of this file in 1,000 would raise a false alarm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from discreet import Relation
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data, limits_between
from discreet.fairness.fairer.directions import Cells, count_weight, exact_sums, learn_cells, plan_cells
from discreet.privacy import accounting, mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from tests.neighbours import BUDGETS, CASE, N, P, neighbours
from tests.statistics import both_arms

CELLS = 3
LIMITS = limits_between(np.array([-2.0, 0.5, 0.0]), np.array([1.0, 1e6, 1e-3]), False)
NUMBERS = st.integers(-1, CELLS - 1)


def statistic(data, cell, weight, limits=LIMITS, cells=CELLS):
    sums, counts = exact_sums(data, cell, cells, limits, rounded=True)
    return np.column_stack([sums, weight * counts])


@settings(max_examples=150, deadline=None)
@given(**CASE, cell=arrays(np.int64, N, elements=NUMBERS), other=NUMBERS, weight_of_counts=st.sampled_from([0.5, 1, 4]))
def test_sums_by_cell_move_by_at_most_their_sensitivity(
    relation, X, weight, row, at, seed, cell, other, weight_of_counts
):
    """The changed row may change its group and its label as well as its entries and its weight."""
    tables = neighbours(relation, X, np.zeros(N), weight, row, at)
    moved = cell.copy()
    moved[at] = other if relation is Relation.REPLACE else cell[at]
    second = np.delete(moved, at) if relation is Relation.ADD_REMOVE else moved
    move = statistic(tables[0], cell, weight_of_counts) - statistic(tables[1], second, weight_of_counts)
    claimed = mechanisms.grouped_sums(relation, P, weight_of_counts)
    assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(move).sum() <= claimed.l1 * (1 + 1e-9)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("weight", [1.0, 8.0])
def test_the_bounds_are_attained_and_cannot_be_lowered(relation, weight):
    """A row at one corner of the box becomes the opposite corner, or goes to another cell, or vanishes."""
    limits = limits_between(-np.ones(P), np.ones(P), False)
    one, minus = Data(np.ones((1, P)), np.zeros(1)), Data(-np.ones((1, P)), np.zeros(1))
    nothing = Data(np.ones((1, P)), np.zeros(1), np.zeros(1))
    changes = {
        "within a cell": (minus, np.array([0])),
        "to another cell": (minus, np.array([1])),
        "to no cell": (minus, np.array([-1])),
        "null": (nothing, np.array([0])),
    }
    allowed = changes if relation is Relation.REPLACE else {"null": changes["null"]}
    start = statistic(one, np.array([0]), weight, limits)
    moves = [start - statistic(data, cell, weight, limits) for data, cell in allowed.values()]
    claimed = mechanisms.grouped_sums(relation, P, weight)
    assert max(map(np.linalg.norm, moves)) == pytest.approx(claimed.l2)
    assert max(np.abs(move).sum() for move in moves) == pytest.approx(claimed.l1)


@pytest.mark.parametrize("relation", list(Relation))
def test_counts_have_a_weight_that_is_a_power_of_two_and_free_under_replacement(relation):
    for columns in (1, 2, 3, 64, 71, 1000):
        weight = count_weight(relation, columns, pure=False)
        assert weight >= 1.0
        assert np.log2(weight) % 1.0 == 0.0
        if relation is Relation.REPLACE:
            alone = mechanisms.bounded_values(relation, columns)
            assert mechanisms.grouped_sums(relation, columns, weight).l2 == alone.l2


COLUMNS = 3_000


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-9), Budget.pure(1.0)], ids=str)
def test_every_sum_and_count_carries_the_planned_noise(budget, relation):
    public = Public(10**6, COLUMNS, relation, low=np.full(COLUMNS, -2.0), high=np.full(COLUMNS, 2.0))
    plan = plan_cells(public, budget, Cells(("a", "b")))
    data = Data(np.zeros((50, COLUMNS)), np.zeros(50))
    weight = count_weight(relation, COLUMNS, budget.kind == "pure")
    sensitivity = mechanisms.grouped_sums(relation, COLUMNS, weight)
    kind = stats.laplace if budget.kind == "pure" else stats.norm
    law = kind(scale=plan.mechanism.scale(sensitivity))
    rng = seeded_generator(1)
    known = learn_cells(plan, data, np.arange(50) % 2, rng)
    both_arms(known.sums, law)
    few = replace(plan, public=replace(public, columns=1, low=np.array([-2.0]), high=np.array([2.0])))
    one = mechanisms.grouped_sums(relation, 1, 1.0)
    rows = Data(np.zeros((50, 1)), np.zeros(50))
    counts = [learn_cells(few, rows, np.arange(50) % 2, rng).counts - 25.0 for _ in range(1_500)]
    both_arms(np.array(counts), kind(scale=plan.mechanism.scale(one)))
    assert known.sum_deviation == pytest.approx(law.std())
    assert known.count_deviation == pytest.approx(law.std() / weight)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_plan_spends_its_budget_and_no_more(budget, relation):
    event = plan_cells(Public(1000, 2, relation), budget, Cells(("a", "b"))).event
    assert accounting.fits(event, budget, relation)
    assert not accounting.fits(accounting.compose([event, event]), budget, relation)


@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.5, True)])
@pytest.mark.slow
def test_a_change_of_group_survives_an_audit_and_half_the_noise_does_not(noise, broken):
    """The attacker knows all other rows and looks along the move of the two cells."""
    delta = 0.1
    public = Public(3, 1, low=-np.ones(1), high=np.ones(1))
    plan = plan_cells(public, Budget(1.0, delta), Cells(("a", "b")))
    mechanism = replace(plan.mechanism, multiplier=noise * plan.mechanism.multiplier)
    plan = replace(plan, mechanisms={"mechanism": mechanism})
    rng, outputs = seeded_generator(2), []
    data = Data(np.array([[0.0], [0.0], [1.0]]), np.zeros(3))
    for group in (0, 1):
        cell = np.array([0, 1, group])
        draws = [learn_cells(plan, data, cell, rng) for _ in range(4_000)]
        outputs.append(np.array([known.sums[1, 0] - known.sums[0, 0] + np.diff(known.counts)[0] for known in draws]))
    assert (epsilon_lower_bound(*outputs, delta) > 1.0) == broken
