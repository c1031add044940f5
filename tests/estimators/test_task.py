"""Deciding the task: the count moves by at most one, the noise is as stated, and the whole budget covers it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.estimators.task import (
    MOSTLY_BINARY,
    SHARE,
    TaskQuestion,
    binary_labels,
    code_counts,
    covers_either,
    plan_beside,
    plan_question,
)
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian, one_hot_counts
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation

VALUES = st.sampled_from([0.0, 1.0, -0.0, 0.5, 7.0, -1e308, 1e308])
BUDGETS = [
    Budget(1.0, 1e-6),
    Budget(0.1, 1e-9),
    Budget(20.0, 1e-3),
    Budget.pure(0.7),
    Budget.zcdp(0.1),
    Budget.gdp(2.0),
]


@given(st.lists(VALUES, min_size=1, max_size=30), VALUES, st.data())
@settings(deadline=None)
def test_one_row_moves_the_count_by_at_most_the_claimed_sensitivity(values, other, data):
    at = data.draw(st.integers(0, len(values) - 1))
    replaced = [*values[:at], other, *values[at + 1 :]]
    removed = [*values[:at], *values[at + 1 :]]
    counts = code_counts(np.array(values))
    assert counts.sum() == len(values)
    for neighbour, relation in ((replaced, Relation.REPLACE), (removed, Relation.ADD_REMOVE)):
        move, claimed = counts - code_counts(np.array(neighbour)), one_hot_counts(relation, 1)
        assert np.linalg.norm(move) <= claimed.l2 * (1 + 1e-12)
        assert np.abs(move).sum() <= claimed.l1


ROWS = 50_000  # so many that rows other than 0 and 1 are seen long before these fall below the threshold


def acceptance(planned, asked, deviations, runs=3_000):
    """How often `asked` says "classification" if so many planned deviations fewer rows than allowed are not 0 or 1.

    Returns the rate, and the distance in planned deviations (of a sum of two counts) after rounding to whole rows.
    """
    deviation = math.sqrt(2.0) * planned.mechanism.deviation(planned.sensitivity)
    others = round(planned.most_others - deviations * deviation)
    counts = np.array([planned.rows - others, others, 0.0])
    rng = seeded_generator(5)
    said = sum(asked.decide(counts, rng) == "classification" for _ in range(runs))
    return said / runs, (planned.most_others - others) / deviation


@pytest.mark.parametrize(("noise", "agrees"), [(1.0, True), (0.5, False)])
@pytest.mark.parametrize("deviations", [-1.0, 1.0])
def test_the_noise_in_the_answer_is_the_noise_that_was_paid_for(noise, agrees, deviations):
    """Both arms: the stated noise is accepted, half of it is not. A false alarm has a chance of 6e-7 (5 sigma)."""
    planned = plan_question(Budget(1.0, 1e-6), ROWS, Relation.REPLACE)
    asked = TaskQuestion(Gaussian(planned.mechanism.multiplier * noise), planned.rows, planned.relation)
    rate, distance = acceptance(planned, asked, deviations)
    expected = 0.5 * math.erfc(-distance / math.sqrt(2.0))
    assert (abs(rate - expected) < 5.0 * math.sqrt(expected * (1.0 - expected) / 3_000)) == agrees


def test_laplace_noise_decides_under_a_pure_budget():
    """Two Laplace numbers of scale 1: P(sum > x) = exp(-x) (2 + x) / 4, and x is 2 for one deviation; 5 sigma."""
    question = plan_question(Budget.pure(2.0), ROWS, Relation.REPLACE)
    rate, distance = acceptance(question, question, 1.0)
    x = 2.0 * distance
    expected = 1.0 - math.exp(-x) * (2.0 + x) / 4.0
    assert abs(rate - expected) < 5.0 * math.sqrt(expected * (1.0 - expected) / 3_000)


@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget.pure(3.0)], ids=str)
def test_clear_tables_are_recognised(budget):
    """Other codes are 2,500 rows: more than 15 deviations above the noise. False alarms below 1e-4 in all."""
    question = plan_question(budget, ROWS, Relation.REPLACE)
    rng, draw = seeded_generator(1), np.random.default_rng(2)
    tables = {
        "classification": [draw.integers(0, 2, ROWS)],
        "regression": [draw.normal(size=ROWS), draw.integers(15, 90, ROWS)],
        "codes": [
            draw.integers(1, 3, ROWS),
            draw.integers(0, 3, ROWS),
            draw.choice([0, 1, 9], ROWS, p=[0.5, 0.45, 0.05]),
            draw.choice([0, 1, -9], ROWS, p=[0.5, 0.45, 0.05]),
            draw.choice([1, 2, 3, 99], ROWS),
        ],
    }
    for expected, targets in tables.items():
        for target in targets:
            said = [question.ask(target.astype(float), rng) for _ in range(50)]
            assert set(said) == {expected}


def test_without_noise_every_other_code_is_asked_about():
    question = plan_question(Budget(math.inf, 1e-6), 100, Relation.REPLACE)
    assert question.threshold == MOSTLY_BINARY
    rng = seeded_generator(1)
    assert question.ask(np.repeat([0.0, 1.0], [60, 40]), rng) == "classification"
    assert question.ask(np.repeat([0.0, 9.0], [99, 1]), rng) == "codes"
    assert question.ask(np.repeat([1.0, 2.0], [50, 50]), rng) == "codes"
    assert question.ask(np.repeat([0.0, 2.5], [50, 50]), rng) == "regression"


def test_no_other_value_counts_as_1():
    assert binary_labels(np.array([0.0, 1.0, 9.0, 2.0, -1.0, 0.7, 1e308])).tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_the_threshold_falls_with_the_noise_and_doubt_is_announced():
    questions = [plan_question(Budget(1.0, 1e-6), rows, Relation.ADD_REMOVE) for rows in (10, 300, 1_000, 100_000)]
    thresholds = [question.threshold for question in questions]
    assert thresholds == sorted(thresholds)
    assert (thresholds[0], thresholds[-1]) == (0.5, MOSTLY_BINARY)
    assert [question.reliable for question in questions] == [False, True, True, True]


@pytest.mark.parametrize("solver", ["cd", "gd", "sgd"])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_question_and_model_fit_the_budget_and_use_it(budget, relation, solver):
    if solver == "sgd" and budget.kind == "pure":
        solver = "cd"  # it has no pure form
    model = discreet.Ridge(relation=relation, public_n=5_000, solver=solver)
    question = plan_question(budget, 5_000, relation)
    plan = plan_beside(question, budget, relation, lambda rest: model.set_params(epsilon=rest).plan(5_000, 4))
    together = accounting.compose([question.event, plan.event])
    assert accounting.fits(together, budget, relation)
    # Nothing is given away: without the question's share the budget would be exceeded by the same plan.
    bigger = accounting.compose([together, question.event, question.event])
    assert not accounting.fits(bigger, budget, relation)


GAUSSIANS = [accounting.gaussian_event(9.0, 4), accounting.gaussian_event(8.0, 3)]
SAMPLES = [accounting.poisson_event(0.01, 1.0, 40), accounting.poisson_event(0.5, 30.0, 40)]
SELECTIONS = [accounting.selection_event(0.1, 40), accounting.selection_event(0.6)]


def test_the_answer_may_pick_a_plan_only_if_the_plans_are_ordered():
    approximate = Budget(1.0, 1e-6)
    assert covers_either(GAUSSIANS, approximate)
    assert covers_either(SAMPLES[:1] * 2, approximate)
    assert covers_either([*GAUSSIANS, *SAMPLES], Budget(math.inf, 1e-6))
    assert covers_either(SELECTIONS, Budget.pure(1.0))
    assert not covers_either(SAMPLES, approximate)
    assert not covers_either(SELECTIONS, approximate)
    assert not covers_either([GAUSSIANS[0], SAMPLES[0]], approximate)
    # The reason: profiles of such plans cross, so neither plan stands for both.
    few, many = (accounting.tradeoff(event, Relation.REPLACE, 50)[1] for event in SAMPLES)
    assert (few > many).any()
    assert (few < many).any()


@pytest.mark.parametrize("budget", [b for b in BUDGETS if b.kind != "pure"], ids=str)
def test_the_question_costs_its_share(budget):
    mu = accounting.mu_of(plan_question(budget, 100, Relation.REPLACE).event, Relation.REPLACE)
    assert mu**2 == pytest.approx(SHARE * budget.gaussian_mu() ** 2, rel=1e-9)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@settings(deadline=None)
def test_labels_are_total_and_keep_zeros_and_ones(values):
    target = np.array(values)
    labels = binary_labels(target)
    assert set(labels.tolist()) <= {0, 1}
    exact = (target == 0.0) | (target == 1.0)
    np.testing.assert_array_equal(labels[exact], target[exact])
