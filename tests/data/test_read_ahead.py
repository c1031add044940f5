"""Reading ahead: the same items in the same order, a bounded number of them, and no thread that outlives its pass."""

import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow.dataset as ds
import pytest

from discreet import Ridge
from discreet.data import rows as rows_module
from discreet.data.read_ahead import read_ahead
from discreet.data.stored_table import table_of_dataset
from tests.cli_tools import make_table
from tests.forks import fork_below_python, in_child


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("discreet-reader")]


@pytest.fixture(autouse=True)
def _no_reader_is_left():
    yield
    gc.collect()
    assert not readers()


class Source:
    """Counts what was made of it; made by another thread than the one that uses it."""

    def __init__(self, count, fails_at=None):
        self.count, self.fails_at, self.made, self.closed, self.threads = count, fails_at, 0, False, set()

    def items(self):
        try:
            for number in range(self.count):
                if number == self.fails_at:
                    raise self.error
                self.made += 1
                self.threads.add(threading.get_ident())
                yield number
        finally:
            self.closed = True

    error = ValueError("column 'a' contains infinity; remove or correct those rows first.")


@pytest.mark.parametrize("ahead", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_items_come_in_their_order(count, ahead):
    source = Source(count)
    assert list(read_ahead(source.items(), ahead)) == list(range(count))
    assert source.closed
    assert threading.get_ident() not in source.threads


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_is_made_than_stated(ahead):
    source = Source(50)
    for number in read_ahead(source.items(), ahead):
        time.sleep(0.002)  # the reader would have the time to make many
        assert source.made <= number + 1 + ahead
    assert source.made == 50


def test_the_next_item_is_made_while_the_present_one_is_used():
    made = threading.Event()

    def items():
        yield 1
        made.set()
        yield 2

    ahead = read_ahead(items())
    assert next(ahead) == 1
    assert made.wait(10.0)  # without being asked for
    assert list(ahead) == [2]


def test_an_error_of_the_reader_is_raised_at_its_place_and_unchanged():
    source, found = Source(50, fails_at=7), []
    with pytest.raises(ValueError, match="contains infinity") as caught:
        found.extend(iter(read_ahead(source.items())))
    assert caught.value is source.error
    assert found == list(range(7))
    assert source.closed


@pytest.mark.parametrize("way", ["close", "raise", "forget"])
def test_who_stops_early_leaves_nothing_behind(way):
    source = Source(50)
    ahead = read_ahead(source.items())
    assert next(ahead) == 0
    assert readers()
    if way == "close":
        ahead.close()
    elif way == "raise":
        with pytest.raises(KeyError):
            _raises(ahead)
    del ahead
    gc.collect()
    assert source.closed
    assert source.made <= 4


def _raises(ahead):
    for _ in ahead:
        raise KeyError


@pytest.mark.parametrize("fork", [os.fork, fork_below_python])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_and_does_not_hang(fork):
    ahead = read_ahead(Source(50).items())
    next(ahead)
    assert b"in a child process" in in_child(lambda: bytes(list(ahead)), fork)
    assert list(ahead) == list(range(1, 50))  # of the parent


def test_an_open_pass_does_not_hold_up_the_end_of_the_process():
    script = "from discreet.data.read_ahead import read_ahead\nahead = read_ahead(i for i in range(9))\nnext(ahead)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ENTRIES", 100)
    make_table(task="numbers").to_parquet(tmp_path / "table.parquet", index=False, row_group_size=170)
    return table_of_dataset(ds.dataset(tmp_path / "table.parquet"), "y").encoded(np.asarray)


def test_passes_over_a_file_may_end_early_and_overlap(stored):
    whole = np.vstack([block.X for block in stored.blocks()])
    passes = [stored.blocks(), stored.blocks()]
    for one, other in zip(*passes, strict=True):
        np.testing.assert_array_equal(one.X, other.X)
    for block in stored.blocks():
        np.testing.assert_array_equal(block.X, whole[: block.rows])
        break
    with pytest.raises(ZeroDivisionError):
        stored.sum(lambda block: 1 // 0)
    gc.collect()
    assert not readers()
    np.testing.assert_array_equal(stored.sum(lambda block: block.X.sum(axis=0)).shape, whole.shape[1:])


def test_a_label_that_cannot_be_encoded_is_refused_as_without_a_thread(tmp_path):
    """What the encoder of the target raises, in the other thread, reaches the caller of fit."""
    make_table(task="numbers").assign(y="text").to_parquet(tmp_path / "table.parquet", index=False)
    with pytest.raises(ValueError, match="column 'y' is not numeric"):
        Ridge().fit(ds.dataset(tmp_path / "table.parquet"), "y")
