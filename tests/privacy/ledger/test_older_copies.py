"""A ledger that is open knows what it has seen: records may only be added to it."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.privacy.accounting import gaussian_event
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.records import ChainError


def test_an_open_ledger_refuses_an_older_copy_that_was_put_back(tmp_path):
    """What it saw before must still be there; a ledger that was opened anew cannot know, but `verify(head)` can."""
    path, copy = tmp_path / "budget.db", tmp_path / "copy.db"
    book = Ledger(path)
    book.open("patients", 1.0, 1e-6)
    shutil.copy(path, copy)
    with book.reserve("patients", gaussian_event(20.0), relation="replace"):
        pass
    head = book.head()
    assert book.verify() == []
    shutil.copy(copy, path)
    for use in (
        lambda: book.spent("patients"),
        lambda: book.reserve("patients", gaussian_event(20.0), relation="replace"),
        lambda: book.open("others", 1.0, 1e-6),
        book.head,
    ):
        with pytest.raises(ChainError, match="an older copy was put back"):
            use()
    assert any("an older copy was put back" in problem for problem in book.verify())
    fresh = Ledger(path)
    assert fresh.verify() == []
    assert fresh.verify(head)


def test_an_open_ledger_refuses_a_file_that_is_gone_or_another_with_as_many_records(tmp_path):
    path = tmp_path / "budget.db"
    book = Ledger(path)
    book.open("patients", 1.0, 1e-6)
    path.unlink()
    with pytest.raises(ChainError, match="put back"):
        book.spent("patients")
    with pytest.raises(ChainError, match="put back"):
        book.open("patients", 1.0, 1e-6)
    Ledger(path).open("patients", 1.0, 1e-6)
    with pytest.raises(ChainError, match="put back"):
        book.spent("patients")


def test_what_others_write_meanwhile_is_no_older_copy(tmp_path):
    """Threads and other objects add records; none of them sees fewer than before."""
    book, other = Ledger(tmp_path / "budget.db"), Ledger(tmp_path / "budget.db")
    book.open("patients", 50.0, 1e-6)

    def use(k):
        with (book, other)[k % 2].reserve("patients", gaussian_event(50.0), relation="replace"):
            return book.spent("patients")

    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(use, range(24)))) == 24
    assert book.verify() == other.verify() == []
