"""Tables that stay in their files: the blocks are those of the same rows in memory, in every pass."""

import gc
import tracemalloc
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet import LogisticRegression, Ridge
from discreet.data import rows as rows_module
from discreet.data.files import open_table
from discreet.data.loading import table_elsewhere
from discreet.data.rows import Data, block_rows
from discreet.data.schema import Column, Schema, Target
from discreet.data.stored_table import StoredTable, table_of_dataset
from discreet.data.validation import declared_classes, encode_labels
from discreet.privacy.budget import Budget
from discreet.problem.column_scaling import identity_scaling
from discreet.problem.constraints import L2Ball
from discreet.problem.losses import Logistic, Squared
from discreet.problem.problem import Problem
from discreet.problem.scaled_problem import unscaled_problem
from discreet.solvers.run import make_solver

ROWS = 1_003


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 100)


def frame(rows=ROWS):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "a": rng.normal(size=rows),
            "ward": rng.choice(["red", "blue", "mauve", None], rows),
            "b": rng.integers(-5, 5, rows).astype(np.int32),
            "y": rng.choice(["no", "yes"], rows),
            "c": rng.normal(size=rows).astype(np.float32),
        }
    )


SCHEMA = Schema(
    (Column("c"), Column("ward", "category", categories=("blue", "red"), every_level=True), Column("a"), Column("b")),
    Target("y", ("yes", "no")),
)
CLASSES = declared_classes(["yes", "no"])


def encode(labels):
    return encode_labels(labels, CLASSES)


@pytest.fixture(params=[1, 7, 20, 64, ROWS])
def path(request, tmp_path):
    path = tmp_path / "table.parquet"
    frame().to_parquet(path, row_group_size=request.param, index=False)
    return path


def same(left, right):
    pairs = list(zip(left, right, strict=True))
    for one, other in pairs:
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)
        assert one.X.dtype == np.float64
        assert one.X.flags.c_contiguous
    return len(pairs)


def test_blocks_are_those_of_the_same_rows_in_memory(path):
    """Whatever the row groups of the file; each of two passes gives them all."""
    with open_table(path) as file:
        table = file.read(SCHEMA, target=True)
        stored = file.stored(SCHEMA).encoded(encode)
        memory = Data(table.X, encode(table.y))
        assert (stored.rows, stored.columns, stored.sparse, stored.in_memory) == (ROWS, 5, False, False)
        assert [block.rows for block in stored.blocks()] == [20] * 50 + [3]
        for _ in range(2):
            assert same(stored.blocks(), memory.blocks()) == 51
        counted = file.stored(SCHEMA).sum_of_targets(lambda y: np.array([np.sum(y == "yes"), y.size]))
        np.testing.assert_array_equal(counted, [np.sum(table.y == "yes"), ROWS])


def numbers(rows=ROWS):
    return frame(rows).drop(columns="ward").assign(y=lambda t: (t.y == "yes").astype(int))


def dataset_of_three(folder):
    """Three files whose columns differ in order and type."""
    table = numbers()
    for number, kind in enumerate(["int8", "int64", "float64"]):
        part = np.array_split(np.arange(ROWS), 3)[number]
        names = list(table.columns) if number else list(table.columns)[::-1]
        table.iloc[part].astype({"b": kind})[names].to_parquet(folder / f"{number}.parquet", row_group_size=50)
    return ds.dataset(folder, schema=pa.Schema.from_pandas(table))


def test_a_data_set_is_read_in_the_order_of_its_files(tmp_path):
    stored = table_of_dataset(dataset_of_three(tmp_path), "y").encoded(np.asarray)
    assert stored.table.names == ["a", "b", "c"]
    assert same(stored.blocks(), Data(numbers()[["a", "b", "c"]].to_numpy(), numbers().y.to_numpy()).blocks()) == 31


def other_forms(folder):
    table = numbers()
    yield ds.dataset(pa.Table.from_pandas(table)), table
    dataset = dataset_of_three(folder)
    yield dataset.filter(ds.field("b") > 0), table[table.b > 0]
    one = next(iter(dataset.get_fragments()))
    yield (
        ds.FileSystemDataset([one.subset(row_group_ids=[2, 4])], dataset.schema, one.format),
        table.iloc[[*range(100, 150), *range(200, 250)]],
    )


