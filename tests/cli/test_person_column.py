"""`discreet fit --person-column`: the promise for whole persons on the command line, and in the schema file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, Target
from tests.cli_tools import make_table, run

PERSONS = 1_500


def make_panel(task="binary"):
    """One to four rows of each person, in a random order."""
    rows = make_table(PERSONS, task)
    rng = np.random.default_rng(1)
    times = rng.permutation(np.repeat(np.arange(PERSONS), rng.integers(1, 5, PERSONS)))
    return rows.iloc[times].assign(patient=[f"p{i}" for i in times])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("panel") / "visits.csv"
    make_panel().to_csv(path, index=False)
    return path


def fit(table, *more, code=0):
    out = table.parent / "model.json"
    return run(
        "fit",
        table,
        "--target",
        "y",
        "--person-column",
        "patient",
        "--out",
        out,
        "--force",
        "--seed",
        0,
        *more,
        code=code,
    )


def test_the_column_is_no_feature_and_the_promise_is_for_persons(table):
    done = json.loads(fit(table, "--task", "classification", "--json").stdout)
    assert done["guarantee"]["unit"] == done["plan"]["public"]["unit"] == "person"
    assert done["plan"]["public"]["rows"] == PERSONS
    assert done["plan"]["public"]["columns"] == 3
    model = table.parent / "model.json"
    assert "all of their rows" in run("statement", model).stdout
    rows = len(table.read_text().splitlines()) - 1  # private: a person decides how many they have
    for told in (fit(table, "--task", "classification").stdout, model.read_text(), run("show", model).stdout):
        assert not {str(rows), f"{rows:,}"} & set(told.replace(";", " ").split())
        assert f'"rows": {rows}' not in told
    assert f"{PERSONS:,} persons" in run("show", model).stdout
    run("predict", model, table, "--out", table.parent / "predicted.csv", "--force")


@pytest.mark.parametrize("task", ["binary", "number"])
def test_the_task_is_asked_for_with_one_count_for_each_person(tmp_path, task):
    path = tmp_path / "visits.csv"
    make_panel(task).to_csv(path, index=False)
    done = json.loads(fit(path, "--json").stdout)
    assert done["task_was_asked"]
    assert done["task"] == ("classification" if task == "binary" else "regression")
    assert done["guarantee"]["unit"] == "person"
    assert done["guarantee"]["epsilon"] == 1.0


def test_a_schema_may_name_the_column(table):
    schema = table.parent / "schema.json"
    run("schema", table, "--out", schema)
    skeleton = json.loads(schema.read_text())
    skeleton["person"], skeleton["target"] = "patient", {"name": "y", "classes": [0, 1]}
    schema.write_text(json.dumps(skeleton))
    out = table.parent / "by_schema.json"
    done = run("fit", table, "--schema", schema, "--out", out, "--force", "--seed", 0, "--json")
    assert json.loads(done.stdout)["guarantee"]["unit"] == "person"
    run("predict", out, table, "--out", table.parent / "predicted.csv", "--force")


def test_what_is_wrong_is_told_in_one_line(table, tmp_path):
    assert "has no column 'nobody'" in fit(table, "--person-column", "nobody", code=2).stderr
    assert "cannot be the target" in fit(table, "--person-column", "y", code=2).stderr
    assert (
        "leave --out-of-core and --dask out" in fit(table, "--task", "classification", "--out-of-core", code=2).stderr
    )
    assert "use one of 'gd', 'newton'" in fit(table, "--rows-per-person", 2, "--solver", "cd", code=2).stderr
    gaps = make_panel()
    gaps.iloc[7, -1] = None
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    assert "missing ids" in fit(tmp_path / "gaps.csv", code=2).stderr
    rows = run("fit", table, "--target", "y", "--rows-per-person", 2, "--out", tmp_path / "m.json", code=2)
    assert "needs --person-column" in rows.stderr


def test_a_ledger_for_persons(table, tmp_path):
    ledger = tmp_path / "budget.db"
    common = ("--ledger", ledger, "--dataset", "clinic")
    opened = run("ledger", "open", *common, "--epsilon", 1, "--delta", 1e-6, "--unit", "person")
    assert "for whole persons" in opened.stdout
    spending = ("fit", table, "--target", "y", "--task", "classification", *common, "--out", tmp_path / "m.json")
    assert (
        "kept for persons" in run(*spending, "--bounds", "-100,100", "--schema", schema_without(table), code=2).stderr
    )
    run(*spending, "--person-column", "patient", "--epsilon", 0.7, "--force")
    refused = run(*spending, "--person-column", "patient", "--force", code=2)
    assert "would fit" in refused.stderr
    shown = json.loads(run("ledger", "show", "--ledger", ledger, "--json").stdout)
    assert shown["datasets"][0]["unit"] == "person"


def schema_without(table):
    """A schema that ignores the ids: every row is a person."""
    path = table.parent / "without.json"
    columns = [{"name": name, "type": "number"} for name in "abc"] + [{"name": "patient", "type": "ignore"}]
    path.write_text(json.dumps({"target": {"name": "y", "classes": [0, 1]}, "columns": columns}))
    return path


def test_a_plan_for_persons_needs_no_table():
    told = run("plan", "--rows", PERSONS, "--columns", 3, "--persons").stdout
    assert f"{PERSONS:,} persons, 3 columns" in told
    assert "for whole persons" in " ".join(told.split())


def test_spaces_around_an_id_make_no_other_person_and_marks_of_missing_values_none(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text('id,x,y\na,1,0\n a,1,0\na ,1,0\n"a",1,0\nb,1,0\n')
    schema = Schema((Column("x"),), Target("y"), person="id")
    with open_table(path) as file:
        assert file.persons(schema).tolist() == ["a"] * 4 + ["b"]
    path.write_text("id,x,y\na,1,0\nNA,1,0\nnull,1,0\n NaN,1,0\n,1,0\n")
    with open_table(path) as file:
        assert file.persons(schema).tolist() == ["a"] + [None] * 4


def test_an_evaluation_says_that_it_is_for_rows(table):
    fit(table, "--task", "classification")
    model = table.parent / "model.json"
    done = run("evaluate", model, table, "--epsilon", 0.5, "--out", table.parent / "evaluation.json", "--force")
    assert "an evaluation protects single rows" in done.stderr
    page = table.parent / "report.md"
    run("report", model, "--evaluation", table.parent / "evaluation.json", "--out", page, "--force")
    assert "No total can be stated" in page.read_text()
