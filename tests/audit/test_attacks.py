"""Attacks: one run with canaries, membership inference, reconstruction; each finds models without privacy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import LogisticRegression
from discreet.audit import membership_attack, one_run_audit, one_run_lower_bound
from discreet.audit.command_runs import membership_scenario, reconstruction_scenario
from discreet.audit.faults import weaker_plan
from discreet.audit.one_run import one_run_p_value, with_canaries
from discreet.audit.reconstruction import allowed_rate, distant_records
from discreet.audit.targets import Target, target_of
from discreet.data.public import Public
from discreet.data.rows import Data
from discreet.privacy.budget import Budget
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import GradientDescent

GD = GradientDescent(steps=4, clip=0.25, step=1e-3, average=False, scale_share=0.0)
PROBLEM = Problem(Logistic(), fit_intercept=False)


# --- one run -------------------------------------------------------------------------------------------------


def with_less_noise(relation, factor, canaries=500):
    """A plan for epsilon 1 whose noise is multiplied by a factor, with the promise of the whole noise."""
    public = Public.of(canaries, canaries, relation=relation, bounds=(-1.0, 1.0), public_n=canaries)
    plan = GD.plan(PROBLEM, public, Budget(1.0, 1e-6))
    run = target_of(weaker_plan(plan, factor)).run
    return Target(run, relation, "gd", lambda data: plan.guarantee)


@pytest.mark.parametrize("relation", list(Relation))
def test_one_run_accepts_the_noise_and_finds_a_tenth_of_it(relation):
    """A false alarm has probability 0.05; the seed makes the test repeat."""
    right = one_run_audit(with_less_noise(relation, 1.0), 500, rng=seeded_generator(1))
    assert right.passed
    assert right.epsilon <= 1.0
    wrong = one_run_audit(with_less_noise(relation, 0.1), 500, rng=seeded_generator(1))
    assert not wrong.passed
    assert wrong.epsilon > 2.0
    assert "guesses about 500 canaries were right" in str(wrong)


def test_the_p_value_is_right_for_randomised_response():
    """The mechanism that attains the theorem: at delta = 0 and without abstention the law of the p-value is exact."""
    epsilon, canaries, rng = 1.5, 300, np.random.default_rng(0)
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    right = rng.binomial(canaries, chance, 4_000)
    p_values = np.array([one_run_p_value(int(v), canaries, canaries, epsilon, 0.0) for v in np.unique(right)])
    counts = np.unique(right, return_counts=True)[1]
    for level in (0.01, 0.05, 0.2):
        share = counts[p_values <= level].sum() / 4_000
        assert share <= level + 4.0 * math.sqrt(level / 4_000)
        assert share >= 0.5 * level


def test_one_run_bounds_grow_with_right_guesses_and_shrink_with_delta():
    bounds = [one_run_lower_bound(right, 100, 100, 1e-6) for right in (50, 60, 80, 100)]
    assert bounds[0] == 0.0
    assert bounds == sorted(bounds)
    assert one_run_lower_bound(95, 100, 1000, 1e-2) < one_run_lower_bound(95, 100, 1000, 0.0)
    with pytest.raises(ValueError, match="right <= guesses"):
        one_run_p_value(5, 4, 10, 1.0, 0.0)


def test_canaries_are_neighbours_one_by_one():
    coins = np.array([True, False, True])
    others = Data(np.zeros((2, 3)), np.ones(2))
    assert with_canaries(coins, Relation.REPLACE, others).X[1, 1] == -1.0
    assert with_canaries(coins, Relation.ZERO_OUT, others).weight.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert with_canaries(coins, Relation.ADD_REMOVE, others).rows == 4


# --- membership ----------------------------------------------------------------------------------------------


def test_membership_is_found_without_privacy_and_stays_under_the_curve_with_it():
    """Slack for chance at level 1e-3; the seed makes the test repeat."""
    curves = membership_scenario([math.inf, 1.0], rows=30, columns=60, models=8, rng=seeded_generator(2))
    open_model, private = curves["no privacy"], curves["epsilon 1"]
    assert open_model.area > 0.9
    assert private.area < 0.65
    assert private.excess() <= 0.0
    # The curve of the open model would break the promise of the private one.
    caught = type(open_model)(
        open_model.false_positives, open_model.true_positives, open_model.decisions, private.guarantee
    )
    assert caught.excess() > 0.0


def test_membership_needs_a_relation_that_exchanges_rows():
    model = LogisticRegression(relation="zero_out", bounds=(-1.0, 1.0), classes=[-1, 1])
    with pytest.raises(ValueError, match="exchanges rows"):
        membership_attack(model, Data(np.zeros((4, 1)), np.ones(4)), 1)


# --- reconstruction ------------------------------------------------------------------------------------------


def test_a_record_is_reconstructed_without_privacy_and_hidden_with_it():
    results = reconstruction_scenario([math.inf, 1.0, 8.0], rows=20, attributes=8, trials=120, rng=seeded_generator(3))
    assert results[math.inf].rate == 1.0
    assert results[1.0].rate < 0.25
    assert all(result.passed for result in results.values())
    leaky = type(results[1.0])(120, 120, 16, results[1.0].guarantee)
    assert not leaky.passed


def test_the_allowed_rate_is_that_of_the_best_guess():
    """Between guessing and certainty, and at most e^epsilon times guessing for pure DP."""
    plan = GradientDescent(scale_share=0.0).plan(PROBLEM, Public.of(50, 2, bounds=(-1.0, 1.0)), Budget.pure(1.0))
    for candidates in (2, 10, 100):
        rate = allowed_rate(plan.guarantee, candidates)
        assert 1.0 / candidates <= rate <= math.e / candidates * (1 + 1e-6)


def test_distant_records_differ_in_half_of_the_attributes():
    records = distant_records(8)
    different = (records[:, None, :] != records[None, :, :]).sum(axis=2)
    assert set(different[~np.eye(16, dtype=bool)]) == {4, 8}
