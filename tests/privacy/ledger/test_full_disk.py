"""A ledger on a disk that is full or read-only, and under a clock that jumps: nothing is lost or granted twice."""

from __future__ import annotations

import datetime

import pytest

from discreet.privacy.accounting import gaussian_event
from discreet.privacy.ledger import Ledger, chain
from tests.small_disk import small_disk

EVENT = gaussian_event(50.0)


@pytest.fixture
def disk(tmp_path):
    try:
        with small_disk(tmp_path / "disk") as made:
            yield made
    except (FileNotFoundError, PermissionError) as error:
        pytest.skip(str(error))


@pytest.fixture
def ledger(disk):
    made = Ledger(disk.path / "budget.db")
    made.open("t", 50.0, 1e-6)
    made.reserve("t", EVENT, relation="replace").commit()
    return made


def reserve(ledger):
    return ledger.reserve("t", EVENT, note="x" * 400, relation="replace")


def until_full(use):
    """How often it worked: pages of the file that are free already take a few entries more."""
    done = []
    with pytest.raises(OSError, match=r"^the disk of the ledger is full; nothing was written$"):
        done.extend(use() for _ in range(1_000))
    return len(done)


def check_is_as_before(ledger, change, message):
    """Nothing is granted and nothing is forgotten; what was spent can still be asked."""
    before, spent = ledger.entries("t"), ledger.spent("t")
    change()
    for book in (ledger, Ledger(ledger.url)):
        for use in (reserve, lambda book: book.open("u", 1.0, 1e-6)):
            with pytest.raises(OSError, match=message) as refused:
                use(book)
            assert "\n" not in str(refused.value)
        assert (book.entries("t"), book.spent("t"), book.datasets()) == (before, spent, ["t"])


def test_a_full_disk_grants_nothing_and_forgets_nothing(disk, ledger):
    granted = 1 + until_full(lambda: reserve(ledger))
    assert len(ledger.entries("t")) == granted > 5
    check_is_as_before(ledger, disk.fill, "the disk of the ledger is full; nothing was written")
    assert ledger.verify() == []
    with pytest.raises(OSError, match="was not copied"):
        ledger.backup(disk.path / "copy.db")
    assert sorted(path.name for path in disk.path.iterdir()) == ["budget.db", "rest"]


def test_a_result_that_is_out_is_noted_once_there_is_room_again(disk, ledger):
    kept = reserve(ledger)
    disk.fill()
    until_full(lambda: reserve(ledger))
    before = len(ledger.entries("t"))
    disk.empty()
    kept.commit()
    assert ledger.entries("t")[1].status == "committed"
    assert len(ledger.entries("t")) == before
    assert ledger.verify() == []


def test_a_read_only_disk_grants_nothing(disk, ledger):
    check_is_as_before(ledger, disk.read_only, "read-only for this user .* nothing was written|cannot be opened")
    assert f"{ledger._chain.store.path} is read-only: nothing can be reserved" in ledger.verify()
    with pytest.raises(OSError, match="Read-only"):
        Ledger(disk.path / "new.db").open("t", 1.0, 1e-6)
    disk.read_only(False)
    reserve(ledger)
    assert ledger.verify() == []


class Clock:
    """Stands in for `datetime`."""

    def __init__(self, year):
        self.year = year

    def now(self, zone):
        return datetime.datetime(self.year, 5, 1, tzinfo=zone)


@pytest.mark.parametrize("years", [(2026, 1970, 2100), (2026, 2100, 1970)])
def test_a_clock_that_jumps_changes_no_order_and_no_sum(tmp_path, monkeypatch, years):
    ledger, steady = Ledger(tmp_path / "budget.db"), Ledger(tmp_path / "steady.db")
    for book in (ledger, steady):
        book.open("t", 1.0, 1e-6)
    for year in years:
        jumped = type(
            "Clock", (), {"now": staticmethod(lambda zone, year=year: datetime.datetime(year, 5, 1, tzinfo=zone))}
        )
        monkeypatch.setattr(chain, "datetime", jumped)
        reserve(ledger).commit()
        monkeypatch.undo()
        reserve(steady).commit()
    assert [entry.created.year for entry in ledger.entries("t")] == list(years)
    assert ledger.spent("t") == steady.spent("t")
    assert ledger.verify() == Ledger(ledger.url).verify() == []
