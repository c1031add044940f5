"""Table files of `discreet federated simulate`: errors name columns and options, and never show a value of a row."""

from __future__ import annotations

import pytest

from discreet.federated.simulation import read_table


def read(path, text, classes=(0, 1)):
    path.write_text(text)
    return read_table(path, "y", (0.0, 1.0), None, classes, None, 2)


def test_a_column_of_text_is_named_without_its_values(tmp_path):
    with pytest.raises(ValueError, match="column 'city' holds something other than numbers") as raised:
        read(tmp_path / "t.csv", "city,y\nBerlin,0\nParis,1\nRome,0\nOslo,1\n")
    assert "Berlin" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("classes", [("no", "yes"), (1, 2)])
def test_labels_that_are_not_declared_are_refused(tmp_path, classes):
    with pytest.raises(ValueError, match="targets other than") as raised:
        read(tmp_path / "t.csv", "x,y\n0.1,7\n0.2,1\n0.3,7\n0.4,1\n", classes)
    assert "7" not in str(raised.value).removeprefix(str(tmp_path))


def test_declared_labels_are_coded_in_their_order(tmp_path):
    table = read(tmp_path / "t.csv", "x,y\n0.1,3\n0.2,1\n0.3,3\n0.4,1\n", (3, 1))
    assert table.y.tolist() == [-1.0, 1.0, -1.0, 1.0]