def test_other_forms_of_data_sets(tmp_path):
    for dataset, expected in other_forms(tmp_path):
        stored = table_of_dataset(dataset, "y").encoded(np.asarray)
        assert stored.rows == len(expected)
        same(stored.blocks(), Data(expected[["a", "b", "c"]].to_numpy(), expected.y.to_numpy()).blocks())


def test_the_folders_of_a_partition_are_columns(tmp_path):
    numbers().assign(hospital=np.arange(ROWS) % 2).to_parquet(tmp_path, partition_cols=["hospital"])
    stored = table_of_dataset(ds.dataset(tmp_path, partitioning="hive"), "y").encoded(np.asarray)
    expected = pd.concat([numbers().iloc[0::2].assign(hospital=0), numbers().iloc[1::2].assign(hospital=1)])
    assert stored.table.names == ["a", "b", "c", "hospital"]
    same(stored.blocks(), Data(expected[stored.table.names].to_numpy(), expected.y.to_numpy()).blocks())


BAD = [
    (lambda t: t.assign(a=t.a.where(t.index != ROWS - 1)), "column 'a' has missing values"),
    (lambda t: t.assign(a=t.a.where(t.index != 500, np.inf)), "column 'a' contains infinity"),
    (lambda t: t.assign(a="text"), "column 'a' is not numeric"),
    (lambda t: t.assign(y=t.y.where(t.index != ROWS - 1, 7)), "not in classes=\\[0, 1\\]"),
    (lambda t: t.drop(columns="y"), "no column 'y'"),
    (lambda t: t[:0], "no rows"),
]


@pytest.mark.parametrize(("change", "word"), BAD)
def test_bad_rows_are_refused_before_anything_is_planned(change, word, monkeypatch):
    dataset = ds.dataset(pa.Table.from_pandas(change(numbers()), preserve_index=False))
    model = LogisticRegression(classes=[0, 1])
    monkeypatch.setattr("discreet.estimators.base.plan_fit", pytest.fail)
    with pytest.raises(ValueError, match=word) as caught:
        model.fit(dataset, "y")
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "feature_names_in_")


def test_what_a_stored_table_cannot_do_is_said():
    dataset = ds.dataset(pa.Table.from_pandas(numbers()))
    assert table_elsewhere(dataset) is not None
    assert table_elsewhere(numbers()) is None
    with pytest.raises(ValueError, match="name of the target's column"):
        Ridge().fit(dataset, numbers().y)
    with pytest.raises(ValueError, match="sample_weight is for tables in memory"):
        Ridge().fit(dataset, "y", sample_weight=0.5)
    with pytest.raises(ValueError, match="needs classes="):
        LogisticRegression().fit(dataset, "y")
    with pytest.raises(ValueError, match="schema's target is 'y'"):
        Ridge().fit(StoredTable(table_of_dataset(dataset, "y").source, SCHEMA), "z")


def test_a_table_that_changes_under_way_is_noticed(tmp_path):
    path = tmp_path / "table.parquet"
    numbers().to_parquet(path)
    stored = table_of_dataset(ds.dataset(path), "y").encoded(np.asarray)
    numbers(900).to_parquet(path)
    with pytest.raises((ValueError, OSError)):
        list(stored.blocks())


def peak_of_a_pass(path, dataset):
    """Bytes of arrays and of Arrow's memory at the end of every block, the most of them."""
    with open_table(path) as file:
        schema = Schema(tuple(map(Column, "abcdefg")), Target("y"))
        whole = table_of_dataset(ds.dataset(path), "y") if dataset else file.stored(schema)
        pool = pa.default_memory_pool()
        before, most = pool.bytes_allocated(), 0
        tracemalloc.start()
        for block in whole.encoded(np.asarray).blocks():
            assert block.rows <= block_rows(7)
            most = max(most, pool.bytes_allocated() - before)
        arrays = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return arrays, most


