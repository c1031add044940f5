"""One fit, one plan: what is planned is what runs, on every way in."""

import numpy as np
import pytest

import discreet
from discreet import LogisticRegression, Ridge
from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, Target
from discreet.estimators.table_fit import FitRequest, fit_table
from discreet.problem.losses import Logistic
from discreet.problem.problem import Problem
from discreet.solvers import SOLVERS, Solver
from tests.cli_tools import make_table, run


@pytest.fixture
def plans(monkeypatch):
    """Every plan that a solver makes while the test runs."""
    made = []
    plan = Solver.plan
    assert not any("plan" in vars(solver) for solver in SOLVERS.values()), "a solver plans outside Solver.plan"

    def counted(self, *arguments):
        made.append(plan(self, *arguments))
        return made[-1]

    monkeypatch.setattr(Solver, "plan", counted)
    return made


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(500, 3))
    return X, np.where(X[:, 0] > 0, 1, -1)


@pytest.mark.parametrize("model", [LogisticRegression(classes=[-1, 1], bounds=(-1, 1)), Ridge(bounds=(-1, 1))])
def test_an_estimator_plans_once_and_runs_that_plan(plans, model):
    found = model.fit(*rows()).plan_
    assert [found.digest] == [plan.digest for plan in plans]


def test_solve_plans_once(plans):
    assert [discreet.solve(Problem(Logistic()), *rows(), "gd", bounds=(-1, 1)).plan] == plans


@pytest.mark.parametrize(("options", "count"), [(["--task", "classification"], 1), ([], 2)])
@pytest.mark.parametrize("ledger", [False, True])
def test_a_command_plans_once_or_once_for_each_answer(plans, tmp_path, options, count, ledger):
    make_table().to_csv(tmp_path / "table.csv", index=False)
    if ledger:
        discreet.Ledger(tmp_path / "budget.db").open("people", 1.0, 1e-6)
        options = [*options, "--ledger", "budget.db", "--dataset", "people", "--delta", "1e-6"]
    run("fit", "table.csv", "--target", "y", *options)
    assert len(plans) == count


@pytest.mark.parametrize(("task", "asked"), [("binary", "classification"), ("numbers", "regression")])
def test_the_plan_for_the_answer_is_the_one_that_runs(plans, tmp_path, task, asked):
    make_table(task=task).to_csv(tmp_path / "table.csv", index=False)
    schema = Schema(tuple(map(Column, "abc")), Target("y"))
    with open_table("table.csv") as file:
        done = fit_table(file, FitRequest(schema, parameters={"epsilon": 3.0}))
    assert done.task == asked
    assert [plan.problem.loss.classification for plan in plans if plan.digest == done.model.plan_.digest] == [
        asked == "classification"
    ]
    # The same facts and the same rest of the budget, whichever the answer.
    assert plans[0].public is plans[1].public
    assert plans[0].budget == plans[1].budget
