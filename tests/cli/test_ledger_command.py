"""The command `discreet ledger`, and what `fit` and `plan` say about a ledger."""

import csv
import hashlib
import io
import json
import pickle
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.privacy import accounting
from discreet.privacy.ledger import Ledger, ModelLedger
from tests.cli_tools import ROWS, make_table, run

DELTA = 1e-6
PAY = ["--ledger", "budget.db", "--dataset", "people"]


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    make_table().to_csv(path, index=False)
    return path


@pytest.fixture
def ledger():
    run("ledger", "open", *PAY, "--epsilon", 1, "--delta", DELTA)
    made = Ledger("budget.db")
    made.reserve("people", accounting.gaussian_event(20.0), note="=first", target="age", relation="replace")
    return made


@pytest.mark.parametrize("name", ["open", "show", "entries", "verify", "export", "backup"])
def test_every_command_explains_itself_with_an_example(name):
    assert f"Example: discreet ledger {name} --ledger budget.db" in " ".join(
        run("ledger", name, "--help").stdout.split()
    )
    assert name in run("ledger").stdout
    assert "Example: discreet ledger show" in run("ledger", "--help").stdout


def test_help_is_cheap():
    code = (
        "import sys\nfrom discreet.cli.app import app\n"
        "try:\n    app(['ledger', 'entries', '--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "sys.exit(bool({'numpy', 'sqlalchemy', 'dp_accounting', 'pandas'} & set(sys.modules)))"
    )
    repository = Path(__file__).parents[2]
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=repository, stdout=subprocess.DEVNULL, check=False).returncode
        == 0
    )


def test_a_budget_is_opened_once_and_shown(ledger):
    said = json.loads(run("ledger", "show", "--ledger", "budget.db", "--json").stdout)
    (budget,) = said["datasets"]
    assert said["head"] == ledger.head()
    assert (budget["epsilon"], budget["delta"], budget["relation"]) == (1.0, DELTA, "replace")
    assert budget["spent"] == ledger.spent("people")
    assert budget["remaining"] == ledger.remaining("people")
    text = run("ledger", "show", *PAY).stdout
    for number in (budget["spent"], budget["remaining"]):
        assert f"{number:.6g}" in text
    run("ledger", "open", *PAY, "--epsilon", 1, "--delta", DELTA)
    assert "a budget never changes" in run("ledger", "open", *PAY, "--epsilon", 2, "--delta", DELTA, code=2).stderr


def test_room_is_what_a_release_may_cost_to_the_last_digit(ledger):
    room = ledger.room("people")
    assert ledger.remaining("people") < room < 1.0

    def costing(epsilon):
        return accounting.gaussian_event(1.0 / accounting.gaussian_mu(epsilon, DELTA))

    assert ledger.fits("people", costing(room))
    assert not ledger.fits("people", costing(room * (1.0 + 1e-6)))
    ledger.open("pure", 1.0, 0.0)
    ledger.reserve("pure", accounting.laplace_event(4.0), relation="replace")
    assert ledger.room("pure") == pytest.approx(0.75)
    ledger.reserve("people", accounting.laplace_event(100.0), relation="replace")
    assert ledger.room("people") is None
    assert "would fit" not in run("ledger", "show", *PAY).stdout


def test_entries_say_who_when_why_and_how_much(ledger):
    (entry,) = ledger.entries("people")
    text = run("ledger", "entries", *PAY).stdout
    for part in (f"entry {entry.id}", entry.who, "=first", "age", "reserved", f"{ledger.spent('people'):.6g} if alone"):
        assert part in text
    assert "@" in entry.who
    for _ in range(3):
        ledger.reserve("people", accounting.gaussian_event(90.0), relation="replace").commit()
    said = json.loads(run("ledger", "entries", *PAY, "--last", 2, "--json").stdout)
    (budget,) = said["datasets"]
    assert [row["status"] for row in budget["entries"]] == ["committed"] * 2
    assert budget["entries"][0]["epsilon"] == pytest.approx(
        accounting.epsilon_of(accounting.gaussian_event(90.0), DELTA, "replace")
    )
    assert budget["remaining"] == ledger.remaining("people")


def test_verify_passes_fails_and_compares_a_kept_hash(ledger):
    head = re.search("[0-9a-f]{64}", run("ledger", "verify", "--ledger", "budget.db").stdout).group()
    ledger.reserve("people", accounting.gaussian_event(90.0), relation="replace")
    run("ledger", "verify", "--ledger", "budget.db", "--head", head)
    assert "0" * 63 in run("ledger", "verify", "--ledger", "budget.db", "--head", "1" + "0" * 63, code=2).stderr
    connection = sqlite3.connect("budget.db")
    connection.execute("UPDATE discreet_records SET body = replace(body, '20.0', '99.0')")
    connection.commit()
    connection.close()
    assert "record 2 (reserve 'people') was altered" in run("ledger", "verify", "--ledger", "budget.db", code=2).stderr


@pytest.mark.parametrize("form", ["json", "csv"])
def test_export_holds_every_entry(ledger, form):
    printed = run("ledger", "export", "--ledger", "budget.db", "--format", form).stdout
    run("ledger", "export", *PAY, "--out", f"out.{form}")
    with open(f"out.{form}") as file:
        text = file.read()
    if form == "json":
        content, shown = json.loads(text), json.loads(printed)
        assert content["datasets"] == shown["datasets"]
        assert (content["format"], content["version"], content["head"]) == ("discreet ledger", 1, ledger.head())
        (row,) = content["datasets"][0]["entries"]
        assert accounting.event_from_dict(row["event"]) == accounting.gaussian_event(20.0)
    else:
        assert text == printed
        (row,) = csv.DictReader(io.StringIO(text))
        assert row["why"] == "'=first", "a spreadsheet must not take a note for a formula"
    assert row["target"] == "age"
    assert float(row["epsilon"]) == pytest.approx(ledger.spent("people"))
    assert "--force" in run("ledger", "export", *PAY, "--out", f"out.{form}", code=2).stderr


