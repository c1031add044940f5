"""`discreet fairness-plan`: three questions, one picture, and what it refuses; no table is read."""

import json

import pytest

from tests.cli_tools import run

GROUPS = ("--group", "men=25000", "--group", "women=20000")
SIZE = ("--rows", 400_000, "--columns", 10)
PROVED = ("--solver", "output-perturbation", "--ridge", 0.01)


def test_the_smallest_epsilon_is_found_and_explained():
    text = run("fairness-plan", *SIZE, *GROUPS, *PROVED, "--at-most", 0.02).stdout
    assert "a change of every group of at most 0.02, with probability 0.99" in text.splitlines()[0]
    for part in ("law of the noise    proved", "women, label 1", "assumed: in each group", "compared with:"):
        assert part in text


def test_the_default_solver_has_a_prediction_that_is_named_so():
    text = run("fairness-plan", *SIZE, *GROUPS, "--at-most", 0.02, "--notion", "demographic parity").stdout
    assert "predicted, not proved" in text.splitlines()[0]
    assert "on average over the noise" in text


def test_epsilon_harm_and_rows_agree():
    assumed = (*GROUPS, *PROVED, "--delta", 1e-9, "--kappa", 0.3, "--base-rate", "men=0.4", "--base-rate", "women=0.3")
    answer = json.loads(run("fairness-plan", *SIZE, *assumed, "--at-most", 0.02, "--json").stdout)
    assert answer["reachable"]
    there = ("--epsilon", answer["epsilon"])
    harm = json.loads(run("fairness-plan", *SIZE, *assumed, *there, "--json").stdout)
    assert harm == answer["harm"]
    rows = json.loads(run("fairness-plan", "--columns", 10, *assumed, *there, "--at-most", 0.02, "--json").stdout)
    assert rows["rows"] == pytest.approx(400_000, rel=1e-3)
    assert [group["group"] for group in harm["groups"]] == ["men", "women"]


@pytest.mark.slow
def test_other_assumptions_change_the_answer():
    def epsilon(*assumed):
        found = run("fairness-plan", *SIZE, *GROUPS, *PROVED, "--at-most", 0.02, "--json", *assumed)
        return json.loads(found.stdout)["epsilon"]

    usual = epsilon()
    assert usual == epsilon("--deviation", 2, "--base-rate", 0.5)
    assert epsilon("--auc", 0.7) > usual > epsilon("--auc", 0.95)
    assert epsilon("--deviation", "men=2", "--deviation", "women=1") > usual
    assert epsilon("--failure", 1e-6) > usual > epsilon("--mode", "expected")
    assert epsilon("--aggregate") < usual < epsilon("--row-norm", 10)
    assert epsilon("--relation", "add_remove") < usual < epsilon("--notion", "equalized odds")


def test_the_picture_is_drawn_and_not_overwritten(tmp_path, monkeypatch):
    from discreet.fairness.harm import search as harm_plots

    monkeypatch.setattr(harm_plots, "EPSILONS", 3)
    monkeypatch.setattr(harm_plots, "SIZES", 2)
    monkeypatch.setattr(harm_plots, "SHARES", (0.5, 0.1))
    path = tmp_path / "harm.png"
    drawn = ("fairness-plan", *SIZE, *GROUPS, *PROVED, "--at-most", 0.02, "--plot", path)
    run(*drawn)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "exists" in run(*drawn, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SIZE, "--group", "men", "--at-most", 0.1), "NAME=NUMBER"),
        ((*SIZE, "--group", "a=1", "--group", "a=2", "--at-most", 0.1), "once for each group"),
        ((*SIZE, "--group", "a=x", "--group", "b=2", "--at-most", 0.1), "whole number"),
        ((*SIZE, "--group", "a=5", "--at-most", 0.1), "compares groups"),
        ((*SIZE, *GROUPS), "--at-most"),
        (("--columns", 3, *GROUPS, "--at-most", 0.1), "--rows"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--epsilon", 1), "tells the harm"),
        (("--columns", 3, *GROUPS, "--at-most", 0.1, "--epsilon", 1, "--plot", "x.png"), "--plot"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--ridge", 0.1), "output-perturbation"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--mode", "bound"), "no theorem"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--kappa", 1, "--auc", 0.8), "leave out"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--kappa", "many"), "must be a number"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--base-rate", "men=0.3"), "says nothing about group 'women'"),
        ((*SIZE, *GROUPS, "--at-most", 0.1, "--estimator", "Ridge"), "--estimator"),
        ((*SIZE, *GROUPS, "--epsilon", "inf", *PROVED), "infinite"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    assert message in run("fairness-plan", *arguments, code=2).stderr
