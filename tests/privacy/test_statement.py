"""Statements: what they name, that no number in them is too small, and the record for machines."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import discreet
from discreet import Guarantee, Ledger, LogisticRegression, NotPrivateWarning, PrivacyLeakWarning, Ridge, solve
from discreet.model_selection import PrivateGridSearch
from discreet.preprocessing import PrivateScaler, pipeline_guarantee, private_means
from discreet.privacy.guarantee import SEEDED, record_of_parts
from discreet.privacy.signatures import signature_line
from discreet.problem import Problem
from discreet.problem.losses import Logistic
from tests.cli_tools import make_table, run
from tests.doc_names import ROOT
from tests.stream_tools import classifier, feed, rows_of

ROWS = 400


def rows():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (ROWS, 2))
    return X, (X[:, 0] > 0.0).astype(int)


def fitted(**parameters):
    return LogisticRegression(**{"bounds": (-1.0, 1.0), "classes": [0, 1], **parameters}).fit(*rows())


def section(statement, heading):
    return next(part for part in statement.split("\n\n") if part.startswith(heading))


def test_meaning_comes_first_and_symbols_last():
    promise = fitted().guarantee_
    statement = str(promise)
    assert statement == promise.statement()
    headings = [part.splitlines()[0] for part in statement.split("\n\n")]
    assert headings[0] == "What this means for one person"
    assert headings[-1] == "In symbols"
    assert "epsilon" not in section(statement, headings[0])
    assert all(len(line) <= 100 for line in statement.splitlines())


def test_a_statement_names_table_rows_date_and_version(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    fitted(ledger=ledger, dataset="clinic", epsilon=0.5)
    model = fitted(ledger=ledger, dataset="clinic", epsilon=0.5)
    statement = model.guarantee_.statement()
    released = section(statement, "Released")
    for fact in ("LogisticRegression", "clinic", "400", "UTC", discreet.__version__, "secure generator"):
        assert fact in released
    entry = ledger.entries("clinic")[-1]
    budget = section(statement, "Budget")
    assert f"entry {entry.id} " in budget
    told = float(re.search(r"spent\s+epsilon\s+([\d.]+)", budget).group(1))
    assert ledger.spent("clinic") <= told <= 1.001 * ledger.spent("clinic")


def test_what_was_not_asked_for_is_not_told():
    statement = fitted().guarantee_.statement()
    assert "No ledger was used" in statement
    assert "ATTENTION" not in statement
    plan = LogisticRegression(bounds=(-1.0, 1.0)).plan(1000, 3).guarantee.statement()
    assert "Released" not in plan
    assert "Budget" not in plan


def test_the_number_of_rows_is_only_told_where_it_is_public():
    statement = fitted(relation="add_remove", public_n=500).guarantee_.statement()
    assert "about 500" in statement
    assert not re.search(rf"(?<![\d,]){ROWS}\b", statement)
    assert "the number of rows," not in section(statement, "Not covered")


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_every_percentage_is_on_the_safe_side():
    for epsilon in (0.1, 0.73, 2.0, 9.0):
        promise = fitted(epsilon=epsilon).guarantee_
        text = section(promise.statement(), "What this means").replace("\n ", "")
        told = [float(number) / 100.0 for number in re.findall(r"at most ([\d.]+) %", text)]
        exact = [after for _, after in promise.meaning.beliefs] + [promise.meaning.guess]
        assert all(a >= b and a - b < 2e-3 for a, b in zip(told, exact, strict=True))
        among = float(re.search(r"1 in ([\d,]+)", text).group(1).replace(",", ""))
        assert promise.meaning.failure <= 1.0 / among <= 1.2 * promise.meaning.failure


def test_the_symbols_are_never_smaller_than_the_promise():
    promise = fitted(epsilon=discreet.Budget.zcdp(0.0123)).guarantee_
    text = section(promise.statement(), "In symbols")
    epsilon, delta = map(float, re.search(r"\(([\d.e-]+), ([\d.e-]+)\)-differentially", text).groups())
    assert promise.epsilon <= epsilon <= promise.epsilon * 1.00001
    assert promise.delta <= delta <= promise.delta * 1.001


def test_leaks_and_seeds_are_named_with_a_warning_word():
    promise = fitted().guarantee_
    leaky = Guarantee(promise.epsilon, promise.delta, promise.relation, promise.event, ("the classes", SEEDED))
    text = section(leaky.statement(), "Not covered").replace("\n    ", " ")
    assert "ATTENTION: the classes were read from the rows without noise" in text
    assert "ATTENTION, the promise does not hold against everybody: the noise was drawn from a seed" in text
    assert "ATTENTION: what follows is true only apart from" in section(leaky.statement(), "What this means")
    assert promise.with_seed().with_seed().leaks == (SEEDED,)


def test_a_trace_is_no_part_of_the_promise():
    X, y = rows()
    with pytest.warns(PrivacyLeakWarning, match="trace"):
        found = solve(Problem(Logistic()), X, 2.0 * y - 1.0, "gd", bounds=(-1, 1), trace="non-private")
    assert found.guarantee.leaks == ("the objectives of the trace",)


def test_a_weak_promise_says_so_itself():
    with pytest.warns(NotPrivateWarning, match="epsilon = 20"):
        model = fitted(epsilon=20.0)
    assert "ATTENTION: epsilon = 20 protects little" in model.guarantee_.statement()


def test_everything_that_releases_says_when_and_what():
    X, y = rows()
    released = {
        "PrivateScaler": PrivateScaler(bounds=(-1.0, 1.0)).fit(X).guarantee_,
        "private_means": private_means(X, (-1.0, 1.0)).guarantee,
        "coefficients, by solve": solve(Problem(Logistic()), X, 2.0 * y - 1.0, bounds=(-1, 1)).guarantee,
        "LogisticRegression, stream": feed(classifier(), *rows_of()).guarantee_,
    }
    for name, promise in released.items():
        assert promise.release.result == name
        assert promise.release.columns == (3 if "stream" in name else 2)
    assert "at most 240" in released["LogisticRegression, stream"].statement()


def test_the_ledger_counts_preprocessing_and_says_so(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    scaler = PrivateScaler(bounds=(-1.0, 1.0), ledger=ledger, dataset="clinic").fit(rows()[0])
    assert scaler.guarantee_.release.ledger.spent == ledger.spent("clinic")


def test_the_record_for_machines_is_versioned_and_comes_back():
    promise = fitted().guarantee_
    content = json.loads(json.dumps(promise.to_dict(), allow_nan=False))
    assert (content["format"], content["version"]) == ("discreet guarantee", 1)
    again = Guarantee.from_dict(content)
    assert again.to_dict() == promise.to_dict()
    content["statement"], content["meaning"] = "nobody can learn anything", {}
    assert Guarantee.from_dict(content).statement() == promise.statement()  # made again, not believed


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("version", 2, "version 2"),
        ("format", "something", "format"),
        ("leaks", "the classes", "leaks"),
        ("epsilon", 0.5, "does not prove"),
        ("delta", 0.0, "does not prove"),
        ("release", {"result": "x"}, "release"),
        ("release", {**fitted().guarantee_.release.to_dict(), "rows": "many"}, "rows"),
        ("release", {**fitted().guarantee_.release.to_dict(), "rows_are": "few"}, "rows_are"),
    ],
)
def test_a_damaged_record_is_refused(field, value, word):
    with pytest.raises(ValueError, match=word):
        Guarantee.from_dict(fitted().guarantee_.to_dict() | {field: value})


JUNK = [None, True, -1, 0, 10**400, math.nan, math.inf, "", "x", [], [[]], {}, {"a": 1}]


@pytest.mark.parametrize("value", JUNK, ids=repr)
def test_whatever_stands_in_a_field_the_answer_is_a_guarantee_or_a_value_error(value):
    receipt = {"dataset": "clinic", "entries": [2], "hash": "ab", "spent": 0.5, "epsilon": 3.0, "delta": 1e-6}
    good = fitted().guarantee_.to_dict()
    good["release"]["ledger"] = receipt
    assert Guarantee.from_dict(good).release.ledger.entries == (2,)
    damaged = [good | {name: value} for name in good]
    damaged += [good | {"release": good["release"] | {name: value}} for name in good["release"]]
    damaged += [good | {"release": good["release"] | {"ledger": receipt | {name: value}}} for name in receipt]
    damaged += [{key: v for key, v in good.items() if key != name} for name in good]
    for content in damaged:
        try:
            promise = Guarantee.from_dict(content)
        except ValueError:
            continue
        assert "In symbols" in promise.statement()


def test_a_name_cannot_pass_for_another_part_of_the_statement():
    promise = fitted().guarantee_
    forged = promise.of_table("x\n\nCovered\n  Everything.").with_leak("the y\n\nBudget\n  None.").statement()
    assert [part.splitlines()[0] for part in forged.split("\n\n")] == [
        part.splitlines()[0] for part in promise.statement().split("\n\n")
    ]


def test_the_page_describes_every_field():
    page = (ROOT / "docs" / "statements.md").read_text()
    described = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    content = fitted().guarantee_.to_dict()
    receipt = ("dataset", "entries", "hash", "spent", "epsilon", "delta")
    fields = [*content, *(f"meaning.{name}" for name in content["meaning"])]
    fields += [f"release.{name}" for name in content["release"]] + [f"release.ledger.{name}" for name in receipt]
    assert sorted(described) == sorted(fields)


def test_a_fit_on_a_file_names_it_and_both_entries(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("patients.csv", index=False)
    Ledger("budget.db").open("clinic", epsilon=3.0, delta=1e-6)
    run("fit", "patients.csv", "--target", "y", "--ledger", "budget.db", "--dataset", "clinic")
    release = json.loads((tmp_path / "model.json").read_text())["guarantee"]["release"]
    assert (release["table"], release["rows"]) == ("patients.csv", 1500)
    assert release["ledger"]["entries"] == [entry.id for entry in Ledger("budget.db").entries("clinic")]
    assert len(release["ledger"]["entries"]) == 2  # the task was asked for


def test_the_command_prints_the_statement_of_a_file_and_refuses_one_that_proves_less(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = fitted()
    discreet.save_model(model, "model.json")
    unsigned = signature_line(None)
    assert run("statement", "model.json").stdout == f"{unsigned}\n\n{model.guarantee_}\n"
    told = json.loads(run("statement", "model.json", "--json").stdout)
    assert told == model.guarantee_.to_dict() | {"signature": None}
    content = json.loads((tmp_path / "model.json").read_text())
    content["guarantee"]["epsilon"] /= 2.0
    (tmp_path / "model.json").write_text(json.dumps(content))
    assert "does not prove" in run("statement", "model.json", code=2).stderr


def test_without_privacy_the_statement_says_so_and_still_says_what_was_released():
    with pytest.warns(NotPrivateWarning):
        statement = fitted(epsilon=float("inf")).guarantee_.statement()
    assert "without privacy protection" in statement
    assert "LogisticRegression" in section(statement, "Released")
    assert "Covered" not in statement


def test_a_search_and_a_pipeline_say_what_they_are(tmp_path):
    X, y = rows()
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("clinic", epsilon=30.0, delta=1e-5)
    booked = {"ledger": ledger, "dataset": "clinic"}
    scaler, model = PrivateScaler(bounds=(-1.0, 1.0), **booked), LogisticRegression(bounds=(-4.0, 4.0), classes=[0, 1])
    search = PrivateGridSearch(clone(model), {"alpha": [1e-4, 1e-1]}, epsilon=8.0, **booked).fit(X, y)
    assert search.guarantee_.release.result == "PrivateGridSearch"
    assert search.guarantee_.release.ledger.entries == (ledger.entries("clinic")[0].id,)
    pipeline = make_pipeline(scaler, model.set_params(**booked)).fit(X, y)
    release = pipeline_guarantee(pipeline).release
    assert release.result == "PrivateScaler, LogisticRegression"
    assert release.ledger.entries == tuple(entry.id for entry in ledger.entries("clinic")[1:])
    assert release.ledger.spent == ledger.spent("clinic")


def test_parts_of_a_pipeline_have_one_record():
    first, second = PrivateScaler(bounds=(-1.0, 1.0)).fit(rows()[0]).guarantee_.release, fitted().guarantee_.release
    whole = record_of_parts([first, second])
    assert (whole.result, whole.rows, whole.date) == ("PrivateScaler, LogisticRegression", ROWS, second.date)
    assert record_of_parts([first, None]) is None
    assert record_of_parts([first, second.of_table("another")]) is None


WEAK = {"epsilon": {"epsilon": 12.0}, "delta": {"delta": 0.01}}


@pytest.mark.parametrize("word", WEAK)
def test_a_weak_budget_warns_wherever_it_is_spent(word):
    X, y = rows()
    parameters = {"bounds": (-1.0, 1.0), **WEAK[word]}
    for spend in (
        lambda: Ridge(y_bounds=(0.0, 1.0), **parameters).fit(X, y),
        lambda: PrivateScaler(**parameters).fit(X),
        lambda: private_means(X, **parameters),
        lambda: classifier(**WEAK[word]).partial_fit(*rows_of()),
    ):
        with pytest.warns(NotPrivateWarning, match=f"^{word} = "):
            spend()


def test_a_weak_budget_is_seen_in_the_plan_and_on_the_command_line():
    plan = Ridge(delta=0.01).plan(1000, 3)
    assert plan.to_dict()["warnings"][0].startswith("delta = 0.01 is more than one over the 1,000 rows")
    assert "delta = 0.01 is more than" in str(plan)
    assert "epsilon = 20 protects little" in run("plan", "--rows", 1000, "--columns", 3, "--epsilon", 20).stdout


def test_of_an_endless_stream_the_number_of_rows_is_not_known():
    X, y = rows_of()
    model = feed(classifier(public_n=None, delta=1e-3), X, y)  # warnings are errors here
    assert model.guarantee_.release.rows is None
    assert "a stream without end" in model.guarantee_.statement()


@pytest.mark.filterwarnings("ignore::discreet.UtilityWarning")  # a small table
def test_under_add_remove_the_public_number_decides():
    fitted(relation="add_remove", public_n=50, delta=0.01)  # 1/50 is more than delta: no warning, which is an error
    with pytest.warns(NotPrivateWarning, match="500 rows"):
        fitted(relation="add_remove", public_n=500, delta=0.01)