def test_backup_is_the_same_ledger(ledger):
    head = json.loads(run("ledger", "backup", "--ledger", "budget.db", "--out", "copy.db", "--json").stdout)["head"]
    assert head == ledger.head() == Ledger("copy.db").head()
    assert "exists" in run("ledger", "backup", "--ledger", "budget.db", "--out", "copy.db", code=2).stderr


@pytest.mark.parametrize("name", ["show", "entries", "export", "backup", "verify"])
def test_a_ledger_that_is_not_there_is_named_and_not_made(name, tmp_path):
    extra = ["--out", "copy.db"] if name == "backup" else []
    assert "there is no ledger" in run("ledger", name, "--ledger", "absent.db", *extra, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_one_line(ledger, tmp_path):
    (tmp_path / "budget.db").write_bytes(b"no database at all, only text" * 200)
    for name in ("show", "entries", "verify", "export"):
        assert "damaged" in run("ledger", name, "--ledger", "budget.db", code=2).stderr
    result = CliRunner().invoke(app, ["ledger", "verify", "--ledger", "budget.db", "--json"])
    assert result.exit_code == 2
    assert "damaged" in json.loads(result.stdout)["problems"][0]


def test_a_fit_says_what_is_spent_and_left_and_leaves_its_name(table, tmp_path):
    run("ledger", "open", *PAY, "--epsilon", 1, "--delta", DELTA)
    fit = ["fit", table, "--target", "y", "--epsilon", 0.5, "--delta", DELTA, *PAY, "--note", "weekly report"]
    text = run(*fit).stdout
    ledger = Ledger("budget.db")
    assert f"epsilon {ledger.spent('people'):.6g} spent, {ledger.remaining('people'):.6g} left of 1" in text
    digest = hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()
    assert digest in text
    question, model = ledger.entries("people")
    assert (question.model, model.model) == (digest, digest)
    assert (question.target, model.target) == ("y", "y")
    assert model.note == "weekly report (LogisticRegression)"
    assert ledger.verify() == []
    said = json.loads(run(*fit, "--task", "classification", "--out", "b.json", "--epsilon", 0.2, "--json").stdout)
    assert said["ledger"]["spent"] == ledger.spent("people")
    assert said["ledger"]["entries"] == [ledger.entries("people")[-1].id]


@pytest.mark.parametrize("task", ["auto", "classification"])
def test_a_refused_fit_says_which_epsilon_would_fit_and_it_does(table, task):
    run("ledger", "open", *PAY, "--epsilon", 1, "--delta", DELTA)
    fit = ["fit", table, "--target", "y", "--task", task, "--delta", DELTA, *PAY, "--quiet"]
    run(*fit, "--epsilon", 0.7)
    refused = run(*fit, "--epsilon", 0.9, "--out", "b.json", code=2).stderr
    fitting = float(re.search(r"--epsilon ([0-9.]+) would fit", refused).group(1))
    assert 0.5 < fitting < 0.9
    before = Ledger("budget.db").spent("people")
    run(*fit, "--epsilon", fitting + 0.02, "--out", "b.json", code=2)
    assert Ledger("budget.db").spent("people") == before
    run(*fit, "--epsilon", fitting, "--out", "b.json")


def test_a_plan_asks_the_ledger_and_books_nothing():
    run("ledger", "open", *PAY, "--epsilon", 0.5, "--delta", DELTA)
    head = Ledger("budget.db").head()
    plan = ["plan", "--rows", ROWS, "--columns", 3, "--delta", DELTA]
    assert "'people' would pay for this" in run(*plan, "--epsilon", 0.4, *PAY).stdout
    assert "does not cover this; --epsilon 0.49 would fit" in run(*plan, "--epsilon", 0.9, *PAY).stdout
    said = json.loads(run(*plan, "--epsilon", 0.9, *PAY, "--json").stdout)["ledger"]
    assert (said["fits"], said["remaining"]) == (False, 0.5)
    assert json.loads(run(*plan, "--json").stdout)["ledger"] is None
    assert Ledger("budget.db").head() == head


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["plan", "--rows", 9, "--columns", 2, "--ledger", "budget.db"], "--dataset"),
        (["plan", "--rows", 9, "--columns", 2, *PAY], "people"),
        (["ledger", "open", *PAY, "--epsilon", 0, "--delta", 0], "epsilon"),
        (["ledger", "open", *PAY, "--epsilon", 1, "--delta", 2], "delta"),
        (["ledger", "open", "--dataset", "people", "--epsilon", 1, "--delta", 0], "--ledger"),
        (["ledger", "open", "--ledger", "mysql://u@h/d", "--dataset", "x", "--epsilon", 1, "--delta", 0], "mysql"),
        (["fit", "table.csv", "--target", "y", "--note", "why"], "--ledger"),
    ],
)
def test_mistakes_are_named(table, command, word):
    assert word in run(*command, code=2).stderr


def test_a_model_ledger_keeps_its_words_in_a_pickle():
    book = ModelLedger("budget.db", "weekly report", "y")
    twin = pickle.loads(pickle.dumps(book))
    assert (twin.url, twin.note, twin.target, twin.granted) == (book.url, "weekly report", "y", [])
