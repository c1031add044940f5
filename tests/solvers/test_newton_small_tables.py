"""Newton on small tables: counted labels, shrinkage by the known noise, and losses hardly above a constant's."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import LogisticRegression, UtilityWarning, solve
from discreet.data.public import Public
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.mechanisms import Gaussian
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.relation import Relation
from discreet.problem.constraints import Box
from discreet.problem.losses import ClassWeighted, Huber, Logistic, Multinomial
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers import Newton
from discreet.solvers._shared.label_counts import expected_share, label_counts, noisy_shares
from discreet.solvers.newton import solver as settling
from discreet.solvers.newton.calibration import (
    learn_label_scores,
    wanted_share,
)
from discreet.solvers.newton.planning import LABELS, MOMENT
from discreet.solvers.newton.solver import Columns, Estimate, NoisyWeights, averaged_noise, with_intercept
from tests.neighbours import CASE, scaled_neighbours


def plan_of(rows, epsilon, problem=None, columns=5, solver=None):
    problem = problem or Problem(Logistic(), L2(1e-3))
    return (solver or Newton()).plan(problem, Public(rows, columns), Budget(epsilon, 1e-6))


class Labels:
    """The labels of a table, as all that a problem is asked for."""

    def __init__(self, y, loss, weight=None):
        self.y, self.weight, self.loss, self.rows = np.asarray(y, dtype=np.float64), weight, loss, len(y)
        self.problem = Problem(loss)

    def blocks(self):
        return [self]

    def sum(self, of_block):
        return of_block(self)


@settings(max_examples=150)
@given(**CASE)
def test_label_counts_move_by_at_most_their_sensitivity(relation, X, weight, row, at, seed):
    first, second = scaled_neighbours(relation, Logistic(), X, weight, row, at, seed, "C")
    move = first.sum(label_counts) - second.sum(label_counts)
    assert np.linalg.norm(move) <= mechanisms.one_hot_counts(relation, 1).l2 * (1.0 + 1e-12)


def test_rows_of_all_classes_are_counted_once():
    counts = label_counts(Labels([0, 2, 2, 1, 2], Multinomial(4), np.array([1.0, 0.5, 1.0, 0.25, 1.0])))
    np.testing.assert_array_equal(counts, [1.0, 0.25, 2.5, 0.0])


def test_labels_are_counted_where_that_tells_the_constant():
    assert 0.0 < plan_of(1_000, 1.0).mechanism.shares[LABELS] < 0.5
    assert plan_of(1_000, 1.0, Problem(Logistic(), L2(1e-3), fit_intercept=False)).mechanism.shares[LABELS] == 0.0
    bounded = Problem(Logistic(), L2(1e-3), constraint=Box(-1.0, 1.0))
    assert plan_of(1_000, 1.0, bounded).mechanism.shares[LABELS] == 0.0


def test_a_table_too_small_for_more_gets_a_constant_with_the_whole_budget():
    plan = plan_of(100, 0.1)
    assert plan.settings.is_constant
    assert plan.mechanism.shares[LABELS] == 1.0
    assert sum(plan.mechanism.shares) == 1.0
    assert plan.mechanism.multiplier == pytest.approx(mechanisms.additive(plan.budget, 1.0).multiplier, rel=1e-6)
    assert any("predicts the same for every row" in warning for warning in plan.warnings())
    X, y = np.random.default_rng(0).normal(size=(100, 5)), np.repeat([0, 1], [20, 80])
    model = LogisticRegression(epsilon=0.1, delta=1e-6, classes=[0, 1], solver="newton")
    with pytest.warns(UtilityWarning, match="too few at this budget"):
        model.fit(X, y)
    assert not model.coef_.any()


@pytest.mark.parametrize("asked", [Newton(steps=3), Newton(clip=1.0), Newton(radius=1.0), Newton(scale_share=0.2)])
def test_settings_of_ones_own_are_kept_on_the_smallest_table(asked):
    plan = plan_of(100, 0.1, solver=asked)
    assert not plan.settings.is_constant
    assert plan.mechanism.shares[MOMENT] > 0.0


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(("rows", "epsilon"), [(50, 0.1), (300, 1.0), (2_000, 0.2), (100_000, 1.0)])
def test_shares_sum_to_one(rows, epsilon, relation):
    plan = Newton().plan(Problem(Logistic(), L2(1e-3)), Public(rows, 5, relation=relation), Budget(epsilon, 1e-6))
    assert sum(plan.mechanism.shares) == pytest.approx(1.0, abs=1e-12)
    assert min(plan.mechanism.shares) >= 0.0


def test_the_share_for_labels_gives_their_shares_the_wanted_spread():
    public, budget = Public(2_000, 5), Budget(0.3, 1e-6)
    share = wanted_share(public, budget)
    part = mechanisms.additive(budget, share)
    counts = mechanisms.one_hot_counts(Relation.REPLACE, 1)
    _, spread = noisy_shares(np.array([1_000.0, 1_000.0]), part.deviation(counts), 2_000)
    assert spread == pytest.approx([0.03, 0.03], rel=0.02)


def test_weights_of_one_are_no_weights():
    """A row that is left out has weight 0: whether weights were passed must not change what is released."""
    X, y = np.random.default_rng(0).normal(size=(120, 3)), np.repeat([0, 1], 60)
    fits = []
    for weight in ({}, {"sample_weight": np.ones(120)}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(epsilon=1.0, classes=[0, 1], relation="zero_out", random_state=0)
            fits.append(model.fit(X, y, **weight).intercept_)
    np.testing.assert_array_equal(*fits)


@given(noisy=st.floats(-3.0, 4.0), spread=st.floats(0.01, 10.0))
def test_an_expected_share_is_a_share_between_the_noisy_one_and_a_half(noisy, spread):
    share = expected_share(noisy, spread)
    assert 0.0 < share < 1.0
    assert (share - 0.5) * (noisy - 0.5) >= -1e-12
    assert abs(share - 0.5) <= abs(noisy - 0.5) + 1e-9


def test_without_knowledge_all_labels_are_equally_likely():
    assert expected_share(0.7, 1e3, labels=5) == pytest.approx(0.2, abs=1e-3)


@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ADD_REMOVE])
def test_log_odds_have_the_deviation_that_is_stated(relation):
    """400 draws; the sample deviation is within 20 % of the stated one but for 1e-7 of seeds (chi-squared law)."""
    rng, table = seeded_generator(0), Labels(np.repeat([-1.0, 1.0], [300, 700]), Logistic())
    found = [learn_label_scores(table, Gaussian(10.0), relation, rng) for _ in range(400)]
    values = np.array([score.value[0] for score in found])
    stated = np.mean([score.deviation[0] for score in found])
    assert values.std() == pytest.approx(stated, rel=0.2)
    assert values.mean() == pytest.approx(math.log(7.0 / 3.0), abs=5.0 * stated / 20.0)


def test_scores_of_several_classes_are_logarithms_of_their_shares():
    rng, table = seeded_generator(1), Labels(np.repeat([0.0, 1.0, 2.0], [100, 300, 600]), Multinomial(3))
    score = learn_label_scores(table, Gaussian(1e-3), Relation.REPLACE, rng)
    logs = np.log([0.1, 0.3, 0.6])
    assert score.value == pytest.approx(logs - logs.mean(), abs=3e-3)


def test_class_weights_move_the_scores_of_the_constant_by_their_logarithms():
    labels = np.repeat([-1.0, 1.0], [300, 700])
    plain, weighted = (
        learn_label_scores(Labels(labels, loss), Gaussian(1.0), Relation.REPLACE, seeded_generator(0))
        for loss in (Logistic(), ClassWeighted(Logistic(), (1.0, 0.25)))
    )
    assert weighted.value - plain.value == pytest.approx(math.log(0.25))
    assert weighted.deviation == pytest.approx(plain.deviation)


def risk(signal, noise, columns, draws=400, seed=0):
    """Mean squared errors of shrunk weights and of 0, in the metric of the noise, in units of its variance."""
    rng = np.random.default_rng(seed)
    truth = np.zeros(columns)
    truth[0] = signal
    found = [
        NoisyWeights(truth + noise * rng.normal(size=columns), noise**2 * np.eye(columns)).expected(2.0)
        for _ in range(draws)
    ]
    return np.mean([np.sum((w - truth) ** 2) for w in found]) / noise**2, signal**2 / noise**2


@pytest.mark.parametrize("columns", [2, 10, 60])
@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0])
def test_shrinkage_costs_a_few_units_of_noise_whatever_the_number_of_columns(columns, noise):
    """Without shrinkage the error is `columns` units. Bounds of 6 units were 1 to 4 in these runs, which are seeded."""
    nothing, _ = risk(0.0, noise, columns)
    assert nothing <= min(6.0, columns)
    shrunk, alone = risk(3.0 * noise, noise, columns)
    assert shrunk <= alone + 6.0


def test_strong_signals_are_kept():
    shrunk, alone = risk(50.0 * 0.01, 0.01, 10)
    assert shrunk <= 12.0 < alone


def test_a_direction_that_noise_hides_does_not_hide_the_others():
    """One direction with a tenth of the noise of the other 29 holds the signal; one factor for all would be near 0."""
    rng = np.random.default_rng(0)
    deviations = np.append(0.1, np.ones(29))
    w = deviations * rng.normal(size=30)
    w[0] += 1.0
    found = NoisyWeights(w, np.diag(deviations**2)).expected(2.0)
    assert found[0] > 0.6
    assert np.linalg.norm(found[1:]) < 0.5 * np.linalg.norm(w[1:])


def test_what_a_penalty_left_out_stays_out():
    found = NoisyWeights(np.array([0.0, 3.0]), np.array([[1.0, 0.5], [0.5, 1.0]])).expected(2.0)
    assert found[0] == 0.0
    assert found[1] != 0.0


def shrunk_with_intercept(w, noise, columns, odds):
    """Weights of labels, shrunk by their noise, with the intercept that follows."""
    shrunk = NoisyWeights(w[:-1], noise[:-1, :-1]).expected(2.0)
    return with_intercept(w, shrunk, noise, columns, odds, "logit")


def test_strong_noise_leaves_the_log_odds_and_weak_noise_the_weights():
    w, columns = np.array([1.0, -0.5, 0.2]), Columns(np.eye(3), 0.1)
    odds = Estimate(-1.5, 0.05**2)
    strong = shrunk_with_intercept(w, 25.0 * np.eye(3), columns, odds)
    assert strong == pytest.approx([0.0, 0.0, -1.5], abs=0.1)
    weak = shrunk_with_intercept(w, 1e-12 * np.eye(3), columns, odds)
    assert weak == pytest.approx(w, abs=1e-3)


def test_columns_that_are_not_centred_keep_the_score_of_the_mean_row():
    """With weak noise in the log-odds, the mean row gets them, whatever the columns' means are."""
    means = np.array([3.0, -2.0])
    moment = np.block([[np.eye(2) + np.outer(means, means), means[:, None]], [means[None, :], np.ones((1, 1))]])
    noise = 0.16 * np.linalg.inv(moment)
    found = shrunk_with_intercept(np.array([0.5, 0.5, 1.0]), noise, Columns(moment, 0.0), Estimate(0.7, 1e-12))
    scores_vary = float(found[:2] @ found[:2])
    assert found[:2] @ means + found[2] == pytest.approx(0.7 * math.sqrt(1.0 + math.pi / 8.0 * scores_vary), rel=0.05)


