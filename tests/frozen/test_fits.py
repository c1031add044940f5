"""Seeded coefficients, events, digests and printed plans stay as they are, whatever moves inside the package."""

from __future__ import annotations

import json

import pytest

from tests.frozen.cases import STORED, cases, name_of, outcome
from tests.frozen.numbers_in_texts import same_numbers

EXPECTED = json.loads(STORED.read_text())


FROZEN = [case for case in cases() if name_of(case) in EXPECTED]  # a new solver is stored when it is released


def test_no_stored_case_is_lost():
    assert list(EXPECTED) == [name_of(case) for case in FROZEN]


@pytest.mark.parametrize("case", FROZEN, ids=name_of)
def test_a_seeded_run_gives_what_it_gave(case):
    expected, result = EXPECTED[name_of(case)], outcome(*case)
    assert set(result) == set(expected), result.get("refused")
    for name in set(expected) - {"weights", "event", "refused"}:
        assert result[name] == expected[name], name
    reasons = [each.get("refused", "").partition("; use one of")[0] for each in (result, expected)]
    assert reasons[0] == reasons[1]  # new solvers may join those that are named
    for name in {"weights", "event"} & set(expected):
        assert same_numbers(result[name], expected[name]), f"{name}: {result[name]} instead of {expected[name]}"


def test_other_numbers_are_noticed():
    assert same_numbers("2 x Gaussian(1.50000000000)", "2 x Gaussian(1.50000000001)")
    assert not same_numbers("2 x Gaussian(1.5)", "2 x Gaussian(1.5001)")
    assert not same_numbers("2 x Gaussian(1.5)", "3 x Gaussian(1.5)")
    assert not same_numbers("2 x Gaussian(1.5)", "2 x Laplace(1.5)")
