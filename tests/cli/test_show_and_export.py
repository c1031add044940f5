"""`discreet show` says what a model file says; `discreet export` scores as `discreet predict` does."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

from discreet import load_model
from tests.cli_tools import make_table, run


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model(tmp_path):
    """A model of numbers and of a category with a missing value, an empty one and quotes."""
    table = make_table()
    rng = np.random.default_rng(3)
    table["colour"] = rng.choice(["red", "it's", "", "other"], len(table))
    table.to_csv(tmp_path / "table.csv", index=False)
    run("schema", "table.csv", "--out", "schema.json")
    schema = json.loads((tmp_path / "schema.json").read_text())
    schema["target"] = {"name": "y", "classes": [0, 1]}
    schema["columns"] = [column for column in schema["columns"] if column["name"] != "y"]
    for column in schema["columns"]:
        if column["name"] == "colour":
            column.update({"type": "category", "categories": ["red", "it's", ""]})
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    run("fit", "table.csv", "--schema", "schema.json", "--epsilon", 5, "--out", "model.json")
    return table


@pytest.mark.usefixtures("model")
def test_show_says_what_the_summary_of_the_loaded_model_says():
    summary = load_model("model.json").summary()
    told = "Coefficients of categories are differences from their baseline: colour with red."
    assert run("show", "model.json").stdout == f"{summary}\n\n{told}\n"
    assert json.loads(run("show", "model.json", "--json").stdout) == summary.to_dict()
    assert "colour=it's" in str(summary)
    assert "colour=red" not in str(summary)
    assert "3 columns that can move it less" in run("show", "model.json", "--columns", 2).stdout


def test_the_exported_query_answers_as_predict_does(model):
    predicted = json.loads(run("predict", "model.json", "table.csv", "--proba", "--json").stdout)
    database = sqlite3.connect(":memory:")
    rows = model.assign(id=range(len(model)))
    rows.loc[rows["colour"] == "", "colour"] = None
    rows.to_sql("people", database, index=False)
    query = run("export", "model.json", "--sql", "main.people", "--keep", "id", "--proba").stdout
    found = pd.read_sql_query(f"{query} ORDER BY id", database)
    assert found["prediction"].tolist() == predicted["prediction"]
    np.testing.assert_allclose(found["probability_1"], predicted["probability_1"], rtol=1e-12)


@pytest.mark.usefixtures("model")
def test_the_exported_graph_is_that_of_the_model(tmp_path):
    pytest.importorskip("onnx")
    shown = json.loads(run("export", "model.json", "--onnx", "model.onnx", "--json").stdout)
    assert shown == {"sql": None, "onnx": "model.onnx"}
    assert (tmp_path / "model.onnx").read_bytes() == load_model("model.json").to_onnx().SerializeToString()
    assert "--force" in run("export", "model.json", "--onnx", "model.onnx", code=2).stderr


@pytest.mark.usefixtures("model")
def test_mistakes_are_told_in_one_line():
    assert "--sql TABLE" in run("export", "model.json", code=2).stderr
    assert "must not be empty" in run("export", "model.json", "--sql", "a..b", code=2).stderr
    assert "No such file" in run("show", "nowhere.json", code=2).stderr
