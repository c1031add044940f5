"""`invalid_rows="neutral"`: one map of each row by itself, whatever the other rows have made of its column."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.data import invalid_rows
from discreet.data.arrow_columns import each_cast, read_features
from discreet.data.invalid_rows import label_codes, numbers_of, read_rows, target_numbers
from discreet.data.loading import load
from discreet.data.schema import Column, Schema
from discreet.data.validation import Table

ROWS, AT = 12, 5


class Hostile:
    """An object that raises whatever it is asked."""

    def __float__(self):
        raise RuntimeError("HIV")

    __str__ = __eq__ = __hash__ = __float__


NUMBERS = [
    1.5,
    -0.0,
    5e-324,
    1e308,
    3,
    True,
    np.float32(0.1),
    np.int64(2**53 + 1),
    Decimal("0.1"),
    Fraction(1, 4),
    "2.5",
]
NUMBERS += [" 7 ", b"1e3", 2 + 0j, np.complex128(1.0), np.bool_(True), "true", np.float16(0.1)]
MISSING = [None, np.nan, pd.NA, pd.NaT, "", "nan", float("nan"), np.ma.masked]
NO_NUMBERS = [
    np.inf,
    -np.inf,
    "HIV",
    "inf",
    10**400,
    "1e999",
    1j,
    [1.0],
    (1.0,),
    {},
    np.datetime64("2020-01-01"),
    b"\xff",
]
NO_NUMBERS += [np.timedelta64(1, "s"), pd.Timestamp("2020-01-01"), np.array([1.0]), Decimal("sNaN"), Hostile(), object]


def objects(values):
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def table(dtype=np.float64):
    rng = np.random.default_rng(0)
    return rng.uniform(-1.0, 1.0, (ROWS, 3)).astype(dtype)


def neutral(X, y=None, **given):
    """What the door makes of a table in memory."""
    kind = None if y is None else "numbers"
    return load(X, y, kind, given, invalid_rows="neutral").rows


def test_each_value_is_read_by_itself_and_none_raises_or_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = numbers_of(objects(NUMBERS))
        assert np.isfinite(read).all()
        assert [float(numbers_of(objects([one]))[0]) for one in NUMBERS] == read.tolist()
        assert np.isnan(numbers_of(objects(MISSING))).all()
        assert np.isinf(numbers_of(objects(NO_NUMBERS))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint64, np.int64, bool, np.complex64])
def test_an_array_and_the_objects_it_becomes_give_the_same_numbers_bit_for_bit(dtype):
    values = np.random.default_rng(1).integers(0, 2**7, 50).astype(np.uint64) * np.uint64(2**54 + 1)
    array = (values / 7.0).astype(dtype) if np.dtype(dtype).kind in "fc" else values.astype(dtype)
    as_objects = array.astype(object)
    for j, one in enumerate(array):  # as pandas keeps them beside a text
        as_objects[j] = one
    assert (
        numbers_of(array).tobytes() == numbers_of(as_objects).tobytes() == numbers_of(objects(array.tolist())).tobytes()
    )


def test_dates_are_no_numbers_also_where_numpy_could_count_them():
    days = np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]")
    assert np.isinf(numbers_of(days)).all()
    assert np.isinf(numbers_of(days - days[0])).all()


def containers(X, at, bad):
    """The table with one bad entry, in everything that holds it: (name, table)."""
    as_objects = X.astype(object)
    as_objects[at, 1] = bad
    names = list("abc")
    yield "objects", as_objects
    yield "frame", pd.DataFrame(as_objects, columns=names)
    inferred = pd.DataFrame(X, columns=names)
    inferred["b"] = pd.Series(as_objects[:, 1]).infer_objects()
    yield "one column of objects", inferred
    if isinstance(bad, str):
        yield "texts", as_objects.astype(str)
        texts = pd.DataFrame(X, columns=names)
        texts["b"] = [one if isinstance(one, str) else repr(float(one)) for one in as_objects[:, 1]]
        yield "one column of texts", texts
    if isinstance(bad, float):
        numbers = X.copy()
        numbers[at, 1] = bad
        yield "numbers", numbers
        yield "sparse rows", sp.csr_array(numbers)
        yield "sparse columns", sp.csc_matrix(numbers)
        yield "sparse coordinates", sp.coo_array(numbers)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "HIV", None, 1j, 10**400, pd.NA], ids=repr)
def test_a_row_that_cannot_be_read_becomes_the_null_row_and_all_others_stay(bad):
    X = table()
    wanted = np.where(np.arange(ROWS)[:, None] == AT, 0.0, X)
    for name, given in containers(X, AT, bad):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows = neutral(given, np.arange(ROWS))
        found = rows.X.toarray() if sp.issparse(rows.X) else rows.X
        assert found.dtype == np.float64, name
        assert found.tobytes() == np.ascontiguousarray(wanted).tobytes(), name
        assert rows.weight.tolist() == [float(i != AT) for i in range(ROWS)], name
        assert rows.y.tolist() == [0.0 if i == AT else i for i in range(ROWS)], name


def test_polars_frames_are_read_alike():
    pl = pytest.importorskip("polars")
    X = table()
    frame = pl.DataFrame(X, schema=list("abc"))
    texts = frame.with_columns(
        pl.Series("b", [repr(one) if i != AT else "HIV" for i, one in enumerate(X[:, 1].tolist())])
    )
    gaps = frame.with_columns(pl.Series("b", [one if i != AT else None for i, one in enumerate(X[:, 1].tolist())]))
    wanted = np.where(np.arange(ROWS)[:, None] == AT, 0.0, X)
    for given in (texts, gaps):
        rows = neutral(given)
        assert np.array_equal(rows.X, wanted)
        assert rows.weight[AT] == 0.0


@pytest.mark.parametrize(
    ("kind", "bad"), [("Int64", pd.NA), ("boolean", pd.NA), ("float32", np.nan), ("category", "x")]
)
def test_types_of_pandas_with_gaps_are_read_as_those_without(kind, bad):
    values = pd.Series([0, 1] * (ROWS // 2), dtype="object" if kind == "category" else kind)
    hostile = values.astype(object)
    hostile[AT] = bad
    hostile = hostile.astype(kind)
    first = neutral(pd.DataFrame({"a": values.astype(kind)}))
    second = neutral(pd.DataFrame({"a": hostile}))
    keep = np.arange(ROWS) != AT
    assert first.X[keep].tobytes() == second.X[keep].tobytes()
    assert (first.weight == 1.0).all()
    assert second.weight.tolist() == keep.astype(float).tolist()


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, "x", None], ids=repr)
def test_a_bad_weight_makes_its_row_null_alone(bad):
    weight = [0.5] * ROWS
    weight[AT] = bad
    rows = neutral(table(), np.ones(ROWS), sample_weight=weight)
    assert rows.weight.tolist() == [0.0 if i == AT else 0.5 for i in range(ROWS)]
    assert (rows.X[AT] == 0.0).all()


def test_every_row_has_a_weight_also_if_all_can_be_read_and_the_state_is_the_options():
    found = load(table(), np.ones(ROWS), "numbers", invalid_rows="neutral")
    assert (found.rows.weight == 1.0).all()
    assert found.weighted
    assert found.public().neutral
    assert not load(table(), np.ones(ROWS), "numbers").weighted


def test_columns_of_truth_values_have_no_bounds_by_their_type():
    truths = pd.DataFrame({"a": [True, False] * 6})
    assert load(truths, np.ones(ROWS), "numbers", invalid_rows="neutral").booleans is None
    assert load(truths, np.ones(ROWS), "numbers").booleans is not None


def test_labels_are_compared_so_that_no_other_label_changes_what_they_are():
    numbers = np.array([0, 1])
    for labels in (
        [0, 1.0, True, "1", "0.0", np.int8(1)],
        objects([0, 1, 1, 1, 0, 1]),
        np.array(["0", "1", "1", "1", "0", "1"]),
    ):
        assert label_codes(labels, numbers).tolist() == [0, 1, 1, 1, 0, 1]
    assert label_codes([0, "x", 2, None, np.nan, Hostile(), []], numbers).tolist() == [0, -1, -1, -2, -2, -1, -1]
    texts = np.array(["1", "no"])
    assert label_codes(["no", 1, 1.0, "yes", None, Hostile(), ""], texts).tolist() == [1, 0, 0, -1, -2, -1, -2]


def test_rows_without_an_id_are_left_out_and_ids_are_compared_as_texts():
    X, y = table(), np.arange(ROWS, dtype=float)
    whole = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    floats = [1.0, 1.0, 2.0, 2.0, 3.0, np.nan, 4.0, 4.0, 5.0, 5.0, 6.0, 6.0]
    mixed = [1, "1", 2, 2.0, 3, None, 4, 4, "5", 5, 6, 6]
    keep = np.arange(ROWS) != AT
    first = neutral(X, y, groups=whole)
    for ids in (floats, mixed, np.array(floats), pd.Series(mixed)):
        second = neutral(X, y, groups=ids)
        assert second.units == first.units == 6
        assert np.array_equal(second.X, first.X[keep])
        assert np.array_equal(second.persons, first.persons[keep])


def test_what_holds_the_rows_must_tell_its_shape_without_them():
    with pytest.raises(ValueError, match="needs X as an array, a sparse matrix or a data frame"):
        neutral([[1.0], [2.0, 3.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="y has 3 values but X has 12 rows"):
        neutral(table(), [1.0, "HIV", 2.0])
    with pytest.raises(ValueError, match="needs classes="):
        load(table(), np.ones(ROWS), "labels", invalid_rows="neutral", estimator=object())
    for other in ("skip", None, True, ["neutral"]):
        with pytest.raises(ValueError, match="must be 'error' or 'neutral'"):
            load(table(), invalid_rows=other)


def test_stored_twice_entries_whose_sum_is_no_number_make_their_row_null():
    stored = sp.csr_array((np.array([1e308, 1e308, 1.0]), np.array([0, 0, 0]), np.array([0, 2, 3])), shape=(2, 1))
    rows = neutral(stored)
    assert rows.weight.tolist() == [0.0, 1.0]
    assert rows.X.toarray().tolist() == [[0.0], [1.0]]


def test_a_cast_reads_each_text_alone_also_beside_texts_that_it_refuses():
    pa = pytest.importorskip("pyarrow")
    numbers = [repr(one) for one in np.random.default_rng(2).lognormal(0.0, 50.0, 300).tolist()] + [
        "1e5",
        " 3"[1:],
        "-0",
    ]
    whole, none = each_cast(pa.array(numbers), pa.float64())
    assert not none.any()
    hostile = [*numbers[:100], "HIV", None, *numbers[100:], "x", "HIV"]
    found, unread = each_cast(pa.chunked_array([hostile[:40], hostile[40:]]), pa.float64())
    assert np.flatnonzero(unread).tolist() == [100, 305, 306]
    kept = np.asarray(found.to_numpy(zero_copy_only=False))[~unread & ~np.asarray(found.is_null())]
    assert kept.tobytes() == whole.to_numpy().tobytes()


def test_arrow_columns_mark_single_values_and_not_those_a_schema_allows():
    pa = pytest.importorskip("pyarrow")
    schema = Schema(
        (
            Column("a"),
            Column("b", missing=7.0),
            Column("c", "category", categories=("x", "y"), every_level=True),
            Column("d", "date"),
        )
    )
    batch = pa.table(
        {
            "a": ["1", "HIV", "", "true", "inf", "2"],
            "b": ["1", "", "NA", "x", "2", "3"],
            "c": ["x", "q", None, "y", "x", "y"],
            "d": ["1970-01-02", "1970-01-02", "1970-01-03", "1970-01-04", "1970-01-05", "yesterday"],
        }
    )
    X = np.empty((6, 5))
    read_features("t", batch, schema, X, neutral=True)
    assert np.isfinite(X).all(axis=1).tolist() == [True, False, False, False, False, False]
    assert np.isinf(X[[1, 2, 4], 0]).all()
    assert X[[0, 3, 5], 0].tolist() == [1.0, 1.0, 2.0]
    assert X[[0, 1, 2, 4, 5], 1].tolist() == [1.0, 7.0, 7.0, 2.0, 3.0]
    assert np.isinf(X[3, 1])
    assert X[1, 2:4].tolist() == [0.0, 0.0]  # no category has been listed for it
    assert X[:5, 4].tolist() == [1.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="are not numeric"):
        read_features("t", batch, schema, X)


def test_a_planted_map_that_looks_at_the_column_is_found(monkeypatch):
    """The second arm: a row is read by the type of its column, as NumPy would."""

    def by_column(values):
        return np.asarray(values, dtype=np.float64) if values.dtype.kind in "biuf" else np.full(values.shape, np.inf)

    keep = np.arange(ROWS) != AT
    hostile = pd.DataFrame(table(), columns=list("abc")).astype({"b": object})
    hostile.loc[AT, "b"] = "HIV"
    assert (neutral(hostile).weight == keep).all()
    monkeypatch.setattr(invalid_rows, "numbers_of", by_column)
    assert not (neutral(hostile).weight == keep).all()


def test_the_map_is_applied_once_with_the_same_result_as_twice():
    X = table().astype(object)
    X[AT, 0] = "x"
    first = read_rows(pd.DataFrame(X, columns=list("abc")), np.ones(ROWS), {}, target_numbers)
    again = read_rows(first[0], first[1], first[2], target_numbers)
    assert isinstance(again[0], Table)
    assert np.array_equal(first[0].X, again[0].X)
    assert np.array_equal(first[2]["sample_weight"], again[2]["sample_weight"])
