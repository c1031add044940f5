"""The ledger's memory: one writer at a time, a new file anywhere, and no edit goes unnoticed."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet._common.exceptions import BudgetExceededError
from discreet.privacy.accounting import event_to_dict, laplace_event
from discreet.privacy.ledger import Ledger, locks
from discreet.privacy.ledger.account import Allowance
from discreet.privacy.ledger.chain import Chain
from discreet.privacy.ledger.records import GENESIS, ChainError, Record
from discreet.privacy.ledger.total import Total

QUARTER = laplace_event(4.0)  # epsilon 0.25 exactly at delta 0, so a pure budget can be filled to the brim
MOST = laplace_event(1.25)  # 0.8


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budget.db")
    made.open("t", 1.0, 0.0)
    return made


def granted(ledger: Ledger, event: Any) -> bool:
    try:
        ledger.reserve("t", event, relation="replace")
    except BudgetExceededError:
        return False
    return True


def file_of(ledger: Ledger) -> Path:
    return Path(ledger.url.removeprefix("sqlite:///"))


# --- several processes and threads ---------------------------------------------------------------------


def _start_together(barrier: Any) -> None:
    Ledger("sqlite://").open("t", 1.0, 0.0)  # the imports are not part of the race
    barrier.wait()


def _open_and_grab(url: str) -> int:
    ledger = Ledger(url)
    ledger.open("t", 17 / 4, 0.0)
    return sum(granted(ledger, QUARTER) for _ in range(9))


@pytest.mark.slow
def test_racing_processes_cannot_take_more_than_the_budget(tmp_path: Path) -> None:
    """The file does not exist at the start: creating it and opening the budget are part of the race."""
    ledger = Ledger(tmp_path / "race.db")
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(3, timeout=120)
    with ProcessPoolExecutor(3, spawn, initializer=_start_together, initargs=(barrier,)) as pool:
        taken = list(pool.map(_open_and_grab, [ledger.url] * 3))
    assert sum(taken) == 17
    assert len(ledger.entries("t")) == 17
    assert ledger.spent("t") == pytest.approx(17 / 4)
    assert ledger.verify() == []


@pytest.mark.parametrize("where", ["file", "memory"])
def test_racing_threads_cannot_take_more_than_the_budget(where: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "race.db" if where == "file" else "sqlite://")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: ledger.open("t", 13 / 4, 0.0), range(6)))
        taken = list(pool.map(lambda _: granted(ledger, QUARTER), range(24)))
    assert sum(taken) == len(ledger.entries("t")) == 13
    assert ledger.verify() == []


def test_room_is_checked_again_once_the_lock_is_held(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Allowance.covers

    def covers_then_a_rival_reserves(self: Allowance, total: Total) -> bool:
        monkeypatch.setattr(Allowance, "covers", honest)
        Ledger(ledger.url).reserve("t", MOST, relation="replace")
        return honest(self, total)

    monkeypatch.setattr(Allowance, "covers", covers_then_a_rival_reserves)
    assert not granted(ledger, QUARTER)
    assert len(ledger.entries("t")) == 1


def test_a_rival_waits_while_the_lock_is_held_and_sees_what_was_written(ledger: Ledger) -> None:
    outcome: list[bool] = []
    rival = threading.Thread(target=lambda: outcome.append(granted(Ledger(ledger.url), MOST)))
    with Chain(ledger.url).writing() as pen:
        rival.start()
        rival.join(0.5)
        assert rival.is_alive()
        pen.append("reserve", "t", {"event": event_to_dict(QUARTER), "note": ""})
    rival.join()
    assert outcome == [False]


def test_a_failed_transaction_leaves_nothing(ledger: Ledger) -> None:
    before = ledger.head()
    with suppress(ZeroDivisionError), Chain(ledger.url).writing() as pen:
        assert pen.append("reserve", "t", {"event": event_to_dict(QUARTER), "note": ""}) == 2
        raise ZeroDivisionError
    assert ledger.head() == before
    assert ledger.verify() == []


def test_a_busy_ledger_grants_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.1)
    with Chain(ledger.url).writing(), pytest.raises(TimeoutError, match="nothing was written"):
        Ledger(ledger.url).reserve("t", QUARTER, relation="replace")
    assert ledger.spent("t") == 0.0
    assert granted(ledger, QUARTER), "the lock was given back"


# --- edits are noticed ---------------------------------------------------------------------------------

CHANGE = "UPDATE discreet_records SET "
DELETE = "DELETE FROM discreet_records"
EDITS = {
    "cheaper event": [CHANGE + "body = replace(body, '4.0', '400.0') WHERE number = 3"],
    "other note": [CHANGE + "body = replace(body, 'second', 'none') WHERE number = 3"],
    "larger budget": [CHANGE + "body = replace(body, '1.0', '9.0') WHERE number = 1"],
    "other data set": [CHANGE + "dataset = 'u' WHERE number = 3"],
    "other kind": [CHANGE + "kind = 'void' WHERE number = 3"],
    "other time": [CHANGE + "created = '2020' WHERE number = 3"],
    "other hash": [CHANGE + "hash = '00' WHERE number = 3"],
    "deleted first": [DELETE + " WHERE number = 1"],
    "deleted middle": [DELETE + " WHERE number = 3"],
    "deleted and renumbered": [DELETE + " WHERE number = 3", CHANGE + "number = 3 WHERE number = 4"],
    "deleted last": [DELETE + " WHERE number = 4"],
    "deleted all": [DELETE],
    "repeated": [
        "INSERT INTO discreet_records SELECT 5, kind, dataset, body, created, hash FROM discreet_records"
        " WHERE number = 3"
    ],
    "tip deleted": ["DELETE FROM discreet_tip"],
    "tip lowered": ["UPDATE discreet_tip SET number = 3"],
}


def run_sql(ledger: Ledger, *statements: str) -> None:
    connection = sqlite3.connect(file_of(ledger))
    for statement in statements:
        assert connection.execute(statement).rowcount > 0, "the fault must be planted"
    connection.commit()
    connection.close()


@pytest.fixture
def written(ledger: Ledger) -> Ledger:
    """Records 1 to 4: the budget, and three reservations."""
    for note in ("first", "second", "third"):
        ledger.reserve("t", QUARTER, note=note, relation="replace")
    assert ledger.verify() == []
    return ledger


@pytest.mark.parametrize("edit", EDITS)
def test_a_damaged_ledger_says_so_and_grants_nothing(written: Ledger, edit: str) -> None:
    run_sql(written, *EDITS[edit])
    assert written.verify() != []
    with pytest.raises(ChainError, match="damaged"):
        written.reserve("t", laplace_event(100.0), relation="replace")
    with pytest.raises(ChainError, match="damaged"):
        written.open("u", 1.0, 0.0)
    with pytest.raises(ChainError, match="damaged"):
        written.spent("t")


def test_each_edit_is_reported_where_it_happened(written: Ledger) -> None:
    run_sql(written, *EDITS["other note"])
    assert written.verify() == ["record 3 (reserve 't') was altered"]
    run_sql(written, *EDITS["deleted middle"])
    assert written.verify() == ["record 3 is missing"]
    assert [entry.note for entry in written.entries("t")] == ["first", "third"]
    run_sql(written, *EDITS["deleted last"])
    assert written.verify() == ["records 3 to 4 are missing"]


def test_only_a_hash_kept_elsewhere_shows_a_cut_tail(ledger: Ledger) -> None:
    ledger.reserve("t", QUARTER, relation="replace")
    earlier, total = ledger.head(), ledger._chain.everything()[1]["t"][1]
    ledger.reserve("t", QUARTER, relation="replace")
    kept = ledger.head()
    assert ledger.verify(head=kept) == ledger.verify(head=earlier) == []
    tip = f"UPDATE discreet_tip SET number = 2, hash = '{earlier}'"
    run_sql(ledger, DELETE + " WHERE number = 3", tip)
    assert "an older copy was put back" in ledger.verify()[0], "it was open, and has seen more"
    ledger = Ledger(ledger.url)
    assert ledger.verify() == ["the running total of data set 't' was altered"]
    run_sql(ledger, f"UPDATE discreet_totals SET number = 2, total = '{total}'")
    assert ledger.verify() == [], "a careful forger leaves a valid, shorter chain"
    assert ledger.verify(head=earlier) == []
    (problem,) = ledger.verify(head=kept)
    assert kept in problem


def test_head_of_one_data_set_moves_with_that_data_set_only(written: Ledger) -> None:
    before = written.head("t")
    assert written.head() == before
    written.open("u", 1.0, 0.0)
    assert written.head("t") == before
    assert written.head() == written.head("u") != before
    assert Ledger("sqlite://").head() == GENESIS


def test_the_hash_depends_on_every_field() -> None:
    record = Record(2, "reserve", "t", "{}", "2026", "")
    changes = {"number": 3, "kind": "commit", "dataset": "u", "body": "[]", "created": "2027"}
    others = [replace(record, **{field: value}) for field, value in changes.items()]
    hashes = [record.digest(GENESIS), record.digest("1" * 64), *(other.digest(GENESIS) for other in others)]
    assert len(set(hashes)) == 7


# --- addresses -----------------------------------------------------------------------------------------


def test_no_file_before_the_first_budget(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budget.db")
    assert ledger.datasets() == []
    assert ledger.head() == GENESIS
    assert os.listdir(tmp_path) == []
    ledger.open("t", 1.0, 0.0)
    assert os.listdir(tmp_path) == ["budget.db"]


def test_a_relative_path_is_fixed_when_the_ledger_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = [
        Ledger("b.db"),
        Ledger("sqlite:///b.db"),
        Ledger(Path("b.db")),
        Ledger(f"sqlite:///{tmp_path}/b.db"),
    ]
    assert Ledger().url == Ledger("discreet.db").url
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    made[0].open("t", 1.0, 0.0)
    assert [ledger.datasets() for ledger in made] == [["t"]] * 4
    assert os.listdir() == []


def test_a_ledger_survives_a_new_start(written: Ledger, tmp_path: Path) -> None:
    again = Ledger(tmp_path / "budget.db")
    assert again.entries("t") == written.entries("t")
    assert again.spent("t") == pytest.approx(0.75)


@pytest.mark.parametrize("url", ["", "mysql://u@h/d", "sqlite:///b.db?mode=ro", "file:b.db"])
def test_refuses_an_address_it_cannot_keep_a_promise_at(url: str) -> None:
    with pytest.raises(ValueError, match="ledger"):
        Ledger(url)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Ledger(tmp_path / "nowhere" / "budget.db").datasets()


def test_a_password_is_not_shown() -> None:
    ledger = Ledger("postgresql://steward:secret@db/budgets")
    assert "secret" not in repr(ledger)
    assert ledger.url == "postgresql+psycopg://steward:secret@db/budgets"


def test_a_forked_copy_of_a_memory_ledger_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger("sqlite://")
    ledger.open("t", 1.0, 0.0)
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        ledger.spent("t")
