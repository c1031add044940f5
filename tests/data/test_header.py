"""A CSV file without a header: its first person must not become the names of the columns."""

import json

import pytest

from discreet.data.files import looks_like_data, open_table, read_header
from discreet.data.schema import Column, Schema, Target
from tests.cli_tools import make_table, run


@pytest.fixture
def headless(tmp_path, monkeypatch):
    """A table whose first line is a person."""
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_csv("people.csv", index=False, header=False)
    return tmp_path / "people.csv", table


@pytest.mark.parametrize("command", [("fit", "--target", "y"), ("schema",), ("schema", "--json")])
def test_no_command_prints_or_stores_the_first_row(headless, command):
    path, _ = headless
    result = run(command[0], path, *command[1:], code=2)
    first = path.read_text().splitlines()[0].split(",")
    assert not any(value in result.output for value in first if len(value) > 1)
    assert "first line" in result.stderr
    assert "--no-header" in result.stderr
    assert [p.name for p in path.parent.iterdir()] == ["people.csv"]


def test_duplicate_values_in_the_first_row_are_not_printed(tmp_path):
    (tmp_path / "people.csv").write_text("71.25,71.25,1\n3,4,0\n")
    with pytest.raises(ValueError, match="looks like a row") as caught:
        read_header(tmp_path / "people.csv")
    assert "71.25" not in str(caught.value)


@pytest.mark.parametrize("first", ["Smith,Vienna,female", "Smith,Vienna,Vienna"])
def test_a_row_of_words_is_not_printed_either(tmp_path, first):
    """Words may be names, so such a line is taken as a header; but names that were not asked for are not shown."""
    path = tmp_path / "people.csv"
    path.write_text(f"{first}\nMiller,Graz,male\n")
    schema = Schema((Column("age"), Column("city")), Target("readmitted"))
    with pytest.raises(ValueError, match=r"no column|duplicate") as caught, open_table(path) as file:
        file.read(schema, target=True)
    assert not any(word in str(caught.value) for word in first.split(","))


def test_a_misspelt_column_is_told_apart_from_a_missing_header(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,readmitted\n31,0\n")
    with open_table(path) as file, pytest.raises(ValueError, match="did you mean 'readmitted'"):
        file.read(Schema((Column("age"),), Target("readmited")), target=True)


def test_without_a_header_columns_are_numbered_and_no_row_is_lost(headless):
    path, table = headless
    run("schema", path, "--no-header")
    names = [column["name"] for column in json.loads((path.parent / "schema.json").read_text())["columns"]]
    assert names == ["column_1", "column_2", "column_3", "column_4"]
    run("fit", path, "--no-header", "--target", "column_4", "--seed", 3)
    assert json.loads((path.parent / "model.json").read_text())["guarantee"]["release"]["rows"] == len(table)
    predicted = run("predict", "model.json", path, "--no-header").stdout.splitlines()
    assert len(predicted) == len(table) + 1


def test_a_byte_order_mark_is_no_part_of_the_first_value(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes("\ufeff1.5;2\n2.5;3\n".encode())
    with open_table(path, header=False) as file:
        table = file.read(Schema((Column("column_1"), Column("column_2"))), target=False)
    assert table.X.tolist() == [[1.5, 2.0], [2.5, 3.0]]


def test_a_parquet_file_always_names_its_columns(tmp_path):
    make_table(10).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="CSV"):
        open_table(tmp_path / "table.parquet", header=False)


@pytest.mark.parametrize(
    "value", ["1", "-0.5", "1e-5", " 3 ", "1,5", "2021-03-04", "12:30", "+43 660 1234", "10%", "NaN", "NA", "true", "-"]
)
def test_values_that_no_column_is_called(value):
    assert looks_like_data(value)


@pytest.mark.parametrize("name", ["age", "x1", "1st", "No", "größe", "年齢", "income_2019", "e", "label"])
def test_names_that_columns_have(name):
    assert not looks_like_data(name)


@pytest.mark.parametrize(
    ("first", "other", "fields"),
    [
        ("1,5;2,25;-3,5", "1;2;3", 3),  # more commas than semicolons, but these are decimal
        ('1,2,"a;b;c;d"', "1,2,x", 3),  # separators inside quotes are none
        ('"x, y";2', "x;2", 2),
        ("1,2,3;4", "1,2,3", 3),
    ],
)
def test_the_values_of_a_first_row_do_not_change_its_separator(tmp_path, first, other, fields):
    path = tmp_path / "people.csv"
    for line in (first, other):
        path.write_text(f"{line}\n")
        assert len(read_header(path, header=False)) == fields
