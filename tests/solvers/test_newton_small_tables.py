"""Newton on small tables: counted labels, shrinkage by the known noise, and losses hardly above a constant's."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import LogisticRegression, solve
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.losses import Logistic
from discreet.problem.penalties import L2, Box
from discreet.problem.problem import Problem
from discreet.solvers import Newton
from discreet.solvers.newton.label_counts import LogOdds, _label_counts, expected_share, learn_log_odds
from discreet.solvers.newton.releases import LABELS
from discreet.solvers.newton.shrinkage import NoisyWeights
from tests.neighbours import CASE, scaled_neighbours


def plan_of(rows, epsilon, problem=None, columns=5):
    problem = problem or Problem(Logistic(), L2(1e-3))
    return Newton().plan(problem, Public(rows, columns), Budget(epsilon, 1e-6))


@settings(max_examples=150)
@given(**CASE)
def test_label_counts_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = scaled_neighbours(relation, Logistic(), X, weight, row, at, seed, "C")
    move = first.sum(_label_counts) - second.sum(_label_counts)
    assert np.linalg.norm(move) <= mechanisms.one_hot_counts(relation, 1).l2 * (1.0 + 1e-12)


def test_labels_are_counted_on_small_tables_alone():
    assert plan_of(300, 1.0).mechanism.shares[LABELS] > 0.0
    assert plan_of(100_000, 1.0).mechanism.shares[LABELS] == 0.0
    assert plan_of(300, 1.0, Problem(Logistic(), L2(1e-3), fit_intercept=False)).mechanism.shares[LABELS] == 0.0
    assert plan_of(300, 1.0, Problem(Logistic(), Box(-1.0, 1.0))).mechanism.shares[LABELS] == 0.0


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("rows", "epsilon"), [(50, 0.1), (300, 1.0), (2_000, 0.2), (100_000, 1.0)])
def test_shares_sum_to_one(rows, epsilon, relation):
    plan = Newton().plan(Problem(Logistic(), L2(1e-3)), Public(rows, 5, relation=relation), Budget(epsilon, 1e-6))
    assert sum(plan.mechanism.shares) == pytest.approx(1.0, abs=1e-12)
    assert min(plan.mechanism.shares) >= 0.0


@given(noisy=st.floats(-3.0, 4.0), spread=st.floats(0.01, 10.0))
def test_an_expected_share_is_a_share_between_the_noisy_one_and_a_half(noisy, spread):
    share = expected_share(noisy, spread)
    assert 0.0 < share < 1.0
    assert (share - 0.5) * (noisy - 0.5) >= -1e-12
    assert abs(share - 0.5) <= abs(noisy - 0.5) + 1e-9


def test_log_odds_have_the_deviation_that_is_stated():
    """400 draws; the sample deviation is within 20 % of the stated one but for 1e-7 of seeds (chi-squared law)."""

    class Labels:
        y, weight = np.repeat([-1.0, 1.0], [300, 700]), None

        def sum(self, of_block):
            return of_block(self)

    rng = seeded_generator(0)
    found = [learn_log_odds(Labels(), Gaussian(10.0), Relation.REPLACE, rng) for _ in range(400)]
    values = np.array([odds.value for odds in found])
    stated = np.mean([odds.deviation for odds in found])
    assert values.std() == pytest.approx(stated, rel=0.2)
    assert values.mean() == pytest.approx(math.log(7.0 / 3.0), abs=5.0 * stated / 20.0)


def test_strong_noise_leaves_the_log_odds_and_weak_noise_the_weights():
    w, metric = np.array([1.0, -0.5, 0.2]), np.eye(3)
    odds = LogOdds(-1.5, 0.05)
    strong = NoisyWeights(w, metric, noise=5.0, mean_noise=0.1).settled(odds)
    assert strong == pytest.approx([0.0, 0.0, -1.5], abs=2e-3)
    weak = NoisyWeights(w, metric, noise=1e-6, mean_noise=0.1).settled(odds)
    assert weak == pytest.approx(w, abs=1e-6)


def test_columns_that_are_not_centred_keep_the_score_of_the_mean_row():
    """With weak noise in the log-odds, the mean row gets them, whatever the columns' means are."""
    means = np.array([3.0, -2.0])
    moment = np.block([[np.eye(2) + np.outer(means, means), means[:, None]], [means[None, :], np.ones((1, 1))]])
    found = NoisyWeights(np.array([0.5, 0.5, 1.0]), moment, noise=0.4, mean_noise=0.0).settled(LogOdds(0.7, 1e-6))
    scores_vary = float(found[:2] @ found[:2])
    assert found[:2] @ means + found[2] == pytest.approx(0.7 * math.sqrt(1.0 + math.pi / 8.0 * scores_vary), rel=0.05)


def log_losses(rows, epsilon, share, signal, runs=40):
    """Mean log-losses of the default and of the exact constant, over tables whose labels follow one column of six."""
    rng = np.random.default_rng(1)
    ours, constant = [], []
    for run in range(runs):
        X = rng.normal(size=(rows + 2_000, 6))
        score = signal * X[:, 0] + math.log(share / (1.0 - share))
        y = (rng.uniform(size=len(X)) < 1.0 / (1.0 + np.exp(-score))).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(epsilon=epsilon, classes=[0, 1], random_state=run).fit(X[:rows], y[:rows])
        chance, label = model.predict_proba(X[rows:])[:, 1], y[rows:]
        ours.append(-np.mean(np.log(np.where(label == 1, chance, 1.0 - chance))))
        mean = label.mean()
        constant.append(-mean * math.log(mean) - (1.0 - mean) * math.log(1.0 - mean))
    return np.mean(ours), np.mean(constant)


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize(("rows", "epsilon"), [(300, 0.3), (300, 1.0), (1_000, 0.3)])
def test_labels_that_no_column_tells_cost_little_more_than_a_constant(rows, epsilon, share):
    """Seeded; the losses were 1.00 to 1.04 times those of the best constant, which no budget limits, and 1.1 to 1.7
    times before labels were counted.
    """
    ours, constant = log_losses(rows, epsilon, share, signal=0.0)
    assert ours <= 1.06 * constant


def test_what_can_be_learned_from_a_small_table_is_learned():
    ours, constant = log_losses(300, 3.0, 0.5, signal=2.0, runs=15)
    assert ours <= 0.9 * constant


def test_the_result_is_that_of_a_stored_plan_and_a_seed():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.repeat([-1.0, 1.0], 100)
    problem, budget = Problem(Logistic(), L2(1e-3)), Budget(1.0, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (solve(problem, X, y, Newton(), budget, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)
    assert first.intercept == second.intercept
