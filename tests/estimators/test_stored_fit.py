"""Fits on stored tables: the same model as in memory under the same seed, to the last bit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from discreet import Budget, IncompatibleSolverError, LogisticRegression, PrivacyLeakWarning, Ridge, load_model
from discreet.data import rows as rows_module
from discreet.data.files import open_table
from discreet.data.schema import Column, Schema, Target
from discreet.estimators import table_fit
from discreet.estimators.table_fit import FitRequest, fit_table
from discreet.privacy.relation import Relation
from discreet.problem.constraints import L1Ball
from discreet.solvers import (
    SOLVERS,
    SVRG,
    FrankWolfe,
    GreedyCoordinateDescent,
    MirrorDescent,
    StochasticGradientDescent,
)
from tests.cli_tools import ROWS, make_table, run

NAMES = ["a", "b", "c"]
QUARTER = ROWS * len(NAMES) * 8 * 4  # the memory of which the table of the tests fills a quarter
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 1_000)
    monkeypatch.chdir(tmp_path)


def stored_table(table, path="table.parquet"):
    """The table as a data set of one file, with row groups that blocks do not respect."""
    table.to_parquet(path, index=False, row_group_size=170)
    return ds.dataset(path)


OUT_OF_CORE = sorted(name for name, solver in SOLVERS.items() if solver().capabilities.stored)
FEW_STEPS = {  # of those for which every step is a pass over the file
    "sgd": StochasticGradientDescent(passes=1, batch_size=50),
    "svrg": SVRG(anchors=2, inner=3, batch_size=50),
    "frank-wolfe": FrankWolfe(steps=8),
    "greedy-cd": GreedyCoordinateDescent(steps=5),
}
CASES = [
    (kind, solver, bounds)
    for kind in (LogisticRegression, Ridge)
    for solver in OUT_OF_CORE
    for bounds in (None, (-100.0, 100.0))
    if solver not in (("frank-wolfe", "adaptive") if kind is Ridge else ("sufficient-statistics",))
]


def test_the_solvers_that_must_stream_do():
    assert {"newton", "gd", "sufficient-statistics"} <= set(OUT_OF_CORE)


@pytest.mark.filterwarnings("ignore:every step reads the whole table:discreet.UtilityWarning")
@pytest.mark.parametrize(("kind", "solver", "bounds"), CASES)
def test_a_stored_table_gives_the_model_of_the_rows_in_memory(kind, solver, bounds):
    table = make_table(task="binary" if kind is LogisticRegression else "numbers")
    settings = {"epsilon": 3.0, "solver": solver, "bounds": bounds, "random_state": 5}
    settings |= {"classes": [0, 1]} if kind is LogisticRegression else {}
    if solver == "mirror-descent":  # every one of its 1,000 steps would read the file again
        settings |= {"constraint": L1Ball(5.0), "solver": MirrorDescent(steps=50)}
    if solver in FEW_STEPS:
        settings |= {"solver": FEW_STEPS[solver]}
    if solver in ("sgd", "svrg"):
        settings |= {"epsilon": Budget.zcdp(1.0)}  # of which the cost is soon known
    if solver == "frank-wolfe":
        settings |= {"constraint": L1Ball(5.0), "penalty": None}
    memory = kind(**settings).fit(table[NAMES].to_numpy(), table.y.to_numpy())
    fitted = kind(**settings).fit(stored_table(table), "y")
    np.testing.assert_array_equal(fitted.coef_, memory.coef_)
    np.testing.assert_array_equal(fitted.intercept_, memory.intercept_)
    np.testing.assert_array_equal(fitted.ranges_, memory.ranges_)
    assert fitted.guarantee_.about(None).to_dict() == memory.guarantee_.about(None).to_dict()  # up to the date
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.n_features_in_ == 3
    assert fitted.plan_.public.stored
    assert not fitted.weighted_


def test_labels_may_be_texts():
    table = make_table()
    words = table.assign(y=np.where(table.y == 1, "yes", "no"))
    settings = {"epsilon": 3.0, "random_state": 5}
    fitted = LogisticRegression(classes=["no", "yes"], **settings).fit(stored_table(words), "y")
    memory = LogisticRegression(classes=[0, 1], **settings).fit(table[NAMES].to_numpy(), table.y.to_numpy())
    np.testing.assert_array_equal(fitted.coef_, memory.coef_)
    assert set(fitted.predict(table[NAMES])) == {"no", "yes"}


def test_bounds_can_be_read_from_stored_rows_with_the_same_warning():
    table = make_table(task="numbers")
    settings = {"bounds": "data", "y_bounds": "data", "solver": "gd", "random_state": 1}
    with pytest.warns(PrivacyLeakWarning):
        fitted = Ridge(**settings).fit(stored_table(table), "y")
    with pytest.warns(PrivacyLeakWarning):
        memory = Ridge(**settings).fit(table[NAMES].to_numpy(), table.y.to_numpy())
    assert fitted.plan_.public.leaks == memory.plan_.public.leaks
    np.testing.assert_array_equal(fitted.coef_, memory.coef_)


def test_a_solver_that_needs_all_rows_says_so():
    with pytest.raises(IncompatibleSolverError, match=r"needs all rows.*'newton'"):
        Ridge(solver="cd").fit(stored_table(make_table(task="numbers")), "y")


def settings_of(path):
    model = load_model(path)
    return model.coef_.tolist(), model.intercept_, model.guarantee_.epsilon, type(model).__name__


@pytest.mark.parametrize("task", ["binary", "numbers"])
@pytest.mark.parametrize("options", [[], ["--task", "regression"], ["--bounds", "-90,90", "--solver", "gd"]])
def test_the_command_line_streams_on_request(task, options):
    make_table(task=task).to_parquet("table.parquet", index=False, row_group_size=170)
    fit = ["fit", "table.parquet", "--target", "y", "--seed", 3, *options]
    run(*fit, "--out-of-core", "--out", "stored.json")
    run(*fit, "--in-memory", "--out", "memory.json")
    assert settings_of("stored.json") == settings_of("memory.json")


def test_a_schema_works_on_a_stored_table():
    table = make_table().assign(colour=lambda t: np.where(t.y == 1, "red", "green"))
    table.to_parquet("table.parquet", index=False, row_group_size=170)
    colours = Column("colour", "category", categories=("red", "green"))
    schema = Schema((*map(Column, NAMES), colours), Target("y", (0, 1)))
    models = []
    for stream in (True, False):
        with open_table("table.parquet") as file:
            models.append(fit_table(file, FitRequest(schema, parameters={"random_state": 1}), stream).model)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].feature_names_in_.tolist() == [*NAMES, "colour=green"]


def test_a_csv_file_is_read_into_memory():
    make_table().to_csv("table.csv", index=False)
    assert "Parquet" in run("fit", "table.csv", "--target", "y", "--out-of-core", code=2).stderr


@pytest.mark.parametrize(("memory", "stored"), [(QUARTER, False), (QUARTER - 1, True), (None, False)])
def test_a_table_is_read_out_of_core_when_it_would_fill_a_quarter_of_the_memory(monkeypatch, memory, stored):
    make_table().to_parquet("table.parquet", index=False)
    monkeypatch.setattr(table_fit, "machine_memory", lambda: memory)
    with open_table("table.parquet") as file:
        request = FitRequest(Schema(tuple(map(Column, NAMES)), Target("y", (0, 1))))
        assert fit_table(file, request).model.plan_.public.stored == stored


def test_under_add_remove_the_secret_number_of_rows_does_not_decide(monkeypatch):
    """Whether a table is read out of core shows in the plan, so it must follow from the public estimate."""
    make_table().to_parquet("table.parquet", index=False)
    monkeypatch.setattr(table_fit, "machine_memory", lambda: QUARTER - 1)
    schema = Schema(tuple(map(Column, NAMES)), Target("y", (0, 1)), Relation.ADD_REMOVE)
    with open_table("table.parquet") as file:
        for estimate, stored in [(ROWS - 1, False), (ROWS + 1, True)]:
            request = FitRequest(schema, parameters={"public_n": estimate})
            assert fit_table(file, request).model.plan_.public.stored == stored


def test_a_refused_ledger_leaves_a_stored_table_unread(monkeypatch):
    """The checking pass comes first, then the ledger, then everything that could be released."""
    from discreet import BudgetExceededError, Ledger
    from discreet.data.arrow_dataset import DatasetSource

    Ledger("budget.db").open("people", 0.1, 1e-6)
    passes = []
    read = DatasetSource.batches
    monkeypatch.setattr(DatasetSource, "batches", lambda *asked: passes.append(1) or read(*asked))
    model = Ridge(ledger="budget.db", dataset="people", delta=1e-6)
    with pytest.raises(BudgetExceededError):
        model.fit(stored_table(make_table(task="numbers")), "y")
    assert len(passes) == 1


def test_a_data_set_in_memory_works_too():
    table = make_table(task="numbers")
    dataset = ds.dataset(pa.Table.from_pandas(table, preserve_index=False))
    model = Ridge(random_state=0).fit(dataset, "y")
    assert pd.Series(model.predict(table[NAMES])).notna().all()
