"""Declared bounds: pairs, names, open sides; what is refused, in one line that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.data.public import Public, boolean_columns, check_bounds, check_complete_bounds, declared_bounds, names_of

NAMES = ["age", "income", "smoker"]
INF = np.inf


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        ((0.0, 1.0), [0, 0, 0], [1, 1, 1]),
        ((0.0, None), [0, 0, 0], [INF, INF, INF]),
        (([0, None, -1], [1, 5, np.nan]), [0, -INF, -1], [1, 5, INF]),
        ((-INF, [1, INF, 2]), [-INF, -INF, -INF], [1, INF, 2]),
        ({"age": (0, 120)}, [0, -INF, -INF], [120, INF, INF]),
        ({"income": (0, None), "smoker": [float("nan"), 1]}, [-INF, 0, -INF], [INF, INF, 1]),
    ],
)
def test_open_sides_are_infinite(bounds, low, high):
    found = check_bounds(bounds, 3, feature_names=NAMES)
    np.testing.assert_array_equal(found, [low, high])


@pytest.mark.parametrize("bounds", [None, (None, None), {}, {"age": (None, np.nan)}, ([-INF] * 3, [INF] * 3)])
def test_nothing_declared_is_nothing(bounds):
    assert check_bounds(bounds, 3, feature_names=NAMES) is None
    assert not Public.of(10, 3, bounds=bounds, feature_names=NAMES).bounded


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"agee": (0, 1)}, "bounds names the column 'agee'.*did you mean 'age'"),
        ({3: (0, 1)}, "bounds names the column 3"),
        ({"age": 5}, "bounds of column 'age' must be a pair"),
        ({"age": "data"}, "bounds of column 'age' must be a pair"),
        ({"age": (0, 1, 2)}, "bounds of column 'age' must be a pair"),
        ({"age": (2, 1)}, r"low > high in column 0 \(2 > 1\)"),
        ((INF, None), "must be finite"),
        ((None, -INF), "must be finite"),
        ((0, 1e101), "must be finite"),
        ((1e-200, None), "closer together or to 0"),
        ((0, "a"), "must be a pair"),
    ],
)
def test_mistakes_are_told_in_one_line(bounds, message):
    with pytest.raises(ValueError, match=message) as error:
        check_bounds(bounds, 3, feature_names=NAMES)
    assert "\n" not in str(error.value)


def test_names_need_a_table_with_names():
    with pytest.raises(ValueError, match="bounds by name needs columns with names"):
        Public.of(10, 3, bounds={"age": (0, 1)})
    with pytest.raises(ValueError, match="feature_names has 3 names, but the table has 4"):
        check_bounds({"age": (0, 1)}, 4, feature_names=NAMES)


def test_where_no_range_can_be_learned_both_ends_are_asked_for():
    assert check_complete_bounds(None, 3) is None
    for bounds, column in (((0, None), 0), ({"age": (0, 1)}, "'income'"), (([0, 0, None], 1), 2)):
        names = NAMES if isinstance(bounds, dict) else None
        with pytest.raises(ValueError, match=f"both ends here, low and high; column {column} lacks one"):
            check_complete_bounds(bounds, 3, "bounds", names)
    with pytest.raises(ValueError, match="y_bounds must have both ends"):
        Public.of(10, 3, y_bounds=(0, None))


def test_the_type_bool_and_no_value_tells_bounds():
    values = {"a": [True, False], "b": [0, 1], "c": [0.0, 1.0]}
    frame = pd.DataFrame(values)
    coded = frame.assign(b=frame.b.astype("category"))  # pandas finds these categories among the values
    for table in (frame, coded, pl.DataFrame(values), frame.astype({"a": "boolean"})):
        assert boolean_columns(table).tolist() == [True, False, False]
    for table in (frame[["b", "c"]], frame.to_numpy(), None):
        assert boolean_columns(table) is None
    assert boolean_columns(np.zeros((3, 2), dtype=bool)).tolist() == [True, True]
    booleans = boolean_columns(frame)
    np.testing.assert_array_equal(declared_bounds(None, 3, None, booleans), [[0, -INF, -INF], [1, INF, INF]])
    named = declared_bounds({"a": (None, 0.5), "b": (0, 2)}, 3, ["a", "b", "c"], booleans)
    np.testing.assert_array_equal(named, [[-INF, 0, -INF], [0.5, 2, INF]])  # who names a column decides
    np.testing.assert_array_equal(declared_bounds((-1, 1), 3, None, booleans), [[-1, -1, -1], [1, 1, 1]])


def test_a_column_called_names_is_a_column():
    assert names_of(pd.DataFrame({"names": ["x"], "dtypes": ["y"]})) == ["names", "dtypes"]
    assert names_of(np.zeros((2, 2))) is None
    assert names_of(pd.DataFrame(np.zeros((1, 2)))) is None
    assert boolean_columns(pd.DataFrame({"dtypes": [True], "columns": [1.0]})).tolist() == [True, False]


def test_open_sides_are_written_as_null():
    facts = Public.of(10, 2, bounds=([0, None], [None, 1])).to_dict()
    assert (facts["low"], facts["high"]) == ([0.0, None], [None, 1.0])


@pytest.mark.parametrize("bounds", ["12", {"a": "12"}])
def test_a_text_is_no_pair_of_bounds(bounds):
    with pytest.raises(ValueError, match="must be a pair"):
        check_bounds(bounds, 1, feature_names=["a"])
