"""The texts of all commands, and seeded models and releases of Python, stay as they are, whatever moves inside."""

from __future__ import annotations

import pytest

from tests.frozen.commands import session, stored
from tests.frozen.numbers_in_texts import same_numbers

EXPECTED = stored()


@pytest.fixture(scope="module")
def results():
    return session()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_command_prints_what_it_printed(results, name):
    expected, result = EXPECTED[name].splitlines(), results[name].strip("\n").splitlines()
    for line, other in zip(result, expected, strict=False):
        assert same_numbers(line, other), f"{line!r} instead of {other!r}"
    assert len(result) == len(expected)


def test_nothing_is_left_out(results):
    assert set(results) == set(EXPECTED)