@pytest.mark.parametrize("dataset", [True, False])
def test_memory_does_not_grow_with_the_table(tmp_path, monkeypatch, dataset):
    """A pass over 40 MB holds what docs/benchmarks/out-of-core.md says: so many blocks, here of 512 kB each."""
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 1 << 16)
    block, path = 8 * 8 * block_rows(7), tmp_path / "large.parquet"
    columns = {name: np.random.default_rng(0).normal(size=640_000) for name in "abcdefgy"}
    pq.write_table(pa.table(columns), path, row_group_size=16_000)
    arrays, decoded = peak_of_a_pass(path, dataset)
    assert arrays < 6 * block  # three blocks, and the columns of the next one
    assert decoded < 3 * block + (1 << 24)  # three batches, and what was read of the file


def test_a_block_is_given_back_as_soon_as_it_has_been_used(tmp_path):
    """What is computed of a block refers back to it; the garbage collector, which comes late, is not waited for."""
    numbers().to_parquet(tmp_path / "table.parquet")
    stored, alive = table_of_dataset(ds.dataset(tmp_path / "table.parquet"), "y").encoded(np.asarray), weakref.WeakSet()
    scaled = unscaled_problem(Problem(Squared()), stored, identity_scaling(3), ROWS)

    def counted(block):
        alive.add(block.data)
        return np.array([float(len(alive))])

    gc.disable()
    try:
        assert scaled.max(counted) <= 2.0
        assert scaled.sum(counted) <= 2.0 * 31
        assert len(alive) <= 1
    finally:
        gc.enable()


def test_auto_takes_a_solver_that_needs_only_sums():
    budget = Budget(1.0, 1e-6)
    for columns, stored, problem, name in [
        (10, True, Problem(Logistic()), "newton"),
        (3_000, True, Problem(Logistic()), "adaptive"),
        (1_000, True, Problem(Logistic(), constraint=L2Ball(1.0)), "gd"),
    ]:
        public = Ridge().plan(10_000, columns, stored=stored).public
        assert public.stored == stored
        assert make_solver("auto", problem, public, budget).name == name


def test_errors_of_files_quote_no_value_and_no_row(tmp_path):
    """Arrow's own message says which value in which row could not be converted."""
    lines = ["a,y", *["1,0"] * 2_000, "HIV-positive Jane Doe,1"]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    schema = pa.schema([("a", pa.int64()), ("y", pa.int64())])
    dataset = ds.dataset(tmp_path / "table.csv", format="csv", schema=schema)
    with pytest.raises(pa.ArrowInvalid, match="Jane Doe"):
        list(dataset.to_batches())
    with pytest.raises(ValueError, match="the data set could not be read") as error:
        LogisticRegression(classes=[0, 1]).fit(dataset, "y")
    assert "Jane" not in str(error.value)
    assert "2002" not in str(error.value)
    assert error.value.__suppress_context__


def test_a_file_that_changes_is_refused_without_telling_how_many_rows_it_had(tmp_path):
    """Under add_remove the number of rows is secret."""
    path = tmp_path / "table.parquet"
    frame().drop(columns="ward").to_parquet(path, index=False)
    stored = table_of_dataset(ds.dataset(path), "y", ["no", "yes"]).encoded(encode)
    frame(500).drop(columns="ward").to_parquet(path, index=False)
    with pytest.raises(ValueError, match="changed while it was read") as error:
        list(stored.blocks())
    assert str(ROWS) not in str(error.value)


@pytest.mark.parametrize("name", ["table.feather", "table.xlsx", "table.parquet.gz"])
def test_other_formats_are_refused_by_name(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x00\x01")
    with pytest.raises(ValueError, match="are not read; convert it"):
        open_table(tmp_path / name)


def test_blocks_of_one_column_are_copies_too():
    """A view of what is read into would hold the rows of a later block: these would then count twice."""
    values = np.arange(250.0)
    table = table_of_dataset(ds.dataset(pa.table({"x": values, "y": values})), "y")
    blocks = list(table.encoded(np.asarray).blocks())
    assert [block.rows for block in blocks] == [100, 100, 50]
    np.testing.assert_array_equal(np.concatenate([block.X[:, 0] for block in blocks]), values)
    assert all(np.array_equal(block.X[:, 0], block.y) for block in blocks)
