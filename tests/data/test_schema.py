"""Schemas and tables: what is declared survives a file, and rows become the numbers the schema says."""

import json
import string
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.files import read_header, read_table
from discreet.data.schema import Column, Schema, Target, load_schema, skeleton
from discreet.privacy.relation import Relation

NUMBERS = st.floats(-1e6, 1e6)
LIMITS = st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS).map(sorted))
TEXTS = st.text(string.ascii_letters + "éß ,;'\"", min_size=1, max_size=6)


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(["number", "category", "ignore"]))
    low, high = draw(LIMITS) or (None, None)
    categories = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True)) if kind == "category" else None
    coding = {"every_level": True} if categories is not None and draw(st.booleans()) else {}
    return Column(name, kind, low, high, None if categories is None else tuple(categories), **coding)


@st.composite
def schemas(draw):
    names = draw(st.lists(TEXTS.map(str.strip).filter(bool), min_size=1, max_size=5, unique=True))
    parts = tuple(draw(columns(f"{i}{name}")) for i, name in enumerate(names))
    low, high = draw(LIMITS) or (None, None)
    target = draw(
        st.sampled_from([Target(), Target("t", ("a", "b")), Target("t", (0, 1, 2)), Target("t", None, low, high)])
    )
    return Schema(parts, target, draw(st.sampled_from(list(Relation))))


@given(schemas())
@settings(deadline=None)
def test_a_schema_survives_its_file(schema):
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@given(schemas())
@settings(deadline=None)
def test_bounds_match_the_features_and_leave_open_what_is_not_declared(schema):
    sides = [side for column in schema.used for side in column.limits]
    if all(side is None for side in sides):
        assert schema.bounds is None
    else:
        low, high = schema.bounds
        assert len(low) == len(high) == len(schema.feature_names)
        assert all(a is None or b is None or a <= b for a, b in zip(low, high, strict=True))


MISTAKES = [
    ({}, "columns"),
    ({"columns": [{"type": "number"}]}, "name"),
    ({"columns": [{"name": "a", "type": "text"}]}, "'text'"),
    ({"columns": [{"name": "a", "kind": "number"}]}, "'kind'"),
    ({"columns": [{"name": "a", "type": "category"}]}, "'a' is a category"),
    ({"columns": [{"name": "a", "type": "category", "categories": "xy"}]}, "must be a list"),
    ({"columns": [{"name": "a", "type": "category", "categories": ["x", "x"]}]}, "twice"),
    ({"columns": [{"name": "a", "type": "number", "categories": ["x", "y"]}]}, 'its type must be "category"'),
    ({"columns": [], "target": {"name": "y", "low": 1}}, "only one of low and high"),
    ({"columns": [{"name": "a", "low": "1"}]}, "finite"),
    ({"columns": [{"name": "a", "low": 2, "high": 1}]}, "low > high"),
    ({"columns": [{"name": "a", "low": 0, "high": float("inf")}]}, "finite"),
    ({"columns": [{"name": "a"}, {"name": "a"}]}, "occurs twice"),
    ({"columns": [], "target": {"name": "y", "classes": ["a"]}}, "two different classes"),
    ({"columns": [], "target": {"name": "y", "classes": "ab"}}, "classes of the target must be a list"),
    ({"columns": [], "target": {"name": "y", "classes": [0, 1], "low": 0, "high": 1}}, "classes and bounds"),
    ({"columns": [], "target": 3}, "target"),
    ({"columns": [], "relation": "nearby"}, "relation"),
    ({"columns": [], "format": "discreet schema 9"}, "format"),
    ({"columns": [{"name": "a", "baseline": "x"}]}, "belong to categories"),
    ({"columns": [{"name": "a", "fill": 1.0}]}, "fill is a finite number"),
    ({"columns": [{"name": "a", "missing": 2, "fill": 1.0}]}, "fill is a finite number"),
    ({"columns": [{"name": "a", "missing": "indicator", "fill": "x"}]}, "fill is a finite number"),
    ({"columns": [{"name": "a", "categories": ["x", "y"], "baseline": "z"}]}, "one of its categories"),
    ({"columns": [{"name": "a", "categories": ["x", "y"], "baseline": "x", "every_level": True}]}, "with every_level"),
    (
        {"format": "discreet schema 1", "columns": [{"name": "a", "categories": ["x", "y"], "baseline": "x"}]},
        'needs "format"',
    ),
]


