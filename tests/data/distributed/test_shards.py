"""Fits on Dask tables without a cluster: the model of the rows in memory, whatever the partitions."""

from __future__ import annotations

import pickle
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from discreet import (
    Budget,
    IncompatibleSolverError,
    Lasso,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from discreet.data import rows as rows_module
from discreet.data.distributed import engine
from discreet.data.distributed import rows as distributed_rows
from discreet.data.distributed.dask_tables import table_of_dask
from discreet.data.distributed.engine import LocalEngine
from discreet.data.distributed.parts import combined, is_private, pack
from discreet.data.distributed.rows import DistributedRows, ParquetFiles
from discreet.data.distributed.shard import recipes_for
from discreet.data.rows import Data
from discreet.privacy.random.generator import seeded_generator
from discreet.problem.constraints import L1Ball
from discreet.solvers import (
    ADMM,
    SOLVERS,
    SVRG,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    MirrorDescent,
    StochasticGradientDescent,
)
from discreet.solvers.base import Run
from tests.cli_tools import ROWS, make_table
from tests.distributed_tools import CUTS, cut_array, cut_frame, record_parts

NAMES = ["a", "b", "c"]
SUMS = ("newton", "gd", "mirror-descent", "sufficient-statistics", "admm", "sgd", "svrg", "frank-wolfe", "greedy-cd")
OWN = {
    "mirror-descent": MirrorDescent(steps=20),
    "gd": GradientDescent(steps=20),
    "admm": ADMM(rounds=15),
    "sgd": StochasticGradientDescent(passes=0.5, batch_size=100),
    "svrg": SVRG(anchors=1, inner=3, batch_size=100),
    "frank-wolfe": FrankWolfe(steps=3),
    "greedy-cd": GreedyCoordinateDescent(steps=3),
}
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks of 150 rows, in three shards."""
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 450)
    monkeypatch.setattr(distributed_rows, "LOCAL_SHARDS", 3)


def settings_for(kind, solver, **more):
    settings = {"epsilon": 3.0, "random_state": 5, "solver": OWN.get(solver, solver)}
    settings |= {"constraint": L1Ball(5.0)} if solver in ("mirror-descent", "frank-wolfe") else {}
    settings |= {"penalty": None} if solver == "frank-wolfe" else {}
    settings |= {"epsilon": Budget.zcdp(1.0)} if solver in ("sgd", "svrg") else {}  # of which the cost is soon known
    return settings | ({"classes": [0, 1]} if kind in (LogisticRegression, LinearSVC) else {}) | more


def same_model(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    np.testing.assert_array_equal(one.ranges_, other.ranges_)
    assert one.guarantee_.about(None).to_dict() == other.guarantee_.about(None).to_dict()


@pytest.mark.filterwarnings("ignore:every step reads the whole table:discreet.UtilityWarning")
@pytest.mark.parametrize("solver", SUMS)
@pytest.mark.parametrize("kind", [LogisticRegression, Ridge])
def test_every_partitioning_gives_the_model_of_the_rows_in_memory(kind, solver, monkeypatch):
    if solver == "sufficient-statistics" and kind is LogisticRegression:
        pytest.skip("it is for squared losses")
    if solver in ("sgd", "svrg", "frank-wolfe", "greedy-cd") and kind is Ridge:
        pytest.skip("one loss is enough: tests/solvers/test_stored_rows.py has the others")
    table = make_table(task="binary" if kind is LogisticRegression else "numbers")
    settings, sent = settings_for(kind, solver), record_parts(monkeypatch)
    memory = kind(**settings).fit(table[NAMES], table.y)
    cuts = CUTS[:2] if solver in ("sgd", "svrg") else CUTS  # their accounting takes a second
    for number, sizes in enumerate(cuts):
        monkeypatch.setattr(engine, "HELD_SHARE", number % 2)  # held in memory, or read anew in every pass
        same_model(kind(**settings).fit(cut_frame(table, sizes), "y"), memory)
    assert sent
    assert max(map(len, sent)) < 20_000  # released numbers: nothing that grows with the rows


@pytest.mark.parametrize("kind", [LinearSVC, PoissonRegressor, Lasso])
def test_the_other_estimators_fit_as_well(kind):
    table = make_table(task="binary" if kind is LinearSVC else "numbers")
    table["y"] = table.y.abs().round() if kind is PoissonRegressor else table.y
    settings = settings_for(kind, "newton")
    same_model(kind(**settings).fit(cut_frame(table, CUTS[1]), "y"), kind(**settings).fit(table[NAMES], table.y))


def test_the_three_ways_to_pass_a_table():
    table, settings = make_table(task="numbers"), settings_for(Ridge, "newton")
    memory = Ridge(**settings).fit(table[NAMES], table.y)
    frame = cut_frame(table, CUTS[1])
    same_model(Ridge(**settings).fit(frame[NAMES], frame.y), memory)
    same_model(Ridge(**settings).fit(frame[NAMES], frame[["y"]]), memory)
    assert Ridge(**settings).fit(frame, "y").feature_names_in_.tolist() == NAMES
    X, y = cut_array(table[NAMES], CUTS[1]), cut_array(table.y, [800, 700])
    of_array = Ridge(**settings).fit(X, y)
    same_model(of_array, memory)
    assert not hasattr(of_array, "feature_names_in_")
    unknown = frame[NAMES].to_dask_array(), frame.y.to_dask_array()  # of unknown chunk sizes
    assert np.isnan(unknown[0].shape[0])
    same_model(Ridge(**settings).fit(*unknown), memory)


@pytest.mark.slow
def test_without_noise_the_optimum_is_that_of_memory():
    table = make_table()
    with pytest.warns(match="not private"):
        memory = LogisticRegression(epsilon=float("inf"), classes=[0, 1], alpha=1e-2).fit(table[NAMES], table.y)
    for solver in ("newton", "gd"):
        model = LogisticRegression(epsilon=float("inf"), classes=[0, 1], alpha=1e-2, solver=solver)
        with pytest.warns(match="not private"):
            model.fit(cut_frame(table, CUTS[2]), "y")
        np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")
def test_bounds_from_the_rows_are_exact():
    table = make_table(task="numbers")
    settings = settings_for(Ridge, "gd", bounds="data", y_bounds="data")
    same_model(Ridge(**settings).fit(cut_frame(table, CUTS[3]), "y"), Ridge(**settings).fit(table[NAMES], table.y))


def test_types_of_pandas_are_read_as_in_memory():
    table = make_table(task="numbers")
    table["a"] = table.a > 0.0
    table["b"] = table.b.round().astype("Int64")
    table["c"] = (table.c > 0.0).astype(int).astype("category")
    settings = settings_for(Ridge, "newton")
    memory = Ridge(**settings).fit(table[NAMES], table.y)
    distributed = Ridge(**settings).fit(cut_frame(table, CUTS[1]), "y")
    same_model(distributed, memory)
    assert distributed.plan_.public.declared.tolist() == [True, False, False]
    words = make_table().assign(y=lambda t: np.where(t.y == 1, "yes", "no"))
    model = LogisticRegression(classes=["no", "yes"], random_state=1).fit(cut_frame(words, CUTS[1]), "y")
    assert set(model.predict(words[NAMES])) <= {"no", "yes"}


def test_columns_without_texts_as_names():
    table = make_table(task="numbers").rename(columns={"a": 0, "b": 1, "c": 2, "y": 3})
    settings = settings_for(Ridge, "newton")
    memory = Ridge(**settings).fit(table[[0, 1, 2]].to_numpy(), table[3])
    distributed = Ridge(**settings).fit(cut_frame(table, CUTS[1]), 3)
    same_model(distributed, memory)
    assert not hasattr(distributed, "feature_names_in_")
    mixed = table.rename(columns={2: 2.5})  # all names become floats, and 3 is written 3.0
    same_model(Ridge(**settings).fit(cut_frame(mixed, CUTS[1]), 3), memory)
    with pytest.raises(TypeError, match="rename"):
        Ridge().fit(cut_frame(table.rename(columns={0: "a"}), [ROWS]), 3)


def spoiled(name, value, row=ROWS - 1):
    table = make_table(task="numbers")
    table[name] = table[name].astype(object)
    table.loc[row, name] = value
    return table


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (spoiled("b", np.nan), "'b' has missing values"),
        (spoiled("b", np.inf), "'b' contains infinity"),
        (spoiled("b", "a secret"), "'b' is not numeric"),
        (spoiled("b", [1, 2]), "'b' is not numeric"),
        (spoiled("y", None), "'y' has missing values"),
    ],
)
def test_one_bad_row_on_one_worker_is_refused_before_anything_is_spent(table, told, tmp_path):
    """The message names the column and no value; the ledger stays empty."""
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match=told) as caught:
        Ridge(ledger=ledger, dataset="clinic").fit(cut_frame(table, CUTS[1]), "y")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not ledger.entries("clinic")


def test_what_cannot_be_fitted_is_said_in_one_line():
    frame = cut_frame(make_table(), CUTS[1])
    with pytest.raises(ValueError, match="classes"):
        LogisticRegression().fit(frame, "y")
    with pytest.raises(ValueError, match="labels that are not in classes"):
        LogisticRegression(classes=[5, 6]).fit(frame, "y")
    with pytest.raises(ValueError, match="name of a column"):
        Ridge().fit(frame, "z")
    with pytest.raises(ValueError, match="y is missing"):
        Ridge().fit(frame, None)
    with pytest.raises(ValueError, match="one column"):
        Ridge().fit(frame[["a"]], frame[["b", "y"]])
    with pytest.raises(ValueError, match="rows and columns"):
        Ridge().fit(frame.a, frame.y)
    with pytest.raises(ValueError, match="must hold numbers"):
        Ridge().fit(cut_array(np.full((ROWS, 2), 1j), [ROWS]), frame.y)
    with pytest.raises(ValueError, match="sample_weight"):
        Ridge().fit(frame, "y", sample_weight=np.ones(ROWS))
    with pytest.raises(ValueError, match="groups"):
        Ridge().fit(frame, "y", groups=np.ones(ROWS))
    with pytest.raises(ValueError, match="partitions"):
        Ridge().fit(frame[NAMES], cut_frame(make_table(), CUTS[0]).y)
    with pytest.raises(ValueError, match="different numbers of rows"):
        Ridge().fit(cut_frame(make_table()[NAMES], [800, 700]), cut_frame(make_table(), [200, 1300]).y)
    with pytest.raises(IncompatibleSolverError, match=r"needs all rows.*'newton'"):
        Ridge(solver="cd").fit(frame, "y")
    with pytest.raises(ValueError, match="no rows"):
        Ridge().fit(cut_frame(make_table(), [0]), "y")
    with pytest.raises(ValueError, match="add_remove"):
        Ridge(relation="add_remove").fit(frame, "y")


def test_noise_of_every_row_is_refused_before_it_is_booked(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db", allow_seeded=True)
    ledger.open("clinic", epsilon=3.0, delta=1e-5)
    solver = ADMM(rounds=5, form="noisy-duals")
    model = Ridge(solver=solver, ledger=ledger, dataset="clinic", delta=1e-6)
    with pytest.raises(IncompatibleSolverError, match="sums only"):
        model.fit(cut_frame(make_table(task="numbers"), CUTS[1]), "y")
    assert not ledger.entries("clinic")


def local_rows(table, sizes, shards=3):
    stored = table_of_dask(cut_frame(table, sizes), "y")
    return DistributedRows(LocalEngine(recipes_for(stored, np.asarray, shards)), 3)


def test_a_part_may_not_hold_what_is_secret():
    """Two arms: released numbers may travel; rows, generators, ledgers and runs may not."""
    assert pack(partial(np.multiply, np.ones(3)))
    rng = seeded_generator(0)
    for held in (Data(np.ones((2, 2)), np.ones(2)), rng, np.random.default_rng(0), Run(rng, None, False)):
        assert is_private(held)
        with pytest.raises(TypeError, match="may not leave the driver"):
            pack(partial(np.multiply, held))
    with pytest.raises(TypeError, match="may not leave the driver"):
        pack(lambda block: rng.normal(3))
    rows = local_rows(make_table(task="numbers"), CUTS[1])
    with pytest.raises(TypeError, match="may not leave the driver"):
        rows.sum(partial(np.multiply, rows))
    with pytest.raises(TypeError, match="not brought to the driver"):
        rows.blocks()


def test_a_part_that_is_computed_twice_changes_nothing():
    """Dask may deliver a call twice; parts must not remember that they were called."""
    table, settings = make_table(task="numbers"), settings_for(Ridge, "admm")
    memory = Ridge(**settings).fit(table[NAMES], table.y)
    reduce = LocalEngine.reduce

    def twice(self, part, how):
        reduce(self, part, how)
        return reduce(self, part, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "reduce", twice)
        same_model(Ridge(**settings).fit(cut_frame(table, CUTS[1]), "y"), memory)


@pytest.mark.parametrize("solver", ["newton", "admm"])
def test_shards_that_are_lost_and_rebuilt_change_nothing(solver):
    """Whatever a shard had kept is computed again from its rows and from released numbers."""
    table, settings = make_table(task="numbers"), settings_for(Ridge, solver)
    memory = Ridge(**settings).fit(table[NAMES], table.y)
    reduce, asked = LocalEngine.reduce, []

    def losing(self, part, how):
        asked.append(how)
        if len(asked) % 4 == 0:
            self.rebuild([len(asked) % len(self.recipes)])
        return reduce(self, part, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "reduce", losing)
        same_model(Ridge(**settings).fit(cut_frame(table, CUTS[1]), "y"), memory)


def test_partitions_that_change_are_noticed():
    table = make_table(task="numbers")
    lengths = [table, table.iloc[:-1]]

    def grow():
        return lengths.pop() if len(lengths) > 1 else lengths[0]

    frame = dd.from_map(lambda _: grow(), [0], meta=table.iloc[:0])
    with pytest.raises(ValueError, match="changed while it was read"):
        Ridge().fit(frame, "y")


def test_a_partition_whose_columns_come_in_another_order_is_refused():
    """Its numbers would be read as those of other columns."""
    table = make_table(task="numbers")
    parts = [table.iloc[:700], table.iloc[700:][["b", "a", "c", "y"]]]
    frame = dd.from_map(lambda i: parts[i], [0, 1], meta=table.iloc[:0])
    with pytest.raises(ValueError, match="changed while it was read"):
        table_of_dask(frame, "y").encoded(np.asarray)


def test_a_partition_that_comes_in_another_order_is_refused():
    """Two shards share it, and each computes it for itself: a row that lies in both parts would count twice."""
    table = make_table(task="numbers")
    orders = np.random.default_rng(0)

    def shuffled(_):
        return table.iloc[orders.permutation(ROWS)]

    frame = dd.from_map(shuffled, [0], meta=table.iloc[:0])
    with pytest.raises(ValueError, match="not in the same order"):
        table_of_dask(frame, "y").encoded(np.asarray)
    assert table_of_dask(cut_frame(table, CUTS[1]), "y").encoded(np.asarray).rows == ROWS


def test_a_target_in_another_order_than_its_rows_is_refused():
    """A shuffle may give two graphs that begin with it different orders."""
    table = make_table(task="numbers")
    X, y = cut_frame(table[NAMES], CUTS[1]), cut_frame(table.y.iloc[::-1], CUTS[1])
    with pytest.raises(ValueError, match="do not have the same index"):
        Ridge().fit(X, y)


def test_a_file_with_several_names_counts_once(tmp_path):
    pd.DataFrame({"a": np.arange(5.0)}).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to(tmp_path / "a.parquet")
    assert ParquetFiles(tmp_path, None).rows == 5
    assert ParquetFiles(tmp_path / "**" / "**" / "*.parquet", None).rows == 5
    (tmp_path / "c.parquet").hardlink_to(tmp_path / "a.parquet")
    assert ParquetFiles(tmp_path, None).rows == 5


def test_a_broken_worker_releases_nothing():
    good, bad = np.ones(3), np.array([1.0, np.nan, 1.0])
    np.testing.assert_array_equal(combined([good, 2 * good], "sum"), 3 * good)
    np.testing.assert_array_equal(combined([good, 2 * good], "max"), 2 * good)
    for wrong in (bad, np.ones(2)):
        with pytest.raises(ValueError, match="nothing was released"):
            combined([good, wrong], "sum")


@pytest.mark.parametrize("shards", [1, 2, 5, 100])
def test_shards_are_cut_between_blocks(shards):
    stored = table_of_dask(cut_frame(make_table(task="numbers"), CUTS[1]), "y")
    recipes = recipes_for(stored, np.asarray, shards)
    assert len(recipes) == min(shards, ROWS // 150)
    assert sum(recipe.rows for recipe in recipes) == ROWS
    assert all(recipe.rows % 150 == 0 for recipe in recipes)
    packed, held = recipes[0].packed()
    assert not held
    assert len(packed) < len(pickle.dumps(make_table())) + 20_000  # its own partitions, and no more than once


def test_solvers_that_need_only_sums_are_known():
    assert set(SUMS) <= {name for name, solver in SOLVERS.items() if solver().capabilities.stored}


def test_rows_that_are_read_anew_in_another_order_give_no_sum(monkeypatch, tmp_path):
    """Shards that are not held share a partition that was stable while they were loaded, and is not later."""
    monkeypatch.setattr(engine, "HELD_SHARE", 0)
    table = make_table(task="numbers")
    order, later = np.random.default_rng(0).permutation(ROWS), tmp_path / "later"
    frame = dd.from_map(lambda _: table.iloc[order] if later.exists() else table, [0], meta=table.iloc[:0])
    rows = table_of_dask(frame, "y").encoded(np.asarray)
    np.testing.assert_allclose(rows.sum(column_sums), table[NAMES].to_numpy().sum(axis=0))
    later.touch()
    with pytest.raises(ValueError, match="changed while it was read"):
        rows.sum(column_sums)


def column_sums(block):
    return block.X.sum(axis=0)
