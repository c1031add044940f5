"""Releases that are no fit of one solver, replayed on their worst neighbours: promises are kept, faults are found.

A replay tests the size of the noise at level 1e-6: 100 of them raise a false alarm in one run of 10,000.
"""

import pytest

from discreet.audit import replay
from discreet.audit.campaign import CASES
from discreet.audit.faults import halved_sensitivity, with_wrong_distance
from discreet.audit.release_cases import (
    BUDGET,
    counts_case,
    errors_case,
    federated_case,
    gradient_case,
    refusal,
    scores_case,
    smoothness_case,
)
from discreet.fairness.certificates.record import PrivateCertificate
from discreet.fairness.evaluation.private_certificate import EvaluationRows
from discreet.federated.client import Client
from discreet.federated.plan import FederatedPlan
from discreet.metrics import ranking, released_sums
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation

SINGLE = [counts_case, gradient_case, smoothness_case]  # one release each
EVERY = [(name, relation) for name in CASES for relation in Relation]
POSSIBLE = [(name, relation) for name, relation in EVERY if refusal(CASES[name], relation) is None]


def replayed(case):
    return replay(case.target, case.first, case.second)


@pytest.mark.parametrize("make", SINGLE)
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [BUDGET, Budget.pure(1.0)], ids=["gaussian", "pure"])
def test_the_largest_move_is_the_one_that_is_claimed(make, relation, budget):
    found = replayed(make(relation, budget))
    assert found.passed, str(found)
    assert len(found.releases) == 1
    assert found.largest_ratio == pytest.approx(1.0, abs=1e-6)
    assert found.attained == pytest.approx(found.promised, rel=1e-6)


def test_every_case_is_possible_under_some_relation():
    assert {name for name, _ in POSSIBLE} == set(CASES)
    assert len(POSSIBLE) == 21


@pytest.mark.parametrize(("name", "relation"), POSSIBLE)
def test_a_release_passes_and_a_wrong_distance_is_found(name, relation):
    """The right sensitivity is accepted; 0.66 of it, and 0.5, are found by the distance that a statistic moves."""
    case = CASES[name](relation)
    found = replayed(case)
    assert found.passed, str(found)
    assert found.largest_ratio > 0.75
    assert found.attained <= found.promised * (1.0 + 1e-6)
    for factor in (0.66, 0.5):
        wrong = replay(with_wrong_distance(case.target, factor), case.first, case.second)
        assert "moved by" in wrong.problems[0]


@pytest.mark.parametrize("settings", [{"per_round": 2}, {"per_round": 2, "unit": "client", "model": "central"}])
@pytest.mark.parametrize("relation", [Relation.REPLACE, Relation.ZERO_OUT])
def test_a_federated_run_that_asks_some_clients_passes(settings, relation):
    found = replayed(federated_case(relation, **settings))
    assert found.passed, str(found)
    assert 0.0 < found.attained <= found.promised * (1.0 + 1e-6)


def test_a_client_that_answers_with_its_exact_gradient_is_found(monkeypatch):
    exact = []
    gradient, within = Client._gradient, FederatedPlan.within_bound
    monkeypatch.setattr(Client, "_gradient", lambda *args: exact.append(gradient(*args)) or exact[-1])
    monkeypatch.setattr(FederatedPlan, "within_bound", lambda plan, told: within(plan, told) + 1e-9 * exact[-1])
    found = replayed(federated_case(Relation.REPLACE))
    assert any("messages differs" in problem for problem in found.problems)


@pytest.mark.parametrize(("make", "least"), [(errors_case, 0.3), (scores_case, 0.95)])
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [BUDGET, Budget.pure(1.0)], ids=["gaussian", "pure"])
def test_a_look_and_the_sums_that_follow_from_it_keep_what_is_claimed(make, least, relation, budget, monkeypatch):
    monkeypatch.setattr(ranking, "rank_bins", lambda *_: (2, 2))  # the table is too small for it
    found = replayed(make(relation, budget))
    assert found.passed, str(found)
    assert len(found.releases) == 2
    assert found.largest_ratio == pytest.approx(1.0, abs=1e-4)
    assert least * found.promised < found.attained <= found.promised * (1.0 + 1e-6)


@pytest.mark.parametrize("make", [errors_case, scores_case])
def test_a_look_with_too_little_noise_is_found(make, monkeypatch):
    monkeypatch.setattr(ranking, "rank_bins", lambda *_: (2, 2))
    right = released_sums.sensitivity_of
    monkeypatch.setattr(released_sums, "sensitivity_of", lambda parts, relation: right(parts, relation) * 0.5)
    assert "moved by" in replayed(make(Relation.REPLACE)).problems[0]


def test_a_forgotten_factor_of_two_is_found(monkeypatch):
    with halved_sensitivity():
        assert "moved by" in replayed(gradient_case(Relation.REPLACE)).problems[0]
    right = mechanisms.one_hot_counts
    monkeypatch.setattr(mechanisms, "one_hot_counts", lambda relation, columns: right(Relation.ZERO_OUT, columns))
    assert "moved by" in replayed(counts_case(Relation.REPLACE)).problems[0]


def test_a_row_that_is_counted_twice_is_found(monkeypatch):
    exact = EvaluationRows.counts
    monkeypatch.setattr(EvaluationRows, "counts", lambda *args: 2.0 * exact(*args))
    assert "moved by" in replayed(counts_case(Relation.ADD_REMOVE)).problems[0]


def test_a_number_that_bypasses_the_noise_is_found(monkeypatch):
    seen, exact, record = [], EvaluationRows.counts, PrivateCertificate.of_statements

    def remembered(*args):
        seen.append(exact(*args))
        return seen[-1]

    def with_a_count(statements, failure, told, radius, *rest):
        return record(statements, failure, told, radius + seen[-1].sum(), *rest)

    monkeypatch.setattr(EvaluationRows, "counts", remembered)
    assert replayed(counts_case(Relation.ADD_REMOVE)).passed
    monkeypatch.setattr(PrivateCertificate, "of_statements", with_a_count)
    assert any("radius differs" in problem for problem in replayed(counts_case(Relation.ADD_REMOVE)).problems)
