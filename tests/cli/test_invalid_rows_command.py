"""`--invalid-rows neutral`: files with a hostile line give the same output as their neighbours, and nothing stops."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from discreet import LogisticRegression, load_model
from discreet.cli.federated_flower import _labelled_rows
from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, Target
from tests.cli_tools import make_table, run

AT = 41
LINES = {
    "text": "HIV,1.0,0.1,1",
    "nothing": ",1.0,0.1,1",
    "infinity": "1.0,-inf,0.1,0",
    "beyond floats": "1e999,1.0,0.1,0",
    "unknown label": "1.0,1.0,0.1,7",
    "label of text": "1.0,1.0,0.1,maybe",
    "missing label": "1.0,1.0,0.1,",
    "too few fields": "1.0,1.0",
    "too many fields": "1.0,1.0,0.1,1,9",
    "one word": "x",
    "a line in a field": '"1\n2",1.0,0.1,1',
}
OPTIONS = ("--target", "y", "--classes", "0,1", "--bounds", "-100,100", "--seed", 0, "--force")


@pytest.fixture(scope="module")
def lines():
    return make_table(600).to_csv(index=False).strip("\n").split("\n")


def write(path, lines, hostile=None):
    """The table with a hostile line in the place of its 42nd row."""
    kept = list(lines) if hostile is None else [*lines[: AT + 1], hostile, *lines[AT + 2 :]]
    path.write_text("\n".join(kept) + "\n")
    return path


def fitted(table, *more):
    out = table.parent / "model.json"
    said = run("fit", table, *OPTIONS, "--out", out, *more)
    return load_model(out), said


def null_row_fit():
    """What a row of weight 0 gives in Python."""
    rows = make_table(600)
    X, weight = rows[["a", "b", "c"]], (np.arange(600) != AT).astype(float)
    model = LogisticRegression(bounds=(-100.0, 100.0), classes=[0, 1], random_state=0)
    with pytest.warns(UserWarning, match="random_state"):
        return model.fit(X, rows["y"], sample_weight=weight)


def test_every_hostile_line_is_a_null_row_and_nothing_else_is_said(tmp_path, lines):
    wanted, said = null_row_fit(), set()
    for name, hostile in LINES.items():
        model, result = fitted(write(tmp_path / "t.csv", lines, hostile), "--invalid-rows", "neutral")
        assert model.coef_.tobytes() == wanted.coef_.tobytes(), name
        said.add((result.stdout, result.stderr))
    model, result = fitted(write(tmp_path / "t.csv", lines), "--invalid-rows", "neutral")
    assert {(result.stdout, result.stderr)} == said
    assert "count as empty rows" in run("statement", tmp_path / "model.json").stdout


def test_no_line_whatever_it_holds_changes_another_row(tmp_path, lines):
    """200 lines of characters at random; those that could be a row, such as 1,2,3,0, may be one."""
    rng, signs = np.random.default_rng(5), list("0123456789,,,,,.-+eE naNxHI;\t'#%\0\u00e9\U0001f600")
    schema = Schema(tuple(map(Column, "abc")), Target("y", (0, 1)))
    rows = make_table(600)
    wanted, others = rows[["a", "b", "c"]].to_numpy(), np.arange(600) != AT
    for _ in range(200):
        hostile = "".join(rng.choice(signs, rng.integers(1, 30)))
        table = read_table(write(tmp_path / "t.csv", lines, hostile), schema)
        assert table.X.shape == (600, 3)
        assert table.X[others].tobytes() == wanted[others].tobytes(), repr(hostile)
        assert np.array_equal(table.y[others], rows["y"][others])


def read_table(path, schema):
    with open_table(path) as file:
        return file.read(schema, target=True, neutral=True)


@pytest.mark.parametrize("name", LINES)
def test_by_default_the_table_is_refused(tmp_path, lines, name):
    table = write(tmp_path / "t.csv", lines, LINES[name])
    run("fit", table, *OPTIONS, "--out", tmp_path / "model.json", code=2)


def test_the_task_must_be_known(tmp_path, lines):
    table = write(tmp_path / "t.csv", lines)
    said = run("fit", table, "--target", "y", "--invalid-rows", "neutral", "--out", tmp_path / "m.json", code=2)
    assert "--invalid-rows neutral needs --task" in said.stderr


@pytest.mark.parametrize("stored", ["--in-memory", "--out-of-core"])
@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_parquet_files_are_read_alike_in_memory_and_block_by_block(tmp_path, kind, stored):
    rows = make_table(600)
    if kind == "numbers":
        rows.loc[AT, "b"] = np.nan
    else:
        rows["b"] = [repr(one) if i != AT else "HIV" for i, one in enumerate(rows["b"].tolist())]
        rows["y"] = rows["y"].astype(str)
    rows.to_parquet(tmp_path / "t.parquet")
    model, _ = fitted(tmp_path / "t.parquet", "--invalid-rows", "neutral", stored)
    assert model.coef_.tobytes() == null_row_fit().coef_.tobytes()


def test_lines_without_an_id_or_fields_stop_no_fit_for_persons(tmp_path, lines):
    head = lines[0] + ",person"
    rows = [f"{line},p{i // 2}" for i, line in enumerate(lines[1:])]
    found = set()
    for hostile in ("1,1,0.1,1,", "1,1,0.1,1,NA", "1,1,0.1", "1,1,0.1,1,p20,9", "HIV,1,0.1,,"):
        table = write(tmp_path / "t.csv", [head, *rows], hostile)
        model, result = fitted(table, "--invalid-rows", "neutral", "--person-column", "person")
        found.add((model.coef_.tobytes(), result.stdout, result.stderr))
    assert len(found) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_evaluation_is_the_same_for_every_line_that_cannot_be_read(tmp_path, lines, ending):
    fitted(write(tmp_path / "t.csv", lines))
    found, table = set(), tmp_path / f"e.{ending}"
    for name in ("text", "infinity", "missing label", "nothing"):
        write(tmp_path / "e.csv", lines, LINES[name])
        if ending == "parquet":
            pd.read_csv(tmp_path / "e.csv", dtype=str).to_parquet(table)
        more = ("--epsilon", 1, "--seed", 1, "--json", "--invalid-rows", "neutral")
        told = json.loads(run("evaluate", tmp_path / "model.json", table, *more).stdout)
        told["guarantee"]["release"]["date"] = told["guarantee"]["statement"] = None
        found.add(json.dumps(told))
        run("evaluate", tmp_path / "model.json", table, "--epsilon", 1, "--seed", 1, code=2)
    assert len(found) == 1


@pytest.mark.parametrize("name", ["text", "unknown label", "missing label", "too few fields"])
def test_a_client_of_a_federated_run_reads_its_file_alike(tmp_path, lines, name):
    table = write(tmp_path / "t.csv", lines, LINES[name])
    X, y = _labelled_rows(table, "y", False, None, "0,1", True)
    known = np.isfinite(X).all(axis=1) & np.isfinite(y)
    assert known.tolist() == [i != AT for i in range(600)]
    wanted = make_table(600)
    assert np.array_equal(X[known], wanted[["a", "b", "c"]].to_numpy()[known])
    assert set(y[known]) == {-1.0, 1.0}
    with pytest.raises(ValueError, match=r"t\.csv"):
        _labelled_rows(table, "y", False, None, "0,1", False)
