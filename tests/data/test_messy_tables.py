"""Messy tables: gaps, dates, decimal commas, Excel's CSV, compressed files and pipes; faults are told at once."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

from discreet.data.files import open_table, read_table
from discreet.data.schema import Column, Schema, Target, skeleton


def written(tmp_path, text, name="table.csv", encoding="utf-8"):
    path = tmp_path / name
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def read(path, *columns, target=None):
    schema = Schema(tuple(columns), Target() if target is None else target)
    return read_table(path, schema, target=target is not None)


# --- missing values ----------------------------------------------------------------------------------------------


def test_missing_numbers_become_a_value_or_have_an_indicator(tmp_path):
    path = written(tmp_path, "a,b,c\n1,NA,3\n,5,\n")
    columns = Column("a", missing=-1), Column("b", low=0, high=8, missing="indicator"), Column("c", missing="indicator")
    table = read(path, *columns)
    assert table.names == ["a", "b", "b=missing", "c", "c=missing"]
    np.testing.assert_array_equal(table.X, [[1, 4, 1, 3, 0], [-1, 5, 0, 0, 1]])
    bounds = Schema(columns).bounds
    assert bounds == ([None, 0, 0.0, None, 0.0], [None, 8, 1.0, None, 1.0])


def test_missing_categories_become_a_category_or_have_an_indicator(tmp_path):
    path = written(tmp_path, "a,b,c\nx,y,NA\n,NA,\nz,z,z\n")
    columns = (
        Column("a", "category", categories=("x", "z"), missing="z", every_level=True),
        Column("b", "category", categories=("y",), missing="indicator"),
        Column("c", "category", categories=("NA",), missing="indicator"),  # a code such as Namibia's
    )
    table = read(path, *columns)
    assert table.names == ["a=x", "a=z", "b=y", "b=missing", "c=NA", "c=missing"]
    np.testing.assert_array_equal(table.X, [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1], [0, 1, 0, 0, 0, 0]])


def test_infinities_are_not_missing(tmp_path):
    with pytest.raises(ValueError, match="column 'a' contains infinity"):
        read(written(tmp_path, "a\ninf\n"), Column("a", missing="indicator"))


# --- dates -------------------------------------------------------------------------------------------------------


def test_dates_become_days_since_a_public_epoch(tmp_path):
    path = written(tmp_path, "d,e\n2000-01-11,2024-02-29\n1999-12-31 12:00:00,\n")
    first = Column("d", "date", epoch="2000-01-01", low="1999-01-01", high="2001-01-01")
    second = Column("e", "date", missing="1970-01-02")
    table = read(path, first, second)
    np.testing.assert_array_equal(table.X, [[10.0, 19782.0], [-0.5, 1.0]])
    assert first.limits == (-365.0, 366.0)
    assert Schema((first, second)).bounds == ([-365.0, None], [366.0, None])
    for text in ("31.12.2024", "2024-13-01", "x"):
        with pytest.raises(ValueError, match="column 'd' holds something else than ISO dates; write dates as") as error:
            read(written(tmp_path, f"d\n{text}\n"), Column("d", "date"))
        assert text not in str(error.value)


def test_dates_of_parquet_files(tmp_path):
    days = pd.to_datetime(["2000-01-02", "2000-01-03"])
    path = tmp_path / "table.parquet"
    pd.DataFrame({"d": days.date, "t": days, "x": [1.0, 2.0]}).to_parquet(path)
    with open_table(path) as file:
        assert file.kinds == {"d": "date", "t": "date", "x": "number"}
        schema = skeleton(file.kinds)
        table = file.read(schema, target=False)
    np.testing.assert_array_equal(table.X, [[10958, 10958, 1], [10959, 10959, 2]])


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["", "sep=;\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_what_excel_writes_is_read(tmp_path, first, encoding, name):
    text = f'{first}age;pay;note\r\n44;1.234,5;"a, b"\r\n45;-0,25;c\r\n'
    path = written(tmp_path, text, name, encoding)
    note = Column("note", "category", categories=("a, b",))
    table = read(path, Column("age"), note, target=Target("pay"))
    np.testing.assert_array_equal(table.X, [[44, 1], [45, 0]])
    np.testing.assert_array_equal(table.y, [1234.5, -0.25])


def test_decimal_marks(tmp_path):
    semicolons = written(tmp_path, "a;b\n1.5;2,5\n")
    np.testing.assert_array_equal(read(semicolons, Column("a"), Column("b")).X, [[1.5, 2.5]])
    np.testing.assert_array_equal(read(semicolons, Column("a", decimal=",")).X, [[15.0]])
    tabs = written(tmp_path, "a\tb\n1,5\t2\n", "tabs.csv")
    np.testing.assert_array_equal(read(tabs, Column("a", decimal=","), Column("b")).X, [[1.5, 2.0]])
    with pytest.raises(ValueError, match="'a' is not numeric"):
        read(tabs, Column("a"))
    with pytest.raises(ValueError, match="'b' is not numeric"):
        read(semicolons, Column("b", decimal="."))


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_a_table_may_come_through_a_pipe(tmp_path, monkeypatch, kind):
    frame, buffer = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(buffer)
    else:
        content = frame.to_csv(index=False).encode()
        buffer.write(gzip.compress(content) if kind == "gz" else content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(buffer.getvalue())))
    table = read("-", Column("a"), Column("b"))
    np.testing.assert_array_equal(table.X, frame.to_numpy())


@pytest.mark.parametrize("cut", [0, 15, 25])
def test_damaged_compressed_files_are_refused_in_one_line(tmp_path, cut):
    content = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    path = tmp_path / "table.csv.gz"
    for damaged in (content[:cut], content[:cut] + b"\xff" + content[cut + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"table\.csv\.gz") as error:
            read(path, Column("a"))
        assert "\n" not in str(error.value)


def test_all_columns_with_the_same_fault_are_named_at_once(tmp_path):
    path = written(tmp_path, "a,b,c,d,e\nx,1,y,,\n2,1,z,4,\n")
    with pytest.raises(ValueError, match="2 columns, 'a', 'c', are not numeric; declare"):
        read(path, *map(Column, "abcde"))
    with pytest.raises(ValueError, match=r"2 columns, 'd', 'e', have missing values.*\"missing\": \"indicator\""):
        read(path, *map(Column, "bde"))
    many = written(tmp_path, ",".join(f"c{i}" for i in range(100)) + "\n" + ",".join(["x"] * 100) + "\n")
    with pytest.raises(ValueError, match=r"100 columns, 'c0'.*, are not numeric") as error:
        read(many, *(Column(f"c{i}") for i in range(100)))
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "date", "low": "yesterday"}, "limits of column 'a' must be finite"),
        ({"type": "date", "epoch": "soon"}, "epoch belongs to dates"),
        ({"epoch": "2000-01-01"}, "epoch belongs to dates"),
        ({"decimal": ";"}, "decimal must be"),
        ({"missing": "none"}, 'missing must be "indicator" or a finite number'),
        ({"missing": float("inf")}, "missing must be"),
        ({"missing": True}, "missing must be"),
        ({"missing": [1]}, "missing must be"),
        ({"type": "date", "missing": "x"}, "a date or a number of days"),
        ({"type": "category", "categories": ["x"], "missing": "y"}, "one of its categories"),
        ({"type": "category", "categories": ["x", "missing"], "missing": "indicator"}, "same name after encoding"),
        ({"type": "date", "low": "2001-01-01", "high": "2000-01-01"}, "low > high"),
    ],
)
def test_mistakes_in_a_schema_are_one_line(fields, message):
    with pytest.raises(ValueError, match=message) as error:
        Schema.from_dict({"columns": [{"name": "a"} | fields]})
    assert "\n" not in str(error.value)


def test_schemas_come_back_from_their_files_and_stay_short():
    schema = Schema(
        (
            Column("a", missing=3),
            Column("b", "category", categories=("1",), missing="1"),
            Column("d", "date", low="2000-01-01", epoch="1999-01-01", missing="indicator"),
            Column("plain"),
        )
    )
    content = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(content) == schema
    assert set(content["columns"][3]) == {"name", "type", "low", "high", "categories"}


# --- rows that must not change what is done with others --------------------------------------------------------------


def test_one_long_text_takes_no_memory_from_the_other_rows(tmp_path):
    rows = 40_000
    path = written(tmp_path, "c,a\n" + "x,1\n" * rows + "q" * 900_000 + ",2\n")  # as texts of one width: 144 GB
    table = read(
        path, Column("c", "category", categories=("x", "y"), missing="indicator", every_level=True), Column("a")
    )
    np.testing.assert_array_equal(table.X.sum(axis=0), [rows, 0, 0, rows + 2])


def test_a_category_that_fills_gaps_may_be_given_as_a_number(tmp_path):
    path = written(tmp_path, "c,a\n,1\n2,1\n")
    column = Column("c", "category", categories=("1", "2"), missing=1.0, every_level=True)
    np.testing.assert_array_equal(read(path, column).X, [[1, 0], [0, 1]])


def test_dates_far_away_stay_on_their_side(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    cases = (
        (pa.timestamp("ms"), 2**62, 2.0**62 / 86_400e3),
        (pa.timestamp("ns"), 2**62, 2.0**62 / 86_400e9),
        (pa.date32(), 2**31 - 1, 2.0**31 - 1),
        (pa.date64(), 86_400_000 * 10**9, 1e9),
    )
    for kind, value, days in cases:
        plain = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        parquet.write_table(pa.table({"d": pa.array([0, value, None], plain).cast(kind)}), tmp_path / "t.parquet")
        found = read(tmp_path / "t.parquet", Column("d", "date", missing=7)).X[:, 0]
        np.testing.assert_allclose(found, [0.0, days, 7.0], rtol=1e-12, err_msg=str(kind))


def test_an_empty_line_of_one_column_is_a_row(tmp_path):
    """Left out, it would change the number of rows, and move all predictions after it."""
    path = written(tmp_path, "a\n1\n\n3\n")
    np.testing.assert_array_equal(read(path, Column("a", missing=7)).X[:, 0], [1, 7, 3])
    with pytest.raises(ValueError, match="missing values"):
        read(path, Column("a"))
