"""`discreet evaluate`: the figures of the library, paid for, with errors of one line."""

import json

import pytest

from discreet import Ledger, load_model
from discreet.metrics import evaluate
from tests.cli_tools import make_table, run

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning", "ignore::discreet.UtilityWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier and a regressor, and rows that neither has seen."""
    path = tmp_path_factory.mktemp("evaluate")
    for task, more in (("binary", ("--classes", "0,1")), ("regression", ("--y-bounds", "-60,60"))):
        table = make_table(3_000, task)
        table[:2_000].to_csv(path / f"{task}_train.csv", index=False)
        table[2_000:].to_csv(path / f"{task}.csv", index=False)
        out = ("--bounds", "-100,100", "--out", path / f"{task}.json", "--quiet")
        run("fit", path / f"{task}_train.csv", "--target", "y", "--epsilon", "4", *more, *out)
    return path


@pytest.fixture(autouse=True)
def _in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_the_figures_are_those_of_the_library():
    table = make_table(3_000)[2_000:]
    wanted = evaluate(load_model("binary.json"), table[["a", "b", "c"]], table["y"], 0.5, random_state=3)
    found = json.loads(run("evaluate", "binary.json", "binary.csv", "--epsilon", "0.5", "--seed", "3", "--json").stdout)
    told = json.loads(json.dumps(wanted.to_dict()))
    assert found["figures"] == told["figures"]
    assert found["roc"] == told["roc"]
    assert found["guarantee"]["epsilon"] == 0.5
    text = run("evaluate", "binary.json", "binary.csv", "--epsilon", "0.5", "--seed", "3").stdout
    assert f"{wanted['accuracy'].low:.4g}" in text
    assert "better than that by" in text
    assert "Cost: epsilon 0.5" in text


def test_a_regression_and_its_options():
    wide = json.loads(run("evaluate", "regression.json", "regression.csv", "--epsilon", "1", "--json").stdout)
    assert wide["settings"]["limits_of_the_target"] == [-60.0, 60.0]
    options = ("--largest-error", "20", "--relation", "add_remove", "--public-rows", "900")
    tight = json.loads(
        run("evaluate", "regression.json", "regression.csv", "--epsilon", "1", *options, "--json").stdout
    )
    assert tight["guarantee"]["relation"] == "add_remove"
    noise = [found["figures"]["mean_squared_error"]["noise_std"] for found in (wide, tight)]
    assert noise[1] < 0.5 * noise[0]  # errors of up to 56 were seen in the first
    assert "share_of_rows_with_larger_errors_at_most" in wide["settings"]


def test_the_ledger_pays():
    Ledger("budget.db").open("patients", epsilon=1.0, delta=1e-6)
    booked = ("--ledger", "budget.db", "--dataset", "patients", "--delta", "1e-6")
    run("evaluate", "binary.json", "binary.csv", "--epsilon", "0.8", *booked)
    assert Ledger("budget.db").spent("patients") == pytest.approx(0.8, abs=0.01)
    refused = run("evaluate", "binary.json", "binary.csv", "--epsilon", "0.8", *booked, code=2)
    assert "patients" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("binary.json", "binary.csv"), "Missing option '--epsilon'"),
        (("binary.json", "gone.csv", "--epsilon", "1"), "gone.csv"),
        (("binary.csv", "binary.csv", "--epsilon", "1"), "is not a model of discreet"),
        (("binary.json", "binary.csv", "--epsilon", "-1"), "epsilon must be positive"),
        (("binary.json", "binary.csv", "--epsilon", "1", "--figures", "auc"), "figures must be among"),
        (("binary.json", "binary.csv", "--epsilon", "1", "--confidence", "2"), "confidence must be"),
        (("regression.json", "regression.csv", "--epsilon", "1", "--y-bounds", "3"), "--y-bounds must be two numbers"),
        (("binary.json", "binary.csv", "--epsilon", "1", "--ledger", "budget.db"), "belong together"),
    ],
)
def test_errors_are_one_line(arguments, message):
    assert message in run("evaluate", *arguments, code=2).stderr
