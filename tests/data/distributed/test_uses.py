"""Private evaluation, preprocessing and the command line on Dask tables: the same figures as in memory."""

from __future__ import annotations

import re
from contextlib import contextmanager

import numpy as np
import pytest

from discreet import IncompatibleSolverError, LogisticRegression, Ridge, load_model
from discreet.data import rows as rows_module
from discreet.data.distributed import cluster
from discreet.data.distributed import rows as distributed_rows
from discreet.metrics import evaluate
from discreet.preprocessing import PrivateBounds, PrivateQuantiles, PrivateScaler, private_means
from tests.cli_tools import make_table, run
from tests.distributed_tools import CUTS, cut_array, cut_frame, record_parts

NAMES = ["a", "b", "c"]
pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 450)
    monkeypatch.setattr(distributed_rows, "LOCAL_SHARDS", 3)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
def test_a_classifier_is_evaluated_as_in_memory(labels, monkeypatch):
    table = make_table()
    table["y"] = np.array(labels)[table.y]
    sent = record_parts(monkeypatch)
    model = LogisticRegression(classes=labels, random_state=1, ledger=None).fit(table[NAMES], table.y)
    table.loc[3, "y"] = "other" if labels[0] == "no" else 7  # a label that the model does not know is no error
    memory = evaluate(model, table[NAMES], table.y, 0.5, random_state=2)
    for sizes in CUTS[:2]:
        found = evaluate(model, cut_frame(table, sizes), "y", 0.5, random_state=2)
        np.testing.assert_array_equal(found.released.values, memory.released.values)
    assert found["accuracy"] == memory["accuracy"]
    assert sent
    assert hasattr(model, "plan_")  # the model itself keeps what does not travel


def test_a_regressor_is_evaluated_as_in_memory():
    table = make_table(task="numbers")
    model = Ridge(random_state=1, y_bounds=(-100, 100)).fit(table[NAMES].to_numpy(), table.y)
    memory = evaluate(model, table[NAMES].to_numpy(), table.y, 0.5, random_state=2)
    found = evaluate(model, cut_array(table[NAMES], CUTS[1]), cut_array(table.y, CUTS[1]), 0.5, random_state=2)
    np.testing.assert_array_equal(found.released.values, memory.released.values)
    with pytest.raises(ValueError, match="not those that the model was trained on"):
        evaluate(model, cut_frame(table[["a", "y"]], CUTS[1]), "y", 0.5)
    with pytest.raises(ValueError, match="y is missing"):
        evaluate(model, cut_frame(table, CUTS[1]), None, 0.5)
    with pytest.raises(ValueError, match="sample_weight"):
        evaluate(model, cut_frame(table, CUTS[1]), "y", 0.5, sample_weight=np.ones(3))


@pytest.mark.parametrize(
    "step", [PrivateScaler(bounds={"a": (-100, 100)}), PrivateBounds(), PrivateScaler(epsilon=float("inf"))]
)
@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_transformers_learn_from_sums(step):
    table = make_table()[NAMES]
    step.set_params(random_state=3)
    memory = step.fit(table).low_.copy(), step.high_.copy(), getattr(step, "mean_", None)
    step.fit(cut_frame(table, CUTS[1]))
    np.testing.assert_array_equal(step.low_, memory[0])
    np.testing.assert_array_equal(step.high_, memory[1])
    if memory[2] is not None:
        np.testing.assert_allclose(step.mean_, memory[2], rtol=1e-12)
    assert step.feature_names_in_.tolist() == NAMES


def test_means_learn_from_sums_and_quantiles_do_not():
    table = make_table()[NAMES]
    means = [private_means(X, bounds=(-9, 9), random_state=1).values for X in (table, cut_frame(table, CUTS[2]))]
    np.testing.assert_array_equal(*means)
    with pytest.raises(ValueError, match=r"PrivateQuantiles needs all rows.*PrivateScaler"):
        PrivateQuantiles().fit(cut_frame(table, CUTS[0]))


@pytest.fixture
def _no_cluster(monkeypatch):
    """The command line without processes of its own."""

    @contextmanager
    def nobody(address):
        assert address == "local:2"
        yield None

    monkeypatch.setattr(cluster, "connected", nobody)


@pytest.mark.usefixtures("_no_cluster")
@pytest.mark.parametrize("options", [[], ["--classes", "0,1", "--solver", "gd"]])
def test_the_command_line_fits_and_evaluates(options, tmp_path):
    table = make_table()
    table.to_parquet("whole.parquet", index=False)
    (tmp_path / "parts").mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(f"parts/{number}.parquet", index=False, row_group_size=170)
    fit = ["--target", "y", "--seed", 3, *options]
    run("fit", "whole.parquet", *fit, "--in-memory", "--out", "memory.json")
    run("fit", "parts/*.parquet", *fit, "--dask", "local:2", "--out", "dask.json")
    one, other = load_model("memory.json"), load_model("dask.json")
    np.testing.assert_array_equal(one.coef_, other.coef_)
    ask = ["--epsilon", 0.5, "--seed", 1]
    told = [run("evaluate", "memory.json", "whole.parquet", *ask).stdout]
    told.append(run("evaluate", "memory.json", "parts", *ask, "--dask", "local:2").stdout)
    assert told[0] == told[1]


@pytest.mark.usefixtures("_no_cluster")
def test_the_command_line_says_what_is_wrong():
    make_table().to_parquet("a.parquet", index=False)
    make_table().rename(columns={"a": "z"}).to_parquet("b.parquet", index=False)
    fit = ["--target", "y", "--dask", "local:2"]
    assert "does not have the columns" in run("fit", "*.parquet", *fit, code=2).stderr
    assert "no file has such a name" in run("fit", "none/*.parquet", *fit, code=2).stderr
    assert "--dask out" in run("fit", "a.parquet", *fit, "--person-column", "a", code=2).stderr
    assert "no column 'w'" in run("fit", "a.parquet", "--target", "w", "--dask", "local:2", code=2).stderr


def test_a_refused_solver_names_only_those_that_read_blocks():
    """`cd` and `screened` would take the problem too, and need all rows at hand."""
    frame = cut_frame(make_table(), CUTS[1])
    model = LogisticRegression(classes=[0, 1], penalty="l1", alpha=0.01, solver="sufficient-statistics", bounds=(-9, 9))
    with pytest.raises(IncompatibleSolverError) as refused:
        model.fit(frame, "y")
    said = str(refused.value)
    assert "greedy-cd" in said
    assert not {"cd", "screened", "dual-cd"} & set(re.findall(r"'([\w-]+)'", said))


def test_weights_on_dask_are_refused_for_what_they_are():
    frame = cut_frame(make_table(), CUTS[1])
    with pytest.raises(ValueError, match="sample_weight is for tables in memory"):
        LogisticRegression(classes=[0, 1]).fit(frame, "y", sample_weight=np.ones(3))
    with pytest.raises(TypeError, match="unexpected"):
        LogisticRegression(classes=[0, 1]).fit(frame, "y", nonsense=1)