@pytest.mark.parametrize("progress", [0.1, 0.5, 1.0])
def test_the_noise_of_an_average_is_that_of_simulated_steps(progress):
    """4,000 paths: a sample variance is within 15 % of the true one but for 1e-10 of seeds (chi-squared law)."""
    rng, steps = np.random.default_rng(0), np.array([1.0, 0.8, 0.6, 0.5, 0.4])
    weights = np.array([0.0, 0.0, 0.2, 0.3, 0.5])
    w, mean = np.zeros(4_000), np.zeros(4_000)
    for deviation, weight in zip(steps, weights, strict=True):
        w = (1.0 - progress) * w + deviation * rng.normal(size=w.size)
        mean += weight * w
    assert mean.var() == pytest.approx(averaged_noise(np.array([progress]), steps, weights)[0], rel=0.15)


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


def test_slopes_that_few_steps_have_damped_become_those_of_the_true_scores():
    """By the rule for normal scores; beyond its range the correction stays bounded."""
    columns, true = Columns(np.eye(3), 0.0), np.array([1.2, -0.5])
    damped = true / math.sqrt(1.0 + math.pi / 8.0 * float(true @ true))
    np.testing.assert_allclose(columns.undamped(damped), true)
    assert np.linalg.norm(columns.undamped(damped)) > 1.2 * np.linalg.norm(damped)
    np.testing.assert_allclose(columns.undamped(50.0 * true), 50.0 * true / math.sqrt(1.0 - math.pi / 4.0))


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize(("rows", "epsilon"), [(300, 0.3), (300, 1.0), (1_000, 0.3), (1_000, 1.0)])
def test_labels_that_no_column_tells_cost_little_more_than_a_constant(rows, epsilon, share):
    """Seeded; the best constant, which no budget limits, is what the losses are compared with."""
    ours, constant = log_losses(rows, epsilon, share, signal=0.0)
    assert ours <= 1.03 * constant


