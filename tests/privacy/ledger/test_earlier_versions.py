"""Files that the first version of the ledger wrote, without totals and with a write-ahead log, go on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from discreet.privacy.accounting import event_to_dict, laplace_event
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.records import GENESIS, ChainError, Record

QUARTER = laplace_event(4.0)  # epsilon 0.25 at delta 0
OLD_TABLES = """
CREATE TABLE discreet_records (number INTEGER NOT NULL, kind VARCHAR(16) NOT NULL, dataset TEXT NOT NULL,
    body TEXT NOT NULL, created VARCHAR(40) NOT NULL, hash VARCHAR(64) NOT NULL, PRIMARY KEY (number));
CREATE TABLE discreet_tip (id INTEGER NOT NULL, number INTEGER NOT NULL, hash VARCHAR(64) NOT NULL, PRIMARY KEY (id));
"""


def append_as_before(path: Path, *added: tuple[str, dict[str, Any]]) -> None:
    """What the first version wrote: a write-ahead log, and no totals."""
    connection = sqlite3.connect(path)
    if not connection.execute("SELECT name FROM sqlite_master").fetchall():
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(OLD_TABLES)
        connection.execute("INSERT INTO discreet_tip VALUES (1, 0, ?)", (GENESIS,))
    ((number, head),) = connection.execute("SELECT number, hash FROM discreet_tip")
    for kind, content in added:
        number += 1
        draft = Record(number, kind, "t", json.dumps(content, sort_keys=True), "2026-01-01T00:00:00.000000+00:00", "")
        head = draft.digest(head)
        connection.execute(
            "INSERT INTO discreet_records VALUES (?, ?, ?, ?, ?, ?)", (*list(vars(draft).values())[:5], head)
        )
    connection.execute("UPDATE discreet_tip SET number = ?, hash = ?", (number, head))
    connection.commit()
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def test_a_file_of_the_first_version_goes_on(path: Path) -> None:
    reserve = ("reserve", {"event": event_to_dict(QUARTER), "note": "old"})
    append_as_before(path, ("open", {"epsilon": 1.0, "delta": 0.0, "relation": "replace"}), reserve, reserve)
    ledger = Ledger(path)
    assert ledger.verify() == []
    assert ledger.spent("t") == pytest.approx(0.5)
    assert ledger.reserve("t", QUARTER, note="new", relation="replace").id == 4
    assert [(entry.note, bool(entry.who)) for entry in ledger.entries("t")] == [("old", False)] * 2 + [("new", True)]
    with ledger._chain.viewing() as view:
        assert view.total("t") is not None
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    append_as_before(path, reserve)  # a colleague who has not updated yet
    assert ledger.spent("t") == pytest.approx(1.0)
    assert not ledger.fits("t", QUARTER)
    assert ledger.verify() == []


def test_a_damaged_file_of_the_first_version_is_refused(path: Path) -> None:
    reserve = ("reserve", {"event": event_to_dict(QUARTER), "note": "old"})
    append_as_before(path, ("open", {"epsilon": 1.0, "delta": 0.0, "relation": "replace"}), *[reserve] * 3)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE discreet_records SET body = replace(body, '4.0', '400.0') WHERE number = 2")
    connection.commit()
    connection.close()
    with pytest.raises(ChainError, match="record 2"):
        Ledger(path).spent("t")
