"""Which solver "auto" takes: a function of public facts."""

from __future__ import annotations

import pytest

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.losses import Logistic, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers.choose import make_solver


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "name"),
    [
        (45_312, 8, 1.0, "newton"),
        (300, 8, 10.0, "newton"),
        (300, 8, 1.0, "gd"),
        (10_000, 8, 0.1, "gd"),
        (45_312, 500, 1.0, "cd"),
        (100, 500, 1.0, "cd"),
        (3_000, 500, 0.5, "screened"),
    ],
)
def test_auto_follows_rows_columns_and_epsilon(loss, rows, columns, epsilon, name):
    budget = Budget(epsilon, 1.0 / rows**2)
    assert make_solver("auto", Problem(loss, L2(1e-3)), Public(rows, columns), budget).name == name
