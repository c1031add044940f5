"""Which solver "auto" takes: a function of public facts."""

from __future__ import annotations

import math

import pytest

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers.choose import make_plan, make_solver


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "name"),
    [
        (45_312, 8, 1.0, "newton"),
        (300, 8, 10.0, "newton"),
        (300, 8, 1.0, "gd"),
        (10_000, 8, 0.1, "gd"),
        (45_312, 500, 1.0, "gd"),
        (300, 500, 1.0, "gd"),
    ],
)
def test_auto_follows_rows_columns_and_epsilon(loss, rows, columns, epsilon, name):
    budget = Budget(epsilon, 1.0 / rows**2)
    assert make_solver("auto", Problem(loss, L2(1e-3)), Public(rows, columns), budget).name == name


@pytest.mark.parametrize(
    ("loss", "columns", "sparse", "budget", "name"),
    [
        (Multinomial(3), 8, False, Budget(1.0, 1e-8), "gd"),
        (Logistic(), 1_000, True, Budget(1.0, 1e-8), "gd"),
        (Logistic(), 50_000, True, Budget(1.0, 1e-8), "cd"),
        (Logistic(), 1_000, False, Budget.pure(1.0), "cd"),
        (Logistic(), 8, False, Budget(math.inf, 1e-8), "cd"),
        (Logistic(), 0, False, Budget(1.0, 1e-8), "gd"),
    ],
)
def test_auto_follows_outputs_sparsity_and_the_kind_of_budget(loss, columns, sparse, budget, name):
    plan = make_plan("auto", Problem(loss, L2(1e-3)), Public(10_000, columns, sparse=sparse), budget)
    assert plan.solver.name == name


def test_the_plan_says_why_a_solver_was_taken():
    problem, public, budget = Problem(Logistic(), L2(1e-3)), Public(45_312, 500), Budget(1.0, 1e-8)
    plan = make_plan("auto", problem, public, budget)
    assert "500 columns" in plan.chosen_because
    assert plan.to_dict()["chosen_because"] == plan.chosen_because
    assert f"chosen because      {plan.chosen_because[:60]}" in str(plan)
    named = make_plan("gd", problem, public, budget)
    assert named.chosen_because == ""
    assert "chosen because" not in str(named)
    assert named.digest == plan.digest  # the reason changes nothing in a run
