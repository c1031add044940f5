"""Which solver "auto" takes: a function of public facts."""

from __future__ import annotations

import math

import pytest

from discreet.data.public import Public
from discreet.privacy.budget import Budget
from discreet.problem.losses import Logistic, Multinomial, Squared
from discreet.problem.penalties import L2
from discreet.problem.problem import Problem
from discreet.solvers.run import make_plan, make_solver

LOGISTIC, SQUARED, CLASSES = Logistic(), Squared(), Multinomial(3)
PURE, INFINITE = Budget.pure(1.0), Budget(math.inf, 1e-8)


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED, CLASSES], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    ("rows", "columns", "epsilon", "labels", "classes", "target"),
    [
        (45_312, 8, 1.0, "newton", "newton", "newton"),
        (1_600, 1_000, 1.0, "screened", "screened", "screened"),  # nothing of the second moment would be seen
        (100, 1_000, 0.1, "adaptive", "adaptive", "newton"),  # a constant, of a target by plan
        (45_312, 3_000, 10.0, "gd", "adaptive", "gd"),
        (3_000, 500, 0.5, "screened", "screened", "screened"),
    ],
)
def test_auto_follows_rows_columns_and_epsilon(loss, rows, columns, epsilon, labels, classes, target):
    budget, name = Budget(epsilon, 1.0 / rows**2), {LOGISTIC: labels, CLASSES: classes, SQUARED: target}[loss]
    assert make_solver("auto", Problem(loss, L2(1e-3)), Public(rows, columns), budget).name == name


@pytest.mark.parametrize(
    ("rows", "epsilon", "two", "several"),
    [
        (300, 0.1, "adaptive", "adaptive"),
        (300, 1.0, "adaptive", "adaptive"),
        (300, 10.0, "newton", "adaptive"),
        (3_000, 0.3, "newton", "adaptive"),
        (45_312, 3.0, "newton", "newton"),
    ],
)
def test_auto_lets_released_numbers_decide_where_noise_is_strong(rows, epsilon, two, several):
    budget = Budget(epsilon, 1.0 / rows**2)
    for loss, name in ((LOGISTIC, two), (CLASSES, several)):
        plan = make_plan("auto", Problem(loss, L2(1e-3)), Public(rows, 8), budget)
        assert plan.solver.name == name
        assert ("released numbers" in plan.chosen_because) == (name == "adaptive")
        assert not plan.settings.is_constant


def test_the_reason_does_not_claim_to_see_what_the_noise_hides():
    problem, budget = Problem(CLASSES), Budget(0.1, 1e-6)
    plan = make_plan("auto", problem, Public(142, 13), budget)
    assert plan.solver.name == "adaptive"
    assert "will be seen" not in plan.chosen_because
    assert "will be seen" in make_plan("auto", problem, Public(100_000, 13), budget).chosen_because


def test_auto_takes_single_columns_of_a_sparse_table_that_is_all_noise():
    budget = Budget.gdp(0.25)  # under which columns are not screened
    for sparse, name in ((True, "cd"), (False, "adaptive")):
        public = Public(1_600, 1_000, sparse=sparse)
        assert make_solver("auto", Problem(LOGISTIC), public, budget).name == name


@pytest.mark.parametrize(
    ("loss", "columns", "public", "budget", "name"),
    [
        (LOGISTIC, 500, {}, Budget(1.0, 1e-8), "adaptive"),
        (SQUARED, 500, {}, Budget(1.0, 1e-8), "gd"),
        (CLASSES, 500, {}, Budget(1.0, 1e-8), "adaptive"),
        (LOGISTIC, 1_000, {"sparse": True}, Budget(1.0, 1e-8), "adaptive"),
        (LOGISTIC, 50_000, {"sparse": True}, Budget(1.0, 1e-8), "screened"),
        (LOGISTIC, 50_000, {"sparse": True}, Budget.gdp(0.2), "cd"),
        (LOGISTIC, 50_000, {"sparse": True, "stored": True}, Budget(1.0, 1e-8), "adaptive"),
        (LOGISTIC, 1_000, {}, PURE, "cd"),
        (LOGISTIC, 1_000, {"stored": True}, PURE, "gd"),
        (LOGISTIC, 8, {}, INFINITE, "cd"),
        (LOGISTIC, 8, {"stored": True}, INFINITE, "gd"),
        (LOGISTIC, 0, {}, Budget(1.0, 1e-8), "gd"),
    ],
)
def test_auto_follows_outputs_sparsity_and_the_kind_of_budget(loss, columns, public, budget, name):
    plan = make_plan("auto", Problem(loss, L2(1e-3)), Public(20_000, columns, **public), budget)
    assert plan.solver.name == name
    assert plan.chosen_because


def test_the_plan_says_why_a_solver_was_taken():
    problem, public, budget = Problem(SQUARED, L2(1e-3)), Public(45_312, 3_000), Budget(1.0, 1e-8)
    plan = make_plan("auto", problem, public, budget)
    assert "3,000 columns" in plan.chosen_because
    assert plan.to_dict()["chosen_because"] == plan.chosen_because
    assert f"chosen because      {plan.chosen_because[:60]}" in str(plan)
    named = make_plan("gd", problem, public, budget)
    assert named.chosen_because == ""
    assert "chosen because" not in str(named)
    assert named.digest == plan.digest  # the reason changes nothing in a run
