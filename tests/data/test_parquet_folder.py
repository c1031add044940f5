"""Folders and patterns of Parquet files are one table, in memory and block by block, for every command."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import load_model
from discreet.data.files import open_table
from tests.cli_tools import make_table, run

pytestmark = pytest.mark.filterwarnings("ignore::discreet.InsecureRandomnessWarning")
FIT = ["--target", "y", "--classes", "0,1", "--solver", "newton", "--seed", 3]


@pytest.fixture(autouse=True)
def _parts(monkeypatch, tmp_path):
    """A table as one file and as a folder of three, of which one is empty and one has its columns in another order."""
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_parquet("whole.parquet", index=False)
    (tmp_path / "parts").mkdir()
    table[:1].to_parquet("parts/0.parquet", index=False)
    table[:0].to_parquet("parts/1.parquet", index=False)
    table[1:][table.columns[::-1]].to_parquet("parts/2.parquet", index=False, row_group_size=170)


@pytest.mark.parametrize("where", ["parts", "parts/*.parquet"])
@pytest.mark.parametrize("how", ["--in-memory", "--out-of-core"])
def test_a_folder_is_the_table_of_its_files(where, how):
    run("fit", "whole.parquet", *FIT, "--out", "one.json")
    run("fit", where, *FIT, how, "--out", "many.json")
    np.testing.assert_array_equal(load_model("one.json").coef_, load_model("many.json").coef_)


def test_other_commands_take_folders():
    run("fit", "parts", *FIT, "--out", "model.json")
    ask = ["--epsilon", 0.5, "--seed", 1]
    whole, parts = (run("evaluate", "model.json", table, *ask).stdout for table in ("whole.parquet", "parts"))
    assert whole == parts
    run("predict", "model.json", "parts", "--out", "many.csv")
    run("predict", "model.json", "whole.parquet", "--out", "one.csv")
    with open("one.csv") as one, open("many.csv") as many:
        assert one.read() == many.read()
    run("schema", "parts", "--out", "schema.json")


def test_what_is_wrong_with_a_folder_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no Parquet files" in run("fit", "empty", *FIT, code=2).stderr
    assert "no file has such a name" in run("fit", "none/*.parquet", *FIT, code=2).stderr
    (tmp_path / "parts" / "3.csv").write_text("a,y\n1,1\n")
    assert "3.csv is no Parquet file" in run("fit", "parts/*", *FIT, code=2).stderr
    make_table().drop(columns="a").to_parquet("parts/3.parquet", index=False)
    assert "does not have the columns" in run("fit", "parts", *FIT, code=2).stderr


def test_a_file_may_be_called_like_a_pattern():
    make_table().to_parquet("a[1].parquet", index=False)
    with open_table("a[1].parquet") as file:
        assert file.rows == len(make_table())
