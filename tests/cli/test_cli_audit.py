"""`discreet audit`: verdicts, exit codes, pictures and the page of results."""

from __future__ import annotations

import json

import pytest

from discreet.audit.page import BEGIN, END, planted_table, solver_table, write_results
from discreet.audit.planted import FaultAudit
from discreet.audit.suite import SolverAudit
from discreet.privacy.relation import Relation
from discreet.solvers import SOLVERS
from tests.cli_tools import run

SMALL = ("--rows", 30, "--columns", 2, "--bounds", "-1,1", "--pairs", 1)


def run_failing(*arguments):
    """A command that finds a broken promise: exit code 1 and no error line."""
    from typer.testing import CliRunner

    from discreet.cli.app import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 1
    assert result.stderr == ""
    return result


@pytest.mark.parametrize("more", [(), ("--estimator", "Ridge", "--solver", "gd", "--relation", "add_remove")])
def test_replay_says_what_was_compared(more):
    shown = run("audit", "replay", *SMALL, *more).stdout
    assert "row changed (huge): " in shown
    assert "every replay passed" in shown
    found = json.loads(run("audit", "replay", *SMALL, *more, "--json").stdout)
    assert found["passed"]
    assert len(found["replays"]) == 5
    assert all(entry["largest_ratio"] <= 1.0 + 1e-9 for entry in found["replays"])


def test_a_release_that_a_replay_does_not_see_is_an_error(monkeypatch):
    from discreet.audit.replays import loops

    cd = ("audit", "replay", *SMALL, "--solver", "cd")
    assert "every replay passed" in run(*cd).stdout
    monkeypatch.setattr(loops, "loop_patches", list)
    assert "does not see what this noise was added to: Gaussian.noise" in run(*cd, code=2).stderr


@pytest.mark.slow
def test_a_campaign_counts_releases_and_finds_what_is_planted(monkeypatch):
    from discreet.audit import campaign

    found = run("audit", "campaign", "--solver", "bolt-on").stdout
    assert "violations.** A wrong distance was planted in each of " in found
    assert "| bolt-on | add_remove | memory, sparse, persons |" in found
    assert "0 violations" in found
    assert "MISSED" not in found
    assert "must be one of " in run("audit", "campaign", "--solver", "magic", code=2).stderr
    missed = campaign.Tally(campaign.Cell("cd", Relation.REPLACE, "memory"), 1, 1, 0.5, (), None)
    monkeypatch.setattr(campaign, "run_campaign", lambda chosen: [missed])
    assert "MISSED" in run_failing("audit", "campaign", "--solver", "cd").stdout
    assert json.loads(run_failing("audit", "campaign", "--solver", "cd", "--json").stdout)[0]["wrong"] is None


@pytest.mark.slow
def test_solvers_are_audited_by_name():
    shown = run("audit", "solvers", "--solver", "cd", "--relation", "replace", "--runs", 1000).stdout
    assert "attained 1.0000" in shown
    assert "fault found at noise x" in shown
    assert shown.rstrip().endswith("passed")
    refused = run("audit", "solvers", "--solver", "sgd-single", "--relation", "add_remove", "--runs", 100).stdout
    assert "refused: " in refused
    refused = run("audit", "solvers", "--solver", "magic", code=2).stderr
    assert "must be one of " in refused
    assert all(f" {name}," in refused for name in SOLVERS)


def test_one_run_finds_a_tenth_of_the_noise():
    found = run_failing("audit", "one-run", "--noise", 0.1, "--canaries", 300)
    assert "epsilon 1 is promised" in found.stdout
    wrong = json.loads(run_failing("audit", "one-run", "--noise", 0.1, "--canaries", 300, "--json").stdout)
    assert wrong["epsilon"] > wrong["promised"]
    assert not wrong["passed"]


def test_attacks_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    curves, found = tmp_path / "curves.png", tmp_path / "found.png"
    small = ("--rows", 10, "--columns", 20, "--models", 2)
    shown = run("audit", "membership", "--epsilon", "inf", "--epsilon", 1, *small, "--plot", curves).stdout
    assert "| no privacy |" in shown
    more = ("--epsilon", "inf", "--epsilon", 1, "--attributes", 4, "--trials", 20)
    assert json.loads(run("audit", "reconstruction", *more, "--plot", found, "--json").stdout)["passed"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (curves, found))
    assert "exists" in run("audit", "membership", "--plot", curves, code=2).stderr


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "membership"),
        ("audit", "reconstruction"),
        ("account", "--gaussian", 5),
        ("fairness-plan", "--rows", 4_000, "--columns", 3, "--group", "a=9", "--at-most", 0.1),
        ("federated", "network"),
    ],
    ids=lambda words: words[0] + "-" + str(words[1]).strip("-"),
)
def test_without_matplotlib_a_plot_is_refused_in_one_line(command, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'discreet[plots]'" in run(*command, "--plot", tmp_path / "a.png", code=2).stderr


def test_results_go_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    fault = FaultAudit("replay", True, False, "nothing")
    failed = SolverAudit("cd", "replace", promised=1.0, epsilon=2.0, fault=0.5, problems=("runs show epsilon 2.000",))
    write_results(page, planted_table({"half": fault}) + "\n" + solver_table([failed]))
    text = page.read_text()
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| half | replay | accepted | MISSED | nothing |" in text
    assert "NO: runs show epsilon 2.000" in text
    assert "does not exist" in run("audit", "report", "--page", tmp_path / "none.md", code=2).stderr
