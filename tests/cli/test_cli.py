"""The command line: private by default, one line per error, and files that fit together."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import discreet
from discreet import load_model
from discreet._common.text import csv_cell
from discreet.cli.app import app
from discreet.metrics import load_evaluation
from discreet.privacy import accounting
from discreet.privacy.budget import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.relation import Relation
from tests.cli_tools import make_table, run
from tests.frozen.commands import SESSION

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    make_table().to_csv(path, index=False)
    return path


def in_process(*arguments, folder):
    command = [sys.executable, "-m", "discreet.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_help_is_cheap():
    code = (
        "import sys\nfrom discreet.cli.app import app\n"
        "try:\n    app(['{}', '--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print(' '.join(sys.modules), file=sys.stderr)"
    )
    for command in ("fit", "demo"):
        done = subprocess.run([sys.executable, "-c", code.format(command)], capture_output=True, text=True, check=True)
        assert "Example: discreet" in done.stdout
        heavy = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "numba", "dp_accounting", "sqlalchemy"}
        assert not heavy & set(done.stderr.split())


def commands(group, path=()):
    """Every command and its words, those of groups included."""
    for name, command in group.commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(words):
    assert COMMANDS[words].epilog.startswith(f"Example: discreet {' '.join(words)}")
    assert COMMANDS[words].help


@pytest.mark.parametrize("name", sorted({words[0] for words in COMMANDS}))
def test_every_command_is_on_its_page_and_its_texts_are_frozen(name):
    assert f"\n## {name}\n" in PAGE.read_text()
    assert any(line.split()[0] == name for line in SESSION.strip().splitlines())


def test_the_version_is_told():
    assert run("--version").stdout.strip() == discreet.__version__


@pytest.mark.slow
def test_a_real_process_fits_and_predicts(tmp_path, table):
    done = in_process("fit", table, "--target", "y", "--epsilon", "2", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "LogisticRegression for 'y' (classification)" in done.stdout
    done = in_process("predict", "model.json", table, "--proba", "--out", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    predictions = pd.read_csv(tmp_path / "out.csv")
    assert list(predictions) == ["prediction", "probability_0", "probability_1"]
    assert set(predictions["prediction"]) <= {0, 1}
    np.testing.assert_allclose(predictions["probability_0"] + predictions["probability_1"], 1.0)


def test_a_real_process_fails_in_one_line(tmp_path):
    done = in_process("fit", "absent.csv", "--target", "y", folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: absent.csv: No such file or directory\n"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_predictions_are_those_of_the_loaded_model(tmp_path, form):
    path = tmp_path / f"table.{form}"
    frame = make_table(task="number")
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    run("fit", path, "--target", "y", "--quiet", "--seed", 1)
    printed = json.loads(run("predict", "model.json", path, "--json").stdout)["prediction"]
    np.testing.assert_allclose(printed, load_model("model.json").predict(frame[["a", "b", "c"]]), rtol=1e-12)
    # A regression on a clear signal explains it: private, yet of use. Seeded, so it cannot fail by chance.
    assert np.corrcoef(printed, frame["y"])[0, 1] > 0.7


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_what_is_paid_for_is_printed_where_its_file_cannot_be_written(command, tmp_path, monkeypatch):
    """A disk that fills up after the rows were read; a file that was there stays as it was."""
    make_table(task="number").to_csv("t.csv", index=False)
    run("ledger", "open", "--ledger", "budget.db", "--dataset", "t", "--epsilon", 9, "--delta", 1e-5)
    run("fit", "t.csv", "--target", "y", "--quiet")
    (tmp_path / "out.json").write_text("older")
    paid = ["--ledger", "budget.db", "--dataset", "t", "--out", "out.json", "--force"]
    call = {
        "fit": ["fit", "t.csv", "--target", "y"],
        "evaluate": ["evaluate", "model.json", "t.csv", "--epsilon", "1"],
    }[command]

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        done = CliRunner().invoke(app, [*call, *paid])
    assert done.exit_code == 2
    assert "out.json: No space left on device; it was not written; it is paid for, and printed" in done.stderr
    assert (tmp_path / "out.json").read_text() == "older"
    assert not (tmp_path / "out.json.new").exists()
    (tmp_path / "kept.json").write_text(done.stdout)
    (load_model if command == "fit" else load_evaluation)("kept.json")
    assert {entry.status for entry in Ledger("budget.db").entries("t")} == {"committed"}


def test_no_label_is_a_formula_to_a_spreadsheet(tmp_path):
    """A text that would be run gets an apostrophe; numbers written as texts do not, nor do numbers."""
    labels = ["=cmd()", "+1 week", "-2", "@sum", "\t=1", "\ufeff\u200b\uff1d1", "\ufe62 1", "a;=1\n@b", "a, -b", "ill"]
    safe = [
        "'=cmd()",
        "'+1 week",
        "-2",
        "'@sum",
        "'\t'=1",
        "'\ufeff\u200b\uff1d1",
        "'\ufe62 1",
        "a;'=1\n'@b",
        *labels[-2:],
    ]
    assert [csv_cell(label) for label in labels] == safe
    rows = range(400)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{x},{'=cmd()' if x > 200 else 'ill'}\n" for x in rows))
    run("fit", "t.csv", "--target", "y", "--epsilon", 50, "--classes", "=cmd(),ill", "--quiet", "--seed", 1)
    run("predict", "model.json", "t.csv", "--out", "p.csv")
    assert set((tmp_path / "p.csv").read_text().splitlines()[1:]) == {"'=cmd()", "ill"}


def test_predict_finds_columns_by_name_and_needs_them_all(table, tmp_path):
    run("fit", table, "--target", "y", "--quiet")
    frame = make_table().assign(extra="ignored")
    frame[["extra", "c", "b", "a"]].to_csv(tmp_path / "shuffled.csv", index=False)
    same = run("predict", "model.json", table).stdout
    assert run("predict", "model.json", "shuffled.csv").stdout == same
    frame[["a", "b"]].to_csv(tmp_path / "short.csv", index=False)
    assert "no column 'c'" in run("predict", "model.json", "short.csv", code=2).stderr


@pytest.mark.parametrize(("task", "kind"), [("binary", "LogisticRegression"), ("number", "Ridge")])
@pytest.mark.parametrize("delta", ["1e-6", "0"])
def test_an_unknown_task_is_asked_for_and_paid_for(tmp_path, task, kind, delta):
    """1500 rows at epsilon 8: the threshold is over 15 noise scales away, so the answer is sure (below 1e-6)."""
    make_table(task=task).to_csv(tmp_path / "table.csv", index=False)
    said = json.loads(run("fit", "table.csv", "--target", "y", "--epsilon", 8, "--delta", delta, "--json").stdout)
    assert said["estimator"] == kind
    assert said["task_was_asked"]
    promise = load_model("model.json").guarantee_
    assert (promise.epsilon, promise.delta) == (8.0, float(delta))
    assert accounting.fits(promise.event, Budget(8.0, float(delta)), Relation.REPLACE)
    # The event counts more than the model's own plan: the question is inside.
    plan = accounting.event_from_dict(said["plan"]["event"])
    assert promise.certified.epsilon > accounting.epsilon_of(plan, float(delta), Relation.REPLACE)


@pytest.mark.parametrize(
    "options",
    [["--task", "classification"], ["--classes", "0,1"], ["--estimator", "LinearSVC"], ["--y-bounds", "0,1"]],
)
def test_a_declared_task_costs_nothing(table, options):
    said = json.loads(run("fit", table, "--target", "y", *options, "--json").stdout)
    assert not said["task_was_asked"]
    assert load_model("model.json").guarantee_.event == accounting.event_from_dict(said["plan"]["event"])
    assert said["plan"]["budget"]["epsilon"] == 1.0


def test_the_ledger_counts_question_and_model(table, tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1.0, 1e-6)
    pay = ["--ledger", "budget.db", "--dataset", "people", "--target", "y", "--delta", "1e-6"]
    run("fit", table, *pay, "--epsilon", "0.6")
    assert [entry.status for entry in ledger.entries("people")] == ["committed"] * 2
    assert ledger.spent("people") == pytest.approx(0.6, rel=0.02)
    assert ledger.spent("people") <= 0.6 * (1.0 + 1e-9)
    spent = ledger.spent("people")
    refused = run("fit", table, *pay, "--out", "second.json", code=2)
    assert "does not cover this" in refused.stderr
    assert ledger.spent("people") == spent  # the question was not asked either
    assert not (tmp_path / "second.json").exists()


def test_a_whole_budget_can_be_spent_to_the_last(table, tmp_path):
    Ledger(tmp_path / "budget.db").open("people", 1.0, 1e-6)
    run("fit", table, "--target", "y", "--delta", "1e-6", "--ledger", "budget.db", "--dataset", "people")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--ledger", "budget.db"], "--dataset"),
        (["--ledger", "budget.db", "--dataset", "strangers"], "strangers"),
        (["--ledger", "nowhere/budget.db", "--dataset", "x"], "folder"),
    ],
)
def test_ledger_mistakes_are_named(table, options, word):
    assert word in run("fit", table, "--target", "y", *options, code=2).stderr


BAD_OPTIONS = [
    (["--epsilon", "0"], "epsilon"),
    (["--epsilon", "-1"], "epsilon"),
    (["--epsilon", "nan"], "epsilon"),
    (["--epsilon", "much"], "--epsilon"),
    (["--delta", "1"], "delta"),
    (["--delta", "-0.1"], "delta"),
    (["--solver", "magic"], "solver"),
    (["--solver", "sgd", "--delta", "0"], "pure"),
    (["--solver", "sgd", "--bounds", "-99,99", "--epsilon", "0.1"], "--task"),
    (["--estimator", "Magic"], "estimator"),
    (["--task", "magic"], "--task"),
    (["--task", "regression", "--classes", "0,1"], "do not go together"),
    (["--estimator", "Ridge", "--task", "classification"], "do not go together"),
    (["--classes", "0,1", "--y-bounds", "0,1"], "--y-bounds"),
    (["--classes", "1"], "classes"),
    (["--classes", "0,2"], "classes"),
    (["--bounds", "3"], "--bounds"),
    (["--bounds", "3,1"], "--bounds"),
    (["--bounds", "0,inf"], "--bounds"),
    (["--bounds", "-1e200,1e200"], "bounds"),
    (["--y-bounds", "a,b"], "--y-bounds"),
    (["--relation", "near"], "--relation"),
    (["--relation", "add_remove"], "--public-rows"),
    (["--alpha", "-1"], "alpha"),
    (["--estimator", "LinearRegression", "--alpha", "1"], "alpha"),
    (["--seed", "-1"], "--seed"),
    (["--schema", "absent.json"], "absent.json"),
    (["--out", "absent/model.json"], "--out"),
    (["--magic"], "--magic"),
]


@pytest.mark.parametrize(("options", "word"), BAD_OPTIONS)
def test_a_bad_option_is_one_line_that_names_it(table, tmp_path, options, word):
    assert word in run("fit", table, "--target", "y", *options, code=2).stderr
    assert not (tmp_path / "model.json").exists()


def with_cell(frame, column, value):
    changed = frame.astype(object)
    changed.loc[7, column] = value
    return changed


BAD_TABLES = [
    (lambda t: with_cell(t, "b", None), "'b' has missing values"),
    (lambda t: with_cell(t, "b", "inf"), "'b' contains infinity"),
    (lambda t: with_cell(t, "b", "ill"), "'b' is not numeric"),
    (lambda t: with_cell(t, "y", None), "'y' has missing values"),
    (lambda t: t.assign(b="red"), "discreet schema"),
    (lambda t: t.assign(y="yes"), "--classes"),
    (lambda t: t[["y"]], "no columns to learn from"),
    (lambda t: t.set_axis(["a", "a", "c", "y"], axis=1), "duplicate column names"),
    (lambda t: t[["a", "b"]], "no column 'y'"),
    (lambda t: t[:0], "no rows"),
]


@pytest.mark.parametrize(("change", "word"), BAD_TABLES)
def test_a_bad_table_is_one_line_and_no_model(tmp_path, change, word):
    change(make_table()).to_csv(tmp_path / "table.csv", index=False)
    error = run("fit", "table.csv", "--target", "y", code=2).stderr
    assert word in error
    assert "ill" not in error
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize("options", [["--public-rows", "3", "--relation", "add_remove"], ["--epsilon", "1e-300"]])
def test_the_task_is_not_left_to_a_coin(tmp_path, options):
    make_table().to_csv(tmp_path / "table.csv", index=False)
    error = run("fit", "table.csv", "--target", "y", *options, code=2).stderr
    assert "too few to decide between classification and regression" in error
    assert "nothing was spent; say which with --task" in error


HARMLESS = [
    (lambda t: with_cell(t, "b", 1e308), []),
    (lambda t: with_cell(with_cell(t, "a", -1e308), "c", 1e308), ["--task", "regression"]),
    (lambda t: with_cell(t, "y", 1e308), []),
    (lambda t: with_cell(t, "y", -1e308), ["--task", "regression"]),
    (lambda t: with_cell(t, "y", 0.5), []),
    (lambda t: t.assign(b=5.0), []),
    (lambda t: t.assign(b=0.0), ["--bounds", "-9,9"]),
    (lambda t: t[:1], ["--task", "classification"]),
    (lambda t: t[:2], ["--task", "classification"]),
    (lambda t: t.assign(y=1), []),
    (lambda t: t.assign(y="no"), ["--classes", "yes,no"]),
    (lambda t: t.assign(y=t.y == 1), []),
    (lambda t: t, ["--epsilon", "1e-300", "--task", "classification"]),
    (lambda t: t, ["--epsilon", "1e6"]),
    (lambda t: t, ["--delta", "0.9"]),
    (lambda t: t, ["--relation", "add_remove", "--public-rows", "1000"]),
    (lambda t: t, ["--relation", "zero_out"]),
]


@pytest.mark.parametrize(("change", "options"), HARMLESS)
def test_odd_input_is_harmless(tmp_path, change, options):
    change(make_table()).to_csv(tmp_path / "table.csv", index=False)
    run("fit", "table.csv", "--target", "y", *options)
    model = load_model("model.json")
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.guarantee_.is_private


def test_no_file_is_overwritten_unasked(table, tmp_path):
    for name, command in [
        ("model.json", ["fit", table, "--target", "y"]),
        ("schema.json", ["schema", table]),
        ("out.csv", ["predict", "model.json", table, "--out", "out.csv"]),
    ]:
        (tmp_path / name).write_text("precious")
        assert "--force" in run(*command, code=2).stderr
        assert (tmp_path / name).read_text() == "precious"
        run(*command, "--force")
        assert (tmp_path / name).read_text() != "precious"


def test_a_seed_is_warned_about_and_never_written(table, tmp_path):
    first = run("fit", table, "--target", "y", "--seed", 424242, "--quiet")
    assert first.stdout == ""
    assert first.stderr.count("\n") == 1
    assert first.stderr.startswith("warning: ")
    assert "424242" not in (tmp_path / "model.json").read_text()
    run("fit", table, "--target", "y", "--seed", 424242, "--quiet", "--out", "again.json")
    assert without_time(tmp_path / "model.json") == without_time(tmp_path / "again.json")
    run("fit", table, "--target", "y", "--quiet", "--out", "other.json")
    assert without_time(tmp_path / "model.json") != without_time(tmp_path / "other.json")


def without_time(path):
    """A model file without the time of the fit, of which only the second is written."""
    return re.sub(r"\d\d:\d\d:\d\d", "", path.read_text())


def test_without_privacy_the_user_is_told(table):
    told = run("fit", table, "--target", "y", "--epsilon", "inf")
    assert "warning: epsilon is infinite" in told.stderr
    assert "privacy             none" in told.stdout


def test_a_bug_is_one_line_too(table, monkeypatch):
    def broken(*_):
        raise TypeError("first line\nsecond line")

    monkeypatch.setattr("discreet.estimators.table_fit.fit_table", broken)
    assert "TypeError: first line second line" in run("fit", table, "--target", "y", code=2).stderr
    monkeypatch.setenv("DISCREET_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(app, ["fit", str(table), "--target", "y"]).exception, TypeError)