@pytest.mark.parametrize(("fields", "word"), MISTAKES)
def test_every_mistake_is_one_line_that_names_the_field(tmp_path, fields, word):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=word) as caught:
        load_schema(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_many_columns_do_not_take_long():
    begin = time.process_time()
    schema = Schema.from_dict({"columns": [{"name": f"c{i}"} for i in range(50_000)]})
    assert len(schema.feature_names) == 50_000
    assert time.process_time() - begin < 5.0  # comparing each with each would take a minute


def test_a_file_that_is_not_json_is_refused(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text("{not json")
    with pytest.raises(ValueError, match="is not JSON"):
        load_schema(path)


def test_two_columns_cannot_become_the_same_feature():
    with pytest.raises(ValueError, match="same name after encoding"):
        Schema((Column("a", "category", categories=("b",)), Column("a=b")))


def write(tmp_path, scaling, form):
    path = tmp_path / f"table.{form}"
    if form == "csv":
        scaling.to_csv(path, index=False)
    else:
        scaling.to_parquet(path)
    return path


MIXED = pd.DataFrame(
    {
        "age": [30, 40, 50, 60],
        "ward": ["red", "NA", "mauve", "blue"],
        "room": [1, 2, 3, 1],
        "id": ["x1", "x2", "x3", "x4"],
        "out": [True, False, True, False],
    }
)
MIXED_SCHEMA = Schema(
    (
        Column("age", low=0.0, high=100.0),
        Column("ward", "category", categories=("blue", "red", "NA"), every_level=True),
        Column("room", "category", categories=("1", "2"), baseline="1"),
        Column("id", "ignore"),
    ),
    Target("out", (0, 1)),
)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_become_numbers_as_declared(tmp_path, form):
    table = read_table(write(tmp_path, MIXED, form), MIXED_SCHEMA, target=True)
    assert table.names == ["age", "ward=blue", "ward=red", "ward=NA", "room=2"]
    # "mauve" and room 3 are not declared: all zeros, and no message that would reveal them.
    expected = [[30, 0, 1, 0, 0], [40, 0, 0, 1, 1], [50, 0, 0, 0, 0], [60, 1, 0, 0, 0]]
    np.testing.assert_array_equal(table.X, expected)
    np.testing.assert_array_equal(table.y, [1, 0, 1, 0])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_missing_category_is_none_of_them(tmp_path, form):
    scaling = MIXED.assign(ward=["red", None, "blue", "red"])
    table = read_table(write(tmp_path, scaling, form), MIXED_SCHEMA, target=False)
    np.testing.assert_array_equal(table.X[:, 1:4], [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_numbers_are_read_to_the_last_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("bits") / "table.csv"
    pd.DataFrame({"x": values}).to_csv(path, index=False)
    np.testing.assert_array_equal(read_table(path, skeleton({"x": "number"}), target=False).X[:, 0], values)


def test_a_header_says_what_it_can_without_rows(tmp_path):
    assert read_header(write(tmp_path, MIXED, "csv")) == dict.fromkeys(MIXED.columns, "number")
    scaling = MIXED.assign(day=pd.Timestamp("2020-01-01"))
    kinds = read_header(write(tmp_path, scaling, "parquet"))
    assert kinds == {
        "age": "number", "ward": "category", "room": "number", "id": "category", "out": "number", "day": "date"
    }  # fmt: skip


def test_the_header_is_the_same_whatever_the_rows(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a,b\nx,\n,\n9,9\n")
    assert skeleton(read_header(tmp_path / "a.csv")) == skeleton(read_header(tmp_path / "b.csv"))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_read_from_the_header(tmp_path, separator):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff" + f"a{separator}b\n1{separator}2\n", encoding="utf-8")
    table = read_table(path, skeleton(read_header(path)), target=False)
    assert table.names == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1, 2]])


SPELLINGS = [([True, False], [1, 0]), ([2**60 + 1, 3], [2.0**60, 3]), ([" 1.5", "+2 "], [1.5, 2])]


@pytest.mark.parametrize(
    ("form", "values", "expected"),
    [(form, *spelling) for form in ("csv", "parquet") for spelling in SPELLINGS] + [("csv", [10**25, 1], [1e25, 1])],
)
def test_every_spelling_of_a_number_is_read(tmp_path, form, values, expected):
    path = write(tmp_path, pd.DataFrame({"x": values}), form)
    np.testing.assert_array_equal(read_table(path, skeleton({"x": "number"}), target=False).X[:, 0], expected)


def test_dates_are_not_numbers(tmp_path):
    path = write(tmp_path, pd.DataFrame({"x": pd.date_range("2020-01-01", periods=3)}), "parquet")
    with pytest.raises(ValueError, match="'x' is not numeric"):
        read_table(path, skeleton({"x": "number"}), target=False)


BROKEN = [
    ("a,b\n1,\n", "'b' has missing values"),
    ("a,b\n1,nan\n", "'b' has missing values"),
    ("a,b\n1,inf\n", "'b' contains infinity"),
    ("a,b\n1,1e999\n", "'b' contains infinity"),
    ("a,b\n1,secret\n", "'b' is not numeric"),
    ("a,b\n1,2\n1,2,3\n", "fields like the header"),
    ("a,b\n1,2,3\n1,2\n", "fields like the header"),
    ("a,b\n1\n", "fields like the header"),
    ("a,a\n1,2\n", "duplicate column names, in columns 1 and 2"),
    ("a,\n1,2\n", "column 2 has no name"),
    ("a,b\n", "no rows"),
    ("", "empty"),
    ("a,c\n1,2\n", "no column 'b'"),
]


@pytest.mark.parametrize(("text", "word"), BROKEN)
def test_a_broken_table_is_one_line_without_values(tmp_path, text, word):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=word) as caught:
        read_table(path, skeleton({"a": "number", "b": "number"}), target=False)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_files_of_another_kind_are_refused(tmp_path):
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"a,b\n1,2\n" * 3000 + b"\xe9,1\n")
    with pytest.raises(ValueError, match="UTF-8"):
        read_table(latin, skeleton({"a": "number"}), target=False)
    fake = tmp_path / "fake.parquet"
    fake.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="could not be read: a file is damaged"):
        read_header(fake)


