"""Settings of such absurd size that noise could vanish or overflow are refused by name."""

from __future__ import annotations

from dataclasses import fields

import pytest

from discreet.solvers import SOLVERS

CLIPPED = [name for name, kind in SOLVERS.items() if "clip" in {field.name for field in fields(kind)}]


@pytest.mark.parametrize("clip", [1e308, 1e101, 1e-101, 5e-324])
@pytest.mark.parametrize("solver", CLIPPED)
def test_absurd_thresholds_are_refused(solver, clip):
    with pytest.raises(ValueError, match="clip must lie between 1e-100 and 1e"):
        SOLVERS[solver](clip=clip)


@pytest.mark.parametrize("solver", CLIPPED)
def test_sane_thresholds_are_taken(solver):
    assert SOLVERS[solver](clip=1e-9).clip == 1e-9
