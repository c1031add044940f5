"""The paid evaluations, replayed on their worst neighbours: they attain what they promise, and faults are found.

A replay tests the size of the noise at level 1e-6: 40 of them raise a false alarm in one run of 25,000.
"""

import pytest

from discreet.audit import replay
from discreet.audit.faults import halved_sensitivity
from discreet.fairness.certificates.record import PrivateCertificate
from discreet.fairness.evaluation.private_certificate import EvaluationRows
from discreet.metrics import ranking, released_sums
from discreet.privacy import mechanisms
from discreet.privacy.budget import Budget
from discreet.privacy.relation import Relation
from tests.evaluation_cases import BUDGET, counts_case, errors_case, gradient_case, scores_case

CASES = [counts_case, gradient_case]


def replayed(case):
    return replay(case.target, case.first, case.second)


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("budget", [BUDGET, Budget.pure(1.0)], ids=["gaussian", "pure"])
def test_the_largest_move_is_the_one_that_is_claimed(make, relation, budget):
    found = replayed(make(relation, budget))
    assert found.passed, str(found)
    assert len(found.releases) == 1
    assert found.largest_ratio == pytest.approx(1.0, abs=1e-6)
    assert found.attained == pytest.approx(found.promised, rel=1e-6)


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
