"""One raw row must not decide how others are read: containers whose type, or whose first row, one value can change."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pytest

from discreet.data.files import open_table
from discreet.data.invalid_rows import label_codes, numbers_of, text_of
from discreet.data.loading import load
from discreet.data.people import array_of
from discreet.data.schema import Column, Schema, Target

AT, ROWS = 2, 6
HOSTILE = [
    2**64,
    10**400,
    -(10**400),
    2**63,
    b"\xff",
    [1],
    (1,),
    [],
    np.ma.masked,
    None,
    float("nan"),
    "\ud800",
    1 + 2j,
]


def read(X, y, **given):
    """What becomes of a raw table, and what is said meanwhile."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rows = load(X, y, "numbers", given, invalid_rows="neutral").rows
    return np.column_stack([rows.X, rows.y, rows.weight]), [str(each.message) for each in told]


def beside(raw, entry):
    """The rows of a table beside the one that an entry is in."""
    found, told = raw(entry)
    assert told == []
    return np.delete(found, AT, axis=0)


@pytest.mark.parametrize("entry", HOSTILE, ids=repr)
def test_no_weight_of_a_list_stops_a_run_or_warns(entry):
    X, y = np.arange(2.0 * ROWS).reshape(ROWS, 2), np.arange(float(ROWS))

    def raw(value):
        weights = [0.5, 1, "0.25", 1.0, 0, 1]
        weights[AT] = value
        return read(X, y, sample_weight=weights)

    np.testing.assert_array_equal(beside(raw, entry), beside(raw, 1.0))


@pytest.mark.parametrize("where", ["X", "y", "weights"])
@pytest.mark.parametrize("entry", [2**64, -(2**63) - 1, 10**30])
def test_large_numbers_in_columns_of_polars_concern_their_row_alone(where, entry):
    polars = pytest.importorskip("polars")

    def raw(value):
        own = polars.Series("a", [1, 0, value, 1, 0, 1], strict=False)
        X = polars.DataFrame({"a": own}) if where == "X" else np.arange(float(ROWS))[:, None]
        y = own if where == "y" else np.arange(float(ROWS))
        return read(X, y, **({"sample_weight": own} if where == "weights" else {}))

    np.testing.assert_array_equal(beside(raw, entry), beside(raw, 1))


@pytest.mark.parametrize("weight", [0.5, np.float64(0.5), np.array(0.5)])
def test_one_weight_is_still_that_of_all_rows(weight):
    rows = load(np.ones((ROWS, 1)), np.zeros(ROWS), "numbers", {"sample_weight": weight}, invalid_rows="neutral").rows
    assert rows.weight.tolist() == [0.5] * ROWS


def test_columns_without_a_type_of_numpy_become_objects():
    class Column128:
        values = (1, 2**100)

        def __len__(self):
            return len(self.values)

        def to_list(self):
            return list(self.values)

        def to_numpy(self):
            raise RuntimeError("no 128-bit integer types")

    assert array_of(Column128()).tolist() == [1, 2**100]
    assert numbers_of(array_of(Column128())).tolist() == [1.0, 2.0**100]


def test_decimals_are_the_same_text_with_and_without_a_fraction():
    """A column has as many digits as one of its rows needs: labels and ids must not depend on it."""
    assert {text_of(Decimal(text)) for text in ("1", "1.0", "1.000", "0.1E+1")} == {text_of(1)} == {text_of(1.0)}
    assert text_of(Decimal("1.50")) == text_of(1.5) != text_of(Decimal("1.05"))
    assert text_of(Decimal("-0.0")) == text_of(-0.0) == "0"
    assert len(text_of(Decimal("1E+100000"))) < 20
    polars = pytest.importorskip("polars")
    for last in (Decimal(1), Decimal("0.5")):
        labels = polars.Series([Decimal(0), Decimal(1), last])
        assert label_codes(labels, ["0", "1"])[:2].tolist() == [0, 1]


@pytest.mark.parametrize("first", ["1,2,3", "1;2;3", "1,2,3,4"])
def test_a_file_without_a_header_is_refused_as_its_first_row_would_decide(tmp_path, first):
    path = tmp_path / "table.csv"
    path.write_text(f"{first}\n4,5,6\n7,8,9\n", encoding="utf-8")
    with open_table(path, header=False) as file:
        schema = Schema((Column("column_1"), Column("column_2")), Target("column_3"))
        with pytest.raises(ValueError, match="without a header the first row decides"):
            file.read(schema, True, neutral=True)
        if first == "1,2,3":
            assert file.read(schema, True).rows == 3
