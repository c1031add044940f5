"""`discreet federated`: plans in words and as files, and simulated runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.federated import FederatedPlan
from tests.cli_tools import make_table, run

FAST = ("--clients", 12, "--rounds", 4, "--columns", 3, "--rows", 8, "--seed", 1)


def test_a_plan_states_the_total_before_the_first_round(tmp_path):
    path = tmp_path / "plan.json"
    asked = ("federated", "plan", "--clients", 100, "--columns", 20, "--epsilon", 2, "--model", "central")
    shown = run(*asked, "--plan", path).stdout
    assert "epsilon = 2, delta = 0.0001   <- the budget" in shown
    written = FederatedPlan.from_dict(json.loads(path.read_text()))
    assert written.clients == 100
    assert json.loads(run(*asked, "--json").stdout) == written.to_dict()
    assert "exists" in run(*asked, "--plan", path, code=2).stderr
    run(*asked, "--plan", path, "--force")


def test_the_names_of_appfl_are_understood():
    shown = run(
        *("federated", "plan", "--num-clients", 50, "--num-global-epochs", 7, "--clip-value", 0.25, "--columns", 2)
    ).stdout
    assert "50, of which 50 are asked in each of 7 rounds" in shown
    assert "to norm 0.25" in shown


@pytest.mark.parametrize("unit", ["client", "record"])
@pytest.mark.parametrize("model", ["local", "central"])
def test_a_simulation_runs_and_says_what_is_not_private(unit, model):
    shown = run("federated", "simulate", *FAST, "--unit", unit, "--model", model).stdout
    assert "not private, on rows that may be looked at" in shown
    assert "held-out rows" in shown


@pytest.mark.parametrize("loss", ["squared", "huber", "hinge"])
def test_a_simulation_without_noise_reaches_the_optimum(loss):
    asked = ("federated", "simulate", *FAST, "--epsilon", "inf", "--clip", 100, "--gamma", 3, "--loss", loss)
    result = json.loads(run(*asked, "--rounds", 150, "--json").stdout)["result"]
    assert result["objective"] - result["best_objective"] < 1e-3
    assert result["score_is"] == ("accuracy" if loss == "hinge" else "R^2")


def test_lost_answers_and_rounds_that_are_not_used_are_counted():
    asked = ("federated", "simulate", *FAST, "--dropout", 0.5, "--json")
    result = json.loads(run(*asked).stdout)["result"]
    assert result["missing_answers"] > 5
    assert result["rounds"] == 4
    assert result["unused_rounds"] < 4
    central = json.loads(run(*asked, "--model", "central").stdout)["result"]
    assert (central["rounds"], central["unused_rounds"]) == (4, 4)


def test_a_table_is_split_by_a_column_or_at_random(tmp_path):
    frame = make_table(300).assign(site=np.arange(300) % 5)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    asked = ("federated", "simulate", "--table", path, "--target", "y", "--bounds", "-60,60", "--classes", "0,1")
    asked = (*asked, "--rounds", 3, "--seed", 0, "--json")
    by = json.loads(run(*asked, "--split-by", "site").stdout)
    assert by["plan"]["clients"] == 5
    assert by["plan"]["public"]["columns"] == 3
    assert by["result"]["held_out_rows"] == 60
    evenly = json.loads(run(*asked, "--clients", 10).stdout)
    assert evenly["plan"]["public"]["columns"] == 4
    undeclared = run("federated", "simulate", "--table", path, "--target", "y", "--clients", 4, "--rounds", 2)
    assert "the bounds of the columns were read from the rows" in undeclared.stderr
    assert "the classes were read from the rows" in undeclared.stderr


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (("--split-by", "nowhere", "--target", "y"), "no column 'nowhere'"),
        (("--split-by", "site", "--target", "y", "--clients", 3), "leave --clients out"),
        ((), "--target NAME"),
        (("--target", "b"), "values"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, extra, message):
    path = tmp_path / "table.csv"
    make_table(40).assign(site=1).to_csv(path, index=False)
    assert message in run("federated", "simulate", "--table", path, *extra, code=2).stderr
