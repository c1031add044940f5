"""A table file is opened once, and what is on the disk afterwards does not matter."""

import os

import numpy as np
import pytest

from discreet import load_model
from discreet.data import files
from discreet.data.files import open_table
from discreet.data.schema import skeleton
from tests.cli_tools import make_table, run


def write(path, table):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


@pytest.fixture(params=["csv", "parquet"])
def path(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / f"table.{request.param}", make_table())


@pytest.fixture
def vanishing(monkeypatch):
    """Delete every table as soon as it has been opened: a second opening, by whatever library, would fail."""
    names = []

    def open_and_delete(path, original=files._open):
        handle = original(path)
        names.append(path.name)
        os.remove(path)
        return handle

    monkeypatch.setattr(files, "_open", open_and_delete)
    return names


@pytest.mark.parametrize(
    "command", [["fit", "--target", "y"], ["fit", "--target", "y", "--task", "regression"], ["schema"]]
)
def test_a_command_opens_its_table_once(path, vanishing, command):
    run(command[0], path, *command[1:])
    assert vanishing == [path.name]
    assert not path.exists()


def test_predict_opens_its_table_once(path, vanishing):
    content = path.read_bytes()
    run("fit", path, "--target", "y")
    path.write_bytes(content)
    run("predict", "model.json", path)
    assert vanishing == [path.name] * 2
    assert load_model("model.json").feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_file_that_is_replaced_after_opening_does_not_matter(path):
    with open_table(path) as file:
        expected = make_table()
        replacement = write(path.with_name(f"new{path.suffix}"), expected.assign(a=7.0)[:3])
        os.replace(replacement, path)
        table = file.read(skeleton(file.kinds), target=False)
    np.testing.assert_array_equal(table.X, expected.to_numpy())


def test_what_a_file_says_without_its_rows(path):
    with open_table(path) as file:
        assert file.kinds == dict.fromkeys("abcy", "number")
        assert file.rows == (None if path.suffix == ".csv" else len(make_table()))
    file.close()  # closing twice does no harm


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    for name in ("absent.csv", "absent.parquet"):
        with pytest.raises(FileNotFoundError) as caught:
            open_table(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv: the folder holds no Parquet files"):
        open_table(tmp_path / "folder.csv")
