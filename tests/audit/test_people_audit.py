"""Audits of promises for whole persons: tables that differ in a person with ten rows.

Confidence 1 - 1e-6 per audit: a correct library is rejected in fewer than 1e-5 of the runs of this file.
"""

from __future__ import annotations

import pytest

from discreet.audit import replay
from discreet.audit.faults import persons_as_rows
from discreet.audit.planted import FAULTS
from discreet.audit.solver_cases import solver_case
from discreet.privacy.relation import Relation

CASES = [(name, relation) for name in ("gd-persons", "newton-persons") for relation in Relation]


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_the_stated_epsilon_is_attained_and_not_passed(name, relation):
    case = solver_case(name, relation)
    found = replay(case.plan, case.first, case.second)
    assert found.passed, str(found)
    assert case.plan.guarantee.unit == "person"
    assert found.largest_ratio > 0.99  # the person of ten rows moves a sum as far as one row may


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "relation"), [("gd-persons", Relation.REPLACE), ("newton-persons", Relation.ZERO_OUT)]
)
def test_many_runs_accept_the_promise_and_reject_noise_for_one_row(name, relation):
    case = solver_case(name, relation, runs=800)
    assert case.lower_bound() <= case.plan.guarantee.epsilon
    with persons_as_rows():
        assert case.lower_bound() > case.plan.guarantee.epsilon


def test_the_planted_fault_is_found():
    assert FAULTS["ten rows of a person as ten persons"]().passed