def test_a_column_with_categories_is_one_of_them():
    read = Schema.from_dict({"columns": [{"name": "ward", "categories": ["red", "blue"]}]})
    assert read.columns[0].type == "category"


def test_one_level_is_the_baseline_and_earlier_files_keep_all_of_them():
    content = {"columns": [{"name": "c", "categories": ["x", "y", "z"]}]}
    assert Schema.from_dict(content).feature_names == ["c=y", "c=z"]
    content["columns"][0]["baseline"] = "z"
    chosen = Schema.from_dict(content)
    assert chosen.feature_names == ["c=x", "c=y"]
    assert chosen.columns[0].compared_with == "z"
    assert Schema.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen
    every = Schema.from_dict({"columns": [{"name": "c", "categories": ["x", "y", "z"], "every_level": True}]})
    earlier = Schema.from_dict(
        {"format": "discreet schema 1", "columns": [{"name": "c", "categories": ["x", "y", "z"]}]}
    )
    assert every.feature_names == earlier.feature_names == ["c=x", "c=y", "c=z"]
    assert earlier.to_dict()["format"] == "discreet schema 1"
    assert "every_level" not in earlier.to_dict()["columns"][0]
    assert Schema.from_dict(json.loads(json.dumps(earlier.to_dict()))) == earlier


def test_levels_of_a_category_are_identified(tmp_path):
    """With all levels beside the intercept a constant can be moved from one to the others; without the baseline not."""
    frame = pd.DataFrame({"c": ["x", "y", "z", "x"]})
    for every, rank in ((False, 3), (True, 3)):
        column = Column("c", "category", categories=("x", "y", "z"), every_level=every)
        X = read_table(write(tmp_path, frame, "csv"), Schema((column,)), target=False).X
        beside = np.column_stack([np.ones(4), X])
        assert (beside.shape[1] == rank) is not every
        assert np.linalg.matrix_rank(beside) == rank


def test_a_declared_number_stands_where_one_is_missing(tmp_path):
    frame = pd.DataFrame({"a": [1.0, None, 1.2]})
    path = write(tmp_path, frame, "csv")
    for fill, wanted in ((None, 5.0), (1.1, 1.1)):
        column = Column("a", low=0.0, high=10.0, missing="indicator", fill=fill)
        X = read_table(path, Schema((column,)), target=False).X
        np.testing.assert_array_equal(X, [[1.0, 0.0], [wanted, 1.0], [1.2, 0.0]])
