"""Training on messy tables from the command line: what is read, what is asked for, which faults are told first."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from discreet import Ledger, load_model
from tests.cli_tools import make_table, run


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_wrong_names_are_told_before_anything_else(in_tmp_path):
    make_table().to_csv("table.csv", index=False)
    (in_tmp_path / "model.json").write_text("{}")
    wrong = run("fit", "table.csv", "--target", "yy", code=2)
    assert "has no column 'yy'; did you mean 'y'?" in wrong.stderr
    schema = {"columns": [{"name": "aa"}, {"name": "b"}], "target": "y"}
    (in_tmp_path / "schema.json").write_text(json.dumps(schema))
    assert "no column 'aa'" in run("fit", "table.csv", "--schema", "schema.json", code=2).stderr
    assert "model.json exists" in run("fit", "table.csv", "--target", "y", code=2).stderr


def test_all_text_columns_are_named_at_once():
    make_table().assign(ward="A", sex="f").to_csv("table.csv", index=False)
    told = run("fit", "table.csv", "--target", "y", code=2).stderr
    assert "2 columns, 'ward', 'sex', are not numeric; declare" in told


@pytest.mark.parametrize("codes", [[1, 2], [0, 1, 2], [1, 2, 3, 99]], ids=["12", "012", "with 99"])
def test_codes_are_never_taken_for_measurements(codes, in_tmp_path):
    table = make_table(6000)
    table["y"] = np.where(table.y == 1, codes[-1 if codes[-1] < 10 else 1], codes[0])
    table.loc[::4, "y"] = codes[1]
    table.to_csv("table.csv", index=False)
    ledger = Ledger("sqlite:///book.db")
    ledger.open("people", epsilon=3.0, delta=1e-6)
    paid = ["--ledger", "sqlite:///book.db", "--dataset", "people"]
    asked = run("fit", "table.csv", "--target", "y", *paid, code=2)
    assert "list all labels with --classes, or say --task regression" in asked.stderr
    assert "asking cost 2% of the budget" in asked.stderr
    assert not (in_tmp_path / "model.json").exists()
    assert 0.0 < ledger.spent("people") < 0.3  # the question is paid for, and nothing else
    assert len(ledger.entries("people")) == 1
    run("fit", "table.csv", "--target", "y", "--classes", ",".join(map(str, codes)))
    assert load_model("model.json").classes_.tolist() == codes
    run("fit", "table.csv", "--target", "y", "--task", "regression", "--force")


def test_a_code_for_unknown_is_never_class_1():
    table = make_table(6000)
    table.loc[::8, "y"] = 9
    table.to_csv("table.csv", index=False)
    assert "--classes" in run("fit", "table.csv", "--target", "y", code=2).stderr
    refused = run("fit", "table.csv", "--target", "y", "--classes", "0,1", code=2)
    assert "labels that are not in classes" in refused.stderr
    clean = make_table(6000)
    clean.to_csv("table.csv", index=False)
    found = run("fit", "table.csv", "--target", "y", "--force").stdout
    assert "classes 0, 1 (every other value counts as 0; --classes refuses other values)" in found


def test_a_table_through_a_pipe_and_a_compressed_one():
    content = make_table().to_csv(index=False).encode()
    run("fit", "-", "--target", "y", "--task", "classification", piped=content)
    assert load_model("model.json").feature_names_in_.tolist() == ["a", "b", "c"]
    with gzip.open("table.csv.gz", "wb") as file:
        file.write(content)
    lines = run("predict", "model.json", "table.csv.gz").stdout.splitlines()
    assert lines == run("predict", "model.json", "-", piped=content).stdout.splitlines()
    assert len(lines) == len(make_table()) + 1
    assert json.loads(run("schema", "-", "--json", piped=content).stdout)["columns"][0]["name"] == "a"


def test_gaps_dates_and_commas_go_from_the_schema_into_the_model(in_tmp_path):
    table = make_table(3000)
    rng = np.random.default_rng(1)
    born = pd.Timestamp("1980-01-01") + pd.to_timedelta(np.round(1000 * table.a), unit="D")
    gaps = rng.random(3000) < 0.2
    texts = table.b.map(lambda value: f"{value:.3f}".replace(".", ","))
    messy = pd.DataFrame({"born": born.dt.strftime("%Y-%m-%d"), "b": texts.mask(gaps, "NA"), "ward": "A", "y": table.y})
    messy.to_csv("table.csv", index=False, sep=";", encoding="utf-8-sig", lineterminator="\r\n")
    columns = [
        {"name": "born", "type": "date", "epoch": "1980-01-01", "low": "1970-01-01", "high": "1990-01-01"},
        {"name": "b", "low": -80, "high": 90, "missing": "indicator"},
        {"name": "ward", "type": "category", "categories": ["A", "B"], "missing": "indicator"},
    ]
    schema = {"columns": columns, "target": {"name": "y", "classes": [0, 1]}}
    (in_tmp_path / "schema.json").write_text(json.dumps(schema))
    run("fit", "table.csv", "--schema", "schema.json", "--epsilon", "4")
    model = load_model("model.json")
    assert model.feature_names_in_.tolist() == ["born", "b", "b=missing", "ward=B", "ward=missing"]
    assert model.bounds == [[-3652.0, -80, 0, 0, 0], [3653.0, 90, 1, 1, 1]]
    predicted = pd.Series(run("predict", "model.json", "table.csv").stdout.splitlines()[1:]).astype(int)
    assert (predicted == table.y).mean() > 0.8
