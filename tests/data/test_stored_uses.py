"""Private evaluation and preprocessing of Parquet files that are read block by block: the same figures as in memory."""

from __future__ import annotations

import numpy as np
import pyarrow.dataset as ds
import pytest

from discreet import LogisticRegression, Ridge
from discreet.data import rows as rows_module
from discreet.data.parquet_table import ParquetTableFile
from discreet.estimators import table_fit
from discreet.metrics import evaluate, ranking
from discreet.preprocessing import PrivateBounds, PrivateQuantiles, PrivateScaler, private_means
from tests.cli_tools import make_table, run

NAMES = ["a", "b", "c"]
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 450)
    monkeypatch.chdir(tmp_path)


def stored(table):
    table.to_parquet("table.parquet", index=False, row_group_size=170)
    return ds.dataset("table.parquet")


@pytest.mark.parametrize("task", ["labels", "numbers"])
def test_a_data_set_is_evaluated_as_in_memory(task, monkeypatch):
    monkeypatch.setattr(ranking, "rank_bins", lambda *_: (3, 2))  # as for more rows: a look at the scores comes first
    numbers = task == "numbers"
    table = make_table(task="numbers") if numbers else make_table()
    model = (
        Ridge(y_bounds=(-100, 100), random_state=1) if numbers else LogisticRegression(classes=[0, 1], random_state=1)
    )
    model.fit(table[NAMES], table.y)
    memory = evaluate(model, table[NAMES], table.y, 0.5, random_state=2)
    data = stored(table[[*NAMES, "y"]])
    np.testing.assert_array_equal(
        evaluate(model, data, "y", 0.5, random_state=2).released.values, memory.released.values
    )
    with pytest.raises(ValueError, match="y is missing"):
        evaluate(model, data, None, 0.5)
    with pytest.raises(ValueError, match="sample_weight"):
        evaluate(model, data, "y", 0.5, sample_weight=np.ones(3))


@pytest.mark.parametrize("step", [PrivateScaler(random_state=3), PrivateBounds(random_state=3)])
def test_transformers_learn_from_a_data_set(step):
    table = make_table()[NAMES]
    memory = step.fit(table).low_.copy(), step.high_.copy()
    step.fit(stored(table))
    np.testing.assert_array_equal((step.low_, step.high_), memory)
    assert step.feature_names_in_.tolist() == NAMES


def test_means_learn_from_a_data_set_and_quantiles_do_not():
    table = make_table()[NAMES]
    means = [private_means(X, bounds=(-9, 9), random_state=1).values for X in (table, stored(table))]
    np.testing.assert_array_equal(*means)
    with pytest.raises(ValueError, match=r"PrivateQuantiles needs all rows.*PrivateScaler"):
        PrivateQuantiles().fit(stored(table))


def test_the_command_line_evaluates_what_exceeds_memory(monkeypatch):
    make_table().to_parquet("table.parquet", index=False)
    run("fit", "table.parquet", "--target", "y", "--classes", "0,1", "--seed", 3, "--out", "model.json")
    ask = ["evaluate", "model.json", "table.parquet", "--epsilon", 0.5, "--seed", 1]
    memory = run(*ask).stdout
    monkeypatch.setattr(table_fit, "MEMORY_SHARE", 0.0)
    monkeypatch.delattr(ParquetTableFile, "_columns")  # what reads a whole file
    monkeypatch.setattr(ParquetTableFile, "__abstractmethods__", frozenset())
    assert run(*ask).stdout == memory
