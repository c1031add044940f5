"""Planned harm against real private fits, its closed forms, its searches, and what it refuses.

Statistical tests are seeded; their false-alarm rate is below 1e-3.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline

from discreet import LogisticRegression, Ridge
from discreet.fairness import MarginDensity, MarginSample, NormalMargins, epsilon_for_harm, harm_of, rows_for_harm
from discreet.fairness.cells import quantities, row_cells
from discreet.fairness.harm.at_plan import planned_law, score_noise
from discreet.fairness.harm.margin_profiles import BallCurve, NoiseCurve, area_under_curve, deviation_for, mean_for
from discreet.fairness.notions import NOTIONS
from discreet.problem.column_scaling import identity_scaling
from discreet.solvers.gradient_descent import GradientDescent
from discreet.solvers.output_perturbation import OutputPerturbation
from tests.harm_tools import (
    COLUMNS,
    GROUPS,
    ROWS,
    cell_scores,
    classifier,
    evaluation_table,
    private_weights,
    training_table,
    twin_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

RATES, SPREAD, DRAWS, FAILURE = {"a": 0.5, "b": 0.45}, 0.25, 800, 0.05
NORMAL = NormalMargins(RATES, SPREAD)
FIXED = LogisticRegression(solver=OutputPerturbation(ridge=0.01, row_norm=1.0))


@pytest.fixture(scope="module")
def measured():
    """For each of many private fits, the rows of the evaluation table that are right, and those of the twin."""
    twin = twin_of(*training_table())
    table = evaluation_table(twin, math.sqrt(COLUMNS + 1), RATES, SPREAD)
    scores = table.rows @ np.vstack([twin, private_weights(DRAWS)]).T
    right = (table.labels == 1) == (scores > 0.0).T
    return table, right[0], right[1:]


def changes(measured, notion):
    """Draws times statements: how much each value of a notion changed."""
    table, before, after = measured
    cells = row_cells(table.labels, table.groups)
    counts = cells.counts
    members = (cells.cell[:, None] == np.arange(counts.size)).astype(float) / counts.ravel()
    moved = (after @ members - before @ members).reshape(-1, *counts.shape)
    asked = quantities(cells.table(before), notion, favourable=1)
    return np.stack([(quantity.weights * moved).sum(axis=(1, 2)) for quantity in asked], axis=1)


def too_many(exceeded):
    """Whether a bound fails more often than it says, at the level 1e-4."""
    return bool(exceeded.sum() > stats.binom.isf(1e-4, exceeded.size, FAILURE))


@pytest.mark.slow
@pytest.mark.parametrize("notion", sorted(NOTIONS))
def test_bounds_hold_for_real_fits_as_often_as_they_say(measured, notion):
    moved = changes(measured, notion)
    harm = harm_of(classifier(), ROWS, COLUMNS, GROUPS, margins=NORMAL, notion=notion, failure=FAILURE)
    most = np.array([group.change for group in harm.groups])
    low, high = (np.array([getattr(group, name) for group in harm.groups]) for name in ("low", "high"))
    assert harm.proved
    assert not too_many((np.abs(moved) > most).any(axis=1))
    assert not too_many(((moved < low) | (moved > high)).any(axis=1))
    assert not too_many(np.abs(np.abs(moved).mean(axis=1)) > harm.aggregate)
    mean = harm_of(classifier(), ROWS, COLUMNS, GROUPS, margins=NORMAL, notion=notion, mode="expected")
    error = 4.0 * np.abs(moved).std(axis=0) / math.sqrt(DRAWS)
    assert (np.abs(moved).mean(axis=0) <= [group.change for group in mean.groups] + error).all()


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["equality of opportunity", "equalised odds", "demographic parity"])
def test_bounds_for_half_the_noise_are_exceeded(measured, notion):
    """The planted fault: a claim that the noise is that of a larger epsilon."""
    claimed = harm_of(classifier(2.0), ROWS, COLUMNS, GROUPS, margins=NORMAL, notion=notion, failure=FAILURE)
    most = np.array([group.change for group in claimed.groups])
    assert too_many((np.abs(changes(measured, notion)) > most).any(axis=1))


@pytest.mark.slow
def test_the_expected_part_of_changed_predictions_is_the_measured_one(measured):
    table, before, after = measured
    for epsilon, fits in ((1.0, True), (1.5, False)):
        harm = harm_of(classifier(epsilon), ROWS, COLUMNS, GROUPS, margins=NORMAL, notion="accuracy parity")
        for group in harm.groups:
            changed = (before != after)[:, table.groups == group.group].mean(axis=1)
            error = 4.0 * changed.std() / math.sqrt(DRAWS)
            assert (abs(changed.mean() - group.changed) <= error) == fits


def test_margins_of_a_table_and_the_law_they_were_drawn_from_agree(measured):
    table = measured[0]
    scores = table.rows @ twin_of(*training_table())
    sample = MarginSample.from_scores(scores, table.labels, table.groups)
    by_law, by_rows = (harm_of(classifier(), ROWS, COLUMNS, GROUPS, margins=each) for each in (NORMAL, sample))
    for one, other in zip(by_law.groups, by_rows.groups, strict=True):
        assert one.change == pytest.approx(other.change, rel=5e-3)
        assert one.visible == pytest.approx(other.visible, rel=5e-3)


def test_whoever_is_near_the_boundary_can_lose_everything():
    """Without an assumption nothing can be promised: perfect equality becomes the largest inequality of one group."""
    noise = np.random.default_rng(0).standard_normal((1_000, 3)) * 1e-6
    twin, across, beside = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1e3, 0.0]), np.array([0.0, 0.0, 1.0])
    near = 1e-12 * np.array([1.0, 0.0, 0.0]) + beside
    scores = np.stack([near + across, near - across]) @ (twin + noise).T > 0.0
    assert (scores.sum(axis=0) == 1).mean() > 0.99  # one group is right, the other is not
    assert not epsilon_for_harm(FIXED, 10**6, 3, GROUPS, at_most=0.1, margins=MarginDensity(1e9)).reachable


def test_the_density_of_margins_has_closed_forms():
    kappa, noise, failure = 0.3, 0.05, 0.01
    kink = stats.norm.isf(failure)
    mean = MarginDensity(kappa).sides(1, "a", NoiseCurve(noise)).total
    bound = MarginDensity(kappa).sides(1, "a", NoiseCurve(noise, 0.0, failure)).total
    assert mean == pytest.approx(kappa * noise / math.sqrt(2.0 * math.pi), rel=1e-10)
    assert bound == pytest.approx(kappa * noise * stats.norm.pdf(kink) / failure, rel=1e-10)
    assert MarginDensity(kappa).sides(0, "a", BallCurve(math.inf)).total == pytest.approx(1.0)
    assert MarginDensity(kappa).sides(0, "a", NoiseCurve(noise, 0.2)).total == pytest.approx(0.2 * kappa, rel=0.2)


@pytest.mark.parametrize("noise", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("label", [0, 1])
def test_integrals_over_normal_margins_are_means_over_their_quantiles(noise, label):
    rate, spread, curve = 0.2, 1.5, NoiseCurve(noise, 0.1 * noise, 0.01)
    margins = cell_scores(label, rate, spread, 200_000) * (1 if label == 1 else -1)
    sides = NormalMargins(rate, spread).sides(label, "any", curve)
    assert sides.loss == pytest.approx(curve(np.abs(margins))[margins > 0.0].sum() / margins.size, rel=2e-2, abs=1e-5)
    assert sides.gain == pytest.approx(curve(np.abs(margins))[margins < 0.0].sum() / margins.size, rel=2e-2, abs=1e-5)
    assert NormalMargins(rate, spread).accuracy(label, "any") == pytest.approx((margins > 0.0).mean(), abs=1e-5)


def test_strength_as_an_area_under_the_curve():
    rng = np.random.default_rng(2)
    score = mean_for(0.3, 1.7) + 1.7 * rng.standard_normal(200_000)
    y = rng.random(score.size) < 1.0 / (1.0 + np.exp(-score))
    ranks = stats.rankdata(score)
    area = (ranks[y].mean() - 0.5 * (y.sum() + 1)) / (~y).sum()
    assert y.mean() == pytest.approx(0.3, abs=5e-3)
    assert area_under_curve(0.3, 1.7) == pytest.approx(area, abs=5e-3)
    assert deviation_for(area_under_curve(0.3, 1.7), 0.3) == pytest.approx(1.7, rel=1e-6)
    strong, weak = (NormalMargins(0.3, auc=auc).sides(1, "a", NoiseCurve(0.1)).total for auc in (0.9, 0.7))
    assert strong < weak


@pytest.mark.parametrize("share", [0.5, 0.2, 0.01])
def test_a_small_group_suffers_as_the_formula_says(share):
    """With the same margins everywhere the change is 2 (1 - share) times that of a cell, in the mean."""
    groups = {"small": round(10_000 * share), "large": round(10_000 * (1.0 - share))}
    harm = harm_of(FIXED, 100_000, 10, groups, margins=MarginDensity(0.3), mode="expected")
    cell = 0.3 * harm.noise / math.sqrt(2.0 * math.pi)
    for group in harm.groups:
        expected = 2.0 * (1.0 - groups[group.group] / 10_000) * cell
        assert group.change == pytest.approx(expected, rel=0.02)  # the minimiser's error adds a little
        chance = 0.25 * (1.0 / (0.5 * groups["small"]) + 1.0 / (0.5 * groups["large"]))  # half of them have label 1
        spread = (1.0 - groups[group.group] / 10_000) * math.sqrt(chance)
        assert group.visible == pytest.approx(stats.norm.isf(0.005) * spread, rel=1e-6)


def test_harm_falls_with_epsilon_rows_and_failure():
    def at(epsilon=1.0, rows=100_000, **question):
        model = LogisticRegression(epsilon=epsilon, solver=FIXED.solver)
        return harm_of(model, rows, 10, GROUPS, margins=NORMAL, **question).value()

    for values in (
        [at(epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0, 5.0, 50.0)],
        [at(rows=rows) for rows in (10**4, 10**5, 10**6, 10**7)],
        [at(failure=failure) for failure in (1e-6, 1e-3, 1e-2, 0.1)],
    ):
        assert (np.diff(values) < 0.0).all()


@pytest.mark.parametrize("of", ["groups", "aggregate"])
@pytest.mark.parametrize("mode", ["bound", "expected"])
def test_searches_and_harm_are_inverse_to_each_other(mode, of):
    question = {"margins": NormalMargins(0.4), "mode": mode, "notion": "equalised odds"}
    answer = epsilon_for_harm(FIXED, 300_000, 10, GROUPS, at_most=0.01, of=of, **question)
    assert answer.reachable
    assert answer.harm.value(of) == pytest.approx(0.01, rel=1e-3)
    assert answer.harm.value(of) <= 0.01
    assert answer.delta == pytest.approx(300_000**-2)
    there = LogisticRegression(epsilon=answer.epsilon, solver=FIXED.solver)
    assert harm_of(there, 300_000, 10, GROUPS, **question) == answer.harm
    below = LogisticRegression(epsilon=answer.epsilon * 0.999, solver=FIXED.solver)
    assert harm_of(below, 300_000, 10, GROUPS, **question).value(of) > 0.01
    rows = rows_for_harm(there, 10, GROUPS, at_most=0.01, of=of, **question).rows
    assert 290_000 < rows <= 300_000
    assert harm_of(there, rows - 1, 10, GROUPS, **question).value(of) > 0.01


def test_what_cannot_be_reached_and_what_asks_for_nothing_is_said():
    margins = NormalMargins()
    never = epsilon_for_harm(FIXED, 1_000, 10, GROUPS, at_most=1e-6, margins=margins)
    assert never.epsilon == math.inf
    assert never.to_dict()["epsilon"] == "inf"
    assert "even at epsilon 1000" in str(never)
    assert "no epsilon was found" in str(never)
    always = epsilon_for_harm(FIXED, 10**9, 10, GROUPS, at_most=0.5, margins=margins)
    assert always.reachable
    assert always.epsilon == 1e-3
    assert "asks for nothing" in always.note
    touching = MarginSample({(label, group): [0.0, 1.0] for label in (0, 1) for group in GROUPS})
    assert not rows_for_harm(FIXED, 10, GROUPS, at_most=0.01, margins=touching).reachable
    large = epsilon_for_harm(FIXED, 20_000, 10, GROUPS, at_most=0.02, margins=margins)
    assert large.epsilon > 10.0
    assert "promises little" in large.note


def test_scales_that_are_not_known_yet_cannot_add_noise():
    """Whatever scales are released, the score of a row has at most the planned noise; and some scales attain it."""
    rng = np.random.default_rng(4)
    plan = LogisticRegression(alpha=0.02, solver=OutputPerturbation(ridge=0.01)).plan(10_000, 5)
    planned = score_noise(plan, 3.0, predicted=False)
    for size in (1e-3, 0.1, 1.0, 10.0):
        scaling = replace(identity_scaling(5), scale=size * np.exp(rng.standard_normal(5)))
        law = plan.distance_law(scaling)
        rows = rng.standard_normal((200, 6))
        rows *= 3.0 / np.linalg.norm(rows, axis=1, keepdims=True)
        assert (law.row_norms(rows) * law.deviation <= planned.deviation * (1.0 + 1e-9)).all()
        assert (law.row_norms(rows) * law.error <= planned.per_distance * planned.law.error * (1.0 + 1e-9)).all()
    wide = plan.distance_law(replace(identity_scaling(5), scale=np.full(5, 100.0)))
    assert wide.row_norms(rows).max() * wide.deviation == pytest.approx(planned.deviation)


def test_laws_that_are_not_gaussian_bound_by_the_distance_alone():
    pure = harm_of(classifier(delta=0.0), 10**6, COLUMNS, GROUPS, margins=NORMAL)
    assert pure.proved
    assert pure.noise is None
    assert 0.0 < pure.value() < 0.5
    gradient = LogisticRegression(
        alpha=0.1, fit_intercept=False, bounds=(-1.0, 1.0), solver=GradientDescent(scale_share=0)
    )
    bound, mean = (harm_of(gradient, 10**6, 3, GROUPS, margins=NORMAL, mode=mode) for mode in ("bound", "expected"))
    assert bound.proved
    assert mean.proved
    assert 0.0 < mean.value() < 0.5
    assert not any("norm at most" in text for text in bound.assumptions)  # declared bounds prove it


def test_where_nothing_is_proved_only_a_prediction_is_given_and_named_so():
    model = LogisticRegression(epsilon=1.0)
    with pytest.raises(ValueError, match=r"no theorem bounds the noise of newton.*mode='expected'"):
        harm_of(model, 45_000, 10, GROUPS, margins=NORMAL)
    harm = harm_of(model, 45_000, 10, GROUPS, margins=NORMAL, mode="expected")
    assert not harm.proved
    assert "predicted, not proved" in str(harm)
    assert harm.noise == pytest.approx(math.sqrt(11) * model.plan(45_000, 10).standard_error)
    with pytest.raises(ValueError, match="neither proved nor predicted"):
        harm_of(LogisticRegression(solver="ftrl"), 45_000, 10, GROUPS, margins=NORMAL, mode="expected")
    with pytest.raises(ValueError, match="no theorem"):
        planned_law(model.plan(45_000, 10))


def test_a_private_evaluation_adds_noise_that_falls_with_its_epsilon():
    noises = [
        harm_of(FIXED, 45_000, 10, GROUPS, margins=NORMAL, evaluation_epsilon=epsilon).worst.evaluation_noise
        for epsilon in (0.1, 1.0)
    ]
    assert noises[0] > 5.0 * noises[1] > 0.0


def test_assumptions_are_said():
    said = " ".join(
        harm_of(LogisticRegression(solver="output-perturbation"), 45_000, 10, GROUPS, margins=NORMAL).assumptions
    )
    for part in ("normal with deviation 0.25", "0.5 (a), 0.45 (b)", "a 0.8, b 0.2", "norm at most 3.317", "its ridge"):
        assert part in said
    assert "its ridge" not in " ".join(harm_of(FIXED, 45_000, 10, GROUPS, margins=NORMAL).assumptions)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"groups": {}}, "empty"),
        ({"groups": {"a": 10}}, "compares groups"),
        ({"groups": {"a": 10, "b": 0}}, r"groups\['b'\]"),
        ({"groups": {"a": 10, "c": 10}}, "says nothing about group 'c'"),
        ({"notion": "kindness"}, "notions must be among"),
        ({"failure": 0.0}, "failure"),
        ({"mode": "hope"}, "mode"),
        ({"margins": 0.3}, "NormalMargins"),
        ({"row_norm": -1.0}, "row_norm"),
        ({"columns": 0}, "columns"),
        ({"rows": 1}, "rows"),
        ({"estimator": Ridge()}, "predicts numbers"),
        ({"estimator": make_pipeline(FIXED)}, "classifier of discreet"),
        ({"estimator": LogisticRegression}, "classifier of discreet"),
        ({"groups": ["a", "b"]}, "name each group"),
        ({"estimator": LogisticRegression(epsilon=math.inf)}, "infinite"),
        ({"estimator": LogisticRegression(classes=[0, 1, 2])}, "two classes"),
        ({"margins": MarginSample({(1, "a"): [1.0], (1, "b"): [1.0], (0, "a"): [1.0]})}, "no rows with label 0"),
    ],
)
def test_nonsense_is_refused(changed, message):
    given = {"estimator": FIXED, "rows": 10_000, "columns": 10, "groups": GROUPS, "margins": NORMAL} | changed
    with pytest.raises(ValueError, match=message):
        harm_of(**given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NormalMargins(0.0), "base_rates"),
        (lambda: NormalMargins({"a": 1.0}), "below 1"),
        (lambda: NormalMargins(1e-30), "base_rates"),
        (lambda: NormalMargins(1.0 - 1e-16), "below 1"),
        (lambda: NormalMargins(auc=0.5 + 1e-9).deviation_of("a"), "too near to 0.5"),
        (lambda: MarginDensity(1e-320), "kappa"),
        (lambda: NormalMargins(deviation=0.0), "deviation"),
        (lambda: NormalMargins(auc=0.4), "auc"),
        (lambda: NormalMargins(deviation=1.0, auc=0.8), "not both"),
        (lambda: NormalMargins(auc=0.99999999).deviation_of("a"), "too near to 1"),
        (lambda: MarginDensity(0.0), "kappa"),
        (lambda: MarginSample({(1, "a"): [math.nan]}), "finite"),
        (lambda: MarginSample({(2, "a"): [1.0]}), "label 0 or 1"),
        (lambda: MarginSample.from_scores([1.0], [1, 0], ["a"]), "same length"),
        (lambda: epsilon_for_harm(FIXED, 100, 2, GROUPS, at_most=0.0, margins=NORMAL), "at_most"),
        (lambda: epsilon_for_harm(FIXED, 100, 2, GROUPS, at_most=0.1, of="men", margins=NORMAL), "of must be"),
    ],
)
def test_impossible_assumptions_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
