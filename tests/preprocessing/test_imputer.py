"""Imputers: what is filled in, that rows are treated one by one, and the law, cost and accuracy of what is learned."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from discreet import Budget, Ledger, Relation
from discreet.audit.lower_bound import epsilon_lower_bound
from discreet.data.public import Public
from discreet.data.rows import Data, limits_between
from discreet.preprocessing import DeclaredImputer, PrivateImputer, check_pipeline, pipeline_guarantee
from discreet.preprocessing.imputer import learn_means_with_gaps, plan_means_with_gaps
from discreet.privacy import accounting, mechanisms
from discreet.privacy.random.generator import seeded_generator
from discreet.privacy.release import ReleasePlan

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")

GAP = np.nan


def test_public_numbers_are_filled_in_row_by_row():
    frame = pd.DataFrame({"a": [1.0, GAP], "b": [GAP, 2.0]})
    step = DeclaredImputer(fill_value={"a": 5, "b": -1}, add_indicator=True).fit(frame)
    np.testing.assert_array_equal(step.transform(frame), [[1, -1, 0, 1], [5, 2, 1, 0]])
    assert step.get_feature_names_out().tolist() == ["a", "b", "missingindicator_a", "missingindicator_b"]
    full = frame.fillna(0.0)
    assert step.transform(full).shape[1] == 4  # whether something is missing shows in no shape
    np.testing.assert_array_equal(DeclaredImputer().fit_transform(frame), [[1, 0], [0, 2]])
    check_pipeline(step)
    with pytest.raises(ValueError, match="infinity"):
        step.transform(frame.replace(1.0, np.inf))


@pytest.mark.parametrize("fill", [np.nan, "x", None, [1.0, 2.0, 3.0], {"a": 1.0}, {"a": 1, "b": 2, "c": 3}, np.inf])
def test_fill_values_are_checked(fill):
    with pytest.raises(ValueError, match="fill_value") as error:
        DeclaredImputer(fill_value=fill).fit(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    assert "\n" not in str(error.value)


# --- what is learned ---------------------------------------------------------------------------------------------

LOW, HIGH = np.array([-1.0, 2.0]), np.array([3.0, 10.0])


class Recorder:
    """A mechanism that keeps what would have been released."""

    multiplier = 1.0

    def release(self, rng, statistic, sensitivity):
        self.statistic, self.sensitivity = statistic.copy(), sensitivity
        return statistic

    def deviation(self, sensitivity):
        return 0.0


def statistic_of(X, weight, relation):
    recorder = Recorder()
    public = Public.of(len(X), 2, relation=relation, bounds=(LOW, HIGH), public_n=len(X))
    plan = ReleasePlan("means with gaps", public, Budget(1.0, 1e-6), {"mechanism": recorder})
    learn_means_with_gaps(plan, Data(X, np.zeros(len(X)), weight), None)
    return recorder.statistic, recorder.sensitivity


ENTRY = st.sampled_from([GAP, -1.0, 3.0, 2.0, 10.0, 1e308, -1e308, 5e-324, 0.3])


@settings(max_examples=200)
@given(st.sampled_from(list(Relation)), st.tuples(ENTRY, ENTRY), st.tuples(ENTRY, ENTRY), st.sampled_from([0.3, 1.0]))
def test_sums_and_counts_move_by_at_most_their_sensitivity(relation, row, other, weight):
    rest, weights = np.array([[0.0, GAP], [1.0, 4.0]]), np.array([1.0, 1.0, weight])
    first = np.vstack([rest, row])
    neighbour = {
        Relation.REPLACE: (np.vstack([rest, other]), weights),
        Relation.ZERO_OUT: (first, np.array([1.0, 1.0, 0.0])),
        Relation.ADD_REMOVE: (rest, weights[:2]),
    }[relation]
    (here, claimed), (there, _) = statistic_of(first, weights, relation), statistic_of(*neighbour, relation)
    assert np.linalg.norm(here - there) <= claimed.l2 * (1 + 1e-9)
    assert np.abs(here - there).sum() <= claimed.l1 * (1 + 1e-9)


def test_the_sensitivity_is_attained_and_no_larger():
    """All corners of the triangles of two columns."""
    corners = [np.array(pair) for pair in ((0.0, 0.0), (1.0, 1.0), (-1.0, 1.0))]
    rows = [np.concatenate(pair) for pair in itertools.product(corners, repeat=2)]
    moves = {Relation.REPLACE: [a - b for a, b in itertools.product(rows, rows)], Relation.ZERO_OUT: rows}
    for relation, differences in moves.items():
        claimed = mechanisms.counted_values(relation, 2)
        assert max(np.linalg.norm(move) for move in differences) == pytest.approx(claimed.l2)
        assert max(np.abs(move).sum() for move in differences) == pytest.approx(claimed.l1)


@pytest.mark.parametrize("strategy", ["mean", "median"])
@pytest.mark.parametrize("relation", list(Relation))
def test_learned_values_are_those_of_what_is_there(strategy, relation):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1.0, 0.5, 20_000), rng.uniform(2.0, 10.0, 20_000)])
    X[rng.random(X.shape) < 0.4] = GAP
    step = PrivateImputer(strategy=strategy, bounds=(LOW, HIGH), relation=relation, public_n=20_000, random_state=0)
    step.fit(X)
    np.testing.assert_allclose(step.statistics_, [1.0, 6.0], atol=0.15)
    filled = step.transform(X)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    weights = (X[:, 1] > 4.0).astype(float)  # gaps compare as False
    weighted = clone(step).fit(X, sample_weight=weights).statistics_
    assert weighted[1] == pytest.approx(7.0, abs=0.2)


@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_columns_of_gaps_and_hostile_rows_give_numbers_in_the_bounds(strategy):
    X = np.column_stack([np.full(50, GAP), np.full(50, 1e308)])
    step = PrivateImputer(strategy=strategy, bounds=(LOW, HIGH), random_state=0).fit(X)
    assert ((step.statistics_ >= LOW) & (step.statistics_ <= HIGH)).all()


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("strategy", ["mean", "median"])
def test_the_whole_budget_is_spent_and_no_more(relation, strategy):
    for budget in (Budget(1.0, 1e-9), Budget.pure(0.5)):
        step = PrivateImputer(strategy=strategy, bounds=(0, 1), epsilon=budget, relation=relation, public_n=1000)
        event = step.plan(1000, 2).event
        assert accounting.fits(event, budget, relation)
        assert not accounting.fits(event, budget.part(0.98), relation)


@pytest.mark.parametrize(("noise", "broken"), [(1.0, False), (0.25, True)])
@pytest.mark.slow
def test_the_audit_of_a_gap(noise, broken):
    """A row at the upper end against one with a gap: the noisy pair is as telling as allowed, and no more.

    The audit runs at level 1e-6; with a quarter of the noise it must see a broken promise.
    """
    budget = Budget(1.0, 1e-5)
    planned = plan_means_with_gaps(Public.of(2, 1, bounds=(0.0, 1.0)), budget).mechanism
    mechanism = replace(planned, multiplier=noise * planned.multiplier)
    sensitivity, rng = mechanisms.counted_values(Relation.ADD_REMOVE, 1), seeded_generator(1)
    pairs = [np.zeros((2, 1)), np.ones((2, 1))]
    drawn = [[float(mechanism.release(rng, pair, sensitivity).sum()) for _ in range(20_000)] for pair in pairs]
    found = epsilon_lower_bound(*map(np.array, drawn), delta=1e-5, confidence=1.0 - 1e-6)
    assert (found > 1.0) == broken


def test_mistakes_and_the_ledger(tmp_path):
    X = np.array([[1.0], [GAP]] * 500)
    for settings_, message in (
        ({}, "bounds is missing"),
        ({"bounds": (0, None)}, "both ends"),
        ({"bounds": "data"}, "public limits"),
        ({"bounds": (0, 1), "strategy": "mode"}, "strategy must be"),
    ):
        with pytest.raises(ValueError, match=message):
            PrivateImputer(**settings_).fit(X)
    ledger = Ledger(f"sqlite:///{tmp_path / 'book.db'}")
    ledger.open("people", epsilon=1.0, delta=1e-5)
    step = PrivateImputer(bounds=(0, 2), delta=1e-6, ledger=ledger, dataset="people").fit(X)
    assert 0.5 < ledger.spent("people") <= 1.0
    assert pipeline_guarantee(step).epsilon == pytest.approx(1.0)
    assert limits_between(np.zeros(1), np.full(1, 2.0)).centre == 1.0


def test_one_gap_among_booleans_changes_nothing_but_the_counts():
    """pandas keeps the type bool only while nothing is missing, so bounds must not follow from it."""
    full = pd.DataFrame({"a": [0.5, 0.2, 0.1], "b": [True, False, True]})
    gap = full.astype({"b": object})
    gap.loc[0, "b"] = None
    for frame in (full, gap):
        with pytest.raises(ValueError, match="column 1 lacks one"):
            PrivateImputer(bounds={"a": (0, 1)}).fit(frame)
        assert PrivateImputer(bounds={"a": (0, 1), "b": (0, 1)}).fit(frame).statistics_.shape == (2,)