def test_what_can_be_learned_from_a_small_table_is_learned():
    ours, constant = log_losses(300, 3.0, 0.5, signal=2.0, runs=15)
    assert ours <= 0.9 * constant


def test_an_equal_seed_gives_an_equal_model():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.repeat([-1.0, 1.0], 100)
    problem, budget = Problem(Logistic(), L2(1e-3)), Budget(3.0, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (solve(problem, X, y, Newton(), budget, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)
    assert first.intercept == second.intercept


def excess_of_huber(seed, epsilon, rows=20_000):
    """How far the objective on a table with a tenth of far targets is above its minimum, as a part of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 3))
    y = X @ [1.0, -0.5, 0.0] + rng.normal(size=rows) + 20.0 * (rng.random(rows) < 0.1)
    problem, data = Problem(Huber(1.0)), {"bounds": (-1.0, 1.0), "y_bounds": (-5.0, 25.0)}
    values = [
        float(np.mean(problem.loss.value(X @ found.coef + found.intercept, y)))
        for found in (solve(problem, X, y, "newton", size, random_state=seed, **data) for size in (epsilon, math.inf))
    ]
    return values[0] / values[1] - 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet._common.exceptions.DiscreetWarning")
def test_the_mean_of_the_target_is_no_estimate_for_a_loss_that_does_not_keep_it(monkeypatch):
    """The intercept of a Huber loss is not the mean: pulled there, it loses the more, the less noise there is."""
    assert max(excess_of_huber(seed, 100.0) for seed in range(3)) < 1e-5
    planted = lambda descent: [settling.Estimate(0.0, descent.scaled.scaling.target_noise**2)]  # noqa: E731
    monkeypatch.setattr(settling, "constants", planted)
    assert min(excess_of_huber(seed, 100.0) for seed in range(3)) > 1e-3
